# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The acts of ../hostile, for the suites of users who mean harm. To be sourced after lib.sh.

compiled hostile hostile
HOSTILE=$program

: >"$TMP/kernel-log"
# act ACT ARGUMENT...: sets what it prints, words NAME=NUMBER, as variables, those of the caller if it has some. The lines
# of the kernel log until then are in $TMP/kernel-log, but for the one that ib_core writes when a host without a port mapper
# uses iWARP for the first time.
act() {
	local found word begun="hostile at $EPOCHREALTIME"
	echo "$begun" >/dev/kmsg
	"$HOSTILE" "$@" >"$TMP/found" || fail "$*: $?" || return
	dmesg | sed -n "/$begun/,\$p" >"$TMP/dmesg"
	[ -s "$TMP/dmesg" ] || fail "the kernel log has lost the mark" || return
	tail -n +2 "$TMP/dmesg" | grep -v 'iwpm_register_pid: Unable to send a nlmsg' >>"$TMP/kernel-log"
	found=$(tr '\n' ' ' <"$TMP/found")
	echo "# $*: $found" | tee -a "$TMP/shown"
	[[ $found =~ ^([a-z_]+=-?[0-9]+[[:space:]]*)+$ ]] || fail "other words" || return
	for word in $found; do printf -v "${word%%=*}" %s "${word#*=}"; done
}

# with C RUST: what is expected of the one that is loaded.
with() {
	if [ "$CM" = c ]; then echo "$1"; else echo "$2"; fi
}

shown() {
	[ ! -e "$TMP/shown" ] || cat "$TMP/shown"
	rm -f "$TMP/shown"
}

# forgers replace|del: addresses that no host has are behind the other end of the wire, for both ends.
forgers() {
	forgers_at "$1" v0 "$B4" "$B6" 02 ip && forgers_at "$1" v1 "$A4" "$A6" 01 $PEER ip
}

# forgers_at replace|del INTERFACE GATEWAY4 GATEWAY6 LAST-BYTE-OF-ITS-MAC IP...
forgers_at() {
	local do=$1 dev=$2 gateway4=$3 gateway6=$4 mac=52:54:00:72:63:$5
	shift 5
	"$@" neigh "$do" "$gateway4" lladdr "$mac" dev "$dev" nud permanent &&
		"$@" neigh "$do" "$gateway6" lladdr "$mac" dev "$dev" nud permanent &&
		"$@" route "$do" 10.9.0.0/16 via "$gateway4" && "$@" -6 route "$do" fd09::/64 via "$gateway6"
}
