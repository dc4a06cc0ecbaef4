# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# A reader of the documentation, who types what it says, for the suites that make the situations which a page is about. To
# be sourced after lib.sh. Host "a" is this namespace and host "b" the namespace "peer".
#
# Each situation is a case, which fails if what the page quotes is not what the programs print here, but for numbers that
# differ from run to run. The quotes are printed, too: "tools/checks/troubleshooting --take" writes them into the page.

PAGES=/mnt/repo/Documentation
QUOTE=$TMP/quote
# shellcheck source=selftests/lib/quotes.sh
. "$SELFTESTS/lib/quotes.sh"
# Names of the programs as the page has them, for all users.
mkdir -p /run/reader
for reader_program in /mnt/share/{rdma-cm,cmstorm}; do
	[ ! -x "$reader_program" ] || ln -sf "$reader_program" /run/reader/
done
PATH=/run/reader:$PATH

# A user who has no rights.
AS_USER="setpriv --reuid 1000 --regid 1000 --clear-groups"

# host NAME COMMAND...: runs the command there; "a$" is a user of a who has no rights.
host() {
	local name=$1
	shift
	# shellcheck disable=SC2086 # words
	case $name in
	*\$) set -- $AS_USER "$@" ;;
	esac
	case $name in
	b*) $PEER "$@" ;;
	*) "$@" ;;
	esac
}

# typed HOST LINE: the page shows this line behind the prompt of the host.
typed() {
	case $1 in
	*\$) echo "$1 $2" ;;
	*) echo "$1# $2" ;;
	esac >>"$QUOTE"
}

# at HOST LINE: the reader types the line there, and sees what it prints. The page says what that is, so that no status is
# looked at.
at() {
	typed "$@"
	host "$1" timeout $((90 * PATIENCE)) stdbuf -oL bash -c "$2" 2>&1 </dev/null |
		sed -E "/$BY_CHANCE/d" >>"$QUOTE" || :
}

# watch HOST: "rdma-cm monitor" runs there from now on.
watch() {
	local prefix=''
	[ "$1" = a ] || prefix=$PEER
	WATCHED=$1
	# shellcheck disable=SC2086 # words
	$prefix rdma-cm monitor >"$TMP/monitor" & MONITOR=$!
	# shellcheck disable=SC2086
	wait_for 20 hears "$MONITOR" $prefix
}

# saw PATTERN...: the monitor tells of each soon, and the page shows the first such line.
saw() {
	local pattern
	typed "$WATCHED" "rdma-cm monitor"
	for pattern; do
		wait_for 30 grep -Eq "$pattern" "$TMP/monitor"
		grep -Em 1 "$pattern" "$TMP/monitor" >>"$QUOTE"
	done
	kill -INT "$MONITOR"
	wait "$MONITOR"
}

# serve PORT [PREFIX...]: a server on b, whose number is SERVER.
serve() {
	$PEER "${@:2}" rping -s -P -a "$B4" -p "$1" >/dev/null 2>&1 & SERVER=$!
	await_listener "comm rping"
}

# dial PORT: a client on a that stays.
dial() {
	rping -c -a "$B4" -p "$1" >"$TMP/client" 2>&1 &
}

# count HOST FILTER SUBJECT: the number of rows that the tool shows there.
count() {
	host "$1" rdma-cm -j show "$3" | jq "map(select($2)) | length"
}

# shown HOST FILTER SUBJECT [NUMBER]
shown() {
	[ "$(count "$1" "$2" "$3")" -ge "${4:-1}" ]
}

# soon HOST FILTER SUBJECT [NUMBER]
soon() {
	wait_for 30 shown "$@" || fail "no $2 in $(host "$1" rdma-cm -j show "$3")"
}

reproduce() {
	local name=$1
	shift
	"$@" || return
	[ -s "$QUOTE" ] && on_page "$name"
}

# printed NAME: the quote, if there is one, for who takes it.
printed() {
	[ ! -e "$QUOTE" ] || sed "s/^/# quote $1| /" "$QUOTE"
	rm -f "$QUOTE"
}

# situation NAME FUNCTION...: the function makes it, and does what the page tells its reader to do.
situation() {
	local name=$1
	shift
	check "$name" reproduce "$name" "$@"
	[ ! -e "$QUOTE" ] || wait_for 20 no_cm_ids
	printed "$name"
}
