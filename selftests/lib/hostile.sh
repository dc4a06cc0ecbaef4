# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The acts of ../hostile, for the suites of users who mean harm. To be sourced after lib.sh.

compiled hostile hostile
HOSTILE=$program

: >"$TMP/kernel-log"
# act ACT ARGUMENT...: sets what it prints, words NAME=NUMBER, as variables, those of the caller if it has some. The lines
# of the kernel log until then are in $TMP/kernel-log.
act() {
	local found word begun="hostile at $EPOCHREALTIME"
	echo "$begun" >/dev/kmsg
	"$HOSTILE" "$@" >"$TMP/found" || fail "$*: $?" || return
	dmesg | sed -n "/$begun/,\$p" >"$TMP/dmesg"
	[ -s "$TMP/dmesg" ] || fail "the kernel log has lost the mark" || return
	tail -n +2 "$TMP/dmesg" >>"$TMP/kernel-log"
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
