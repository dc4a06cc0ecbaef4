#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Users who mean harm to others. A case for each row of Documentation/security.rst: what happens with C is what its cases
# expect with C, so that each shows the harm that this module prevents.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# The host may have compiled it already.
HOSTILE=$PWD/hostile
if [ ! -x "$HOSTILE" ]; then
	HOSTILE=$TMP/hostile
	make -s -C "$SELFTESTS/hostile" OUT="$HOSTILE" || exit 1
fi

# act ACT ARGUMENT...: sets what it prints, words NAME=NUMBER, as variables, those of the caller if it has some.
act() {
	local found word
	"$HOSTILE" "$@" >"$TMP/found" || fail "$*: $?" || return
	found=$(<"$TMP/found")
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

# 14: ids of others
oracle() {
	local told others
	act oracle || return
	[ "$others" -gt 0 ] || fail "nobody has ids" || return
	[ "$told" -eq "$(with "$others" 0)" ] || fail "told of $told numbers" || return
	nothing_left
}

check "ids of another user cannot be told from none" oracle
shown
finish
