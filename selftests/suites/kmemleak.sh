#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The suite prints the findings of kmemleak after all that ran before, with the module loaded and
# again when it is unloaded. To be run last. With shadow.ko (planted/shadow.c) in the current
# directory a search takes a third of the time. With --loaded not when it is unloaded, for what
# cannot be.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

file=/sys/kernel/debug/kmemleak

# An object counts when two scans in a row do not find it referenced, and not before
# it is five seconds old.
no_leaks() {
	local i
	for i in $(seq "$1"); do
		sleep 6
		echo scan >$file || return
	done
	# Its size is always 0.
	cat $file >"$TMP/leaks" || return
	[ -s "$TMP/leaks" ] || return 0
	cat "$TMP/leaks"
	return 1
}

unloaded() {
	cm-use none || return
	no_leaks 2
}

if [ ! -e $file ]; then
	skip "no leaks" "the kernel has no kmemleak"
	finish
fi
[ ! -e shadow.ko ] || [ -d /sys/module/shadow ] || insmod shadow.ko
# It turns itself off when it has no memory left. An object that looks lost for the first time
# counts in the next search.
check "kmemleak is on" eval "echo scan >$file"
check "no leaks while the connection manager is loaded" no_leaks 1
if [ "${1:-}" = --loaded ]; then
	finish
fi
check "none when it is unloaded" unloaded
cm-use "$CM"
finish
