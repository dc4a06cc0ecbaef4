# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# The functions that the scripts of two-guests.sh share: who is who, and how one waits for the
# other, through files in the current directory, which both guests have. To be sourced, after
# lib.sh, by a script with the arguments NUMBER CM CM.

me=$1 other=$((3 - $1))
names=([1]="$2" [2]="$3")
dir=$PWD
own4=10.0.1.$me own6=fd01::$me
far4=10.0.1.$other far6=fd01::$other
# The pairs of cases so far; the words of one are not those of the next.
round=0

# say WORD [TEXT]
say() {
	echo "${2:-}" >"$dir/$round-$1.$me"
}

# The seconds that a guest may take for a step that the other waits for.
HEARING=${HEARING:-500}

# hear WORD: until the other guest says it. In vain also if it has ended its part of the round without.
hear() {
	wait_for "$HEARING" said_or_ended "$1"
	said "$1" || fail "nothing heard of $1"
}

said() {
	[ -s "$dir/$round-$1.$other" ]
}

said_or_ended() {
	said "$1" || said end
}

# told WORD: the text that came with it.
told() {
	cat "$dir/$round-$1.$other"
}

# together WORD: both guests come to it.
together() {
	say "$1"
	hear "$1"
}

# note TEXT: a comment in the output, whatever comes of the case.
note() {
	echo "# $*" >>"$TMP/notes"
}

# both TITLE COMMAND...: a case in each guest, good if it is in both. A guest may take long
# where many run.
both() {
	local status=0
	round=$((round + 1))
	check "$1" part "${@:2}" || status=$?
	[ ! -e "$TMP/notes" ] || { cat "$TMP/notes" && rm "$TMP/notes"; }
	return "$status"
}

part() {
	local status=0
	"$@" || status=$?
	say end "$status"
	hear end || return
	[ "$status" -eq 0 ] || return "$status"
	[ "$(told end)" = 0 ] || fail "the other guest failed"
}

# pair SERVER WHAT [TITLE [ARGUMENT...]]: the functions WHAT_server and WHAT_client.
pair() {
	local end=client
	[ "$1" != "$me" ] || end=server
	both "${3:-$2}, ${names[$1]} server" "$2_$end" "${@:4}"
}

# meet: the first cases.
meet() {
	say booted
	check "the other guest is there" hear booted
	check "it answers" wait_for 60 ping -c 1 -W 2 "$far4"
}

# jumbo: packets of 4096 bytes, for those who have much to say.
jumbo() {
	ip link set eth0 mtu 9000 || return
	wait_for 10 eval '[[ "$(ibv_devinfo -d rxe2)" == *"active_mtu:"*"4096 (5)"* ]]' || fail "$(ibv_devinfo -d rxe2)"
}

# timed WHAT COMMAND...: how long it took, by this guest's clock.
timed() {
	local start=${EPOCHREALTIME/./} took
	"${@:2}" || return
	took=$(((${EPOCHREALTIME/./} - start) / 1000))
	note "$1: $((took / 1000)).$(printf %03d $((took % 1000))) s"
}

# Nothing is connected to this target any more.
deserted() {
	wait_for 160 eval "! cm_id_in CONNECT $1" || fail "still connected: $(cm_ids)"
}

# Shows the lines that tell why a case failed; those that follow it would fail for that.
give_up() {
	(cd /sys/class/infiniband && grep . -- ./*/ports/1/hw_counters/*) | sed 's/^/# /'
	dmesg | tail -n 40 | sed 's/^/# /'
	finish
}
