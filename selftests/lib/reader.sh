# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2154
#
# A reader of Documentation/troubleshooting.rst, who types what it says, for the suites that make the situations which
# that page is about. To be sourced after lib.sh. Host "a" is this namespace and host "b" the namespace "peer".
#
# Each situation is a case, which fails if what the page quotes is not what the programs print here, but for numbers that
# differ from run to run. The quotes are printed, too: "tools/checks/troubleshooting --take" writes them into the page.

PAGE=/mnt/repo/Documentation/troubleshooting.rst
QUOTE=$TMP/quote
# shellcheck source=selftests/lib/quotes.sh
. "$SELFTESTS/lib/quotes.sh"
# Names of the programs as the page has them, for all users.
mkdir -p /run/reader
for reader_program in /mnt/share/{rdma-cm,cmstorm}; do
	[ ! -x "$reader_program" ] || ln -sf "$reader_program" /run/reader/
done
PATH=/run/reader:$PATH

# host NAME COMMAND...: runs the command there; "a$" is a user of a who has no rights.
host() {
	local name=$1
	shift
	case $name in
	*\$) set -- setpriv --reuid 1000 --regid 1000 --clear-groups "$@" ;;
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

# saw PATTERN: the monitor tells of this soon, and the page shows the first such line.
saw() {
	wait_for 30 grep -Eq "$1" "$TMP/monitor"
	typed "$WATCHED" "rdma-cm monitor"
	grep -Em 1 "$1" "$TMP/monitor" >>"$QUOTE"
	kill -INT "$MONITOR"
	wait "$MONITOR"
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
