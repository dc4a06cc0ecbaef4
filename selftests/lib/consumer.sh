# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The test modules in ../consumer, whose tests are cases of a suite. To be sourced after lib.sh.

# said MODULE NUMBER NAME: what the module said about a test, since it was loaded.
said() {
	grep -F "$1: ok $2 - $3" "$TMP/said" || { cat "$TMP/said"; return 1; }
}

whole() {
	[ "$3" -eq 0 ] || fail "insmod: $3" || { cat "$TMP/said"; return 1; }
	grep -qx "$1: 1..$2" "$TMP/said" || fail "another number of tests" || return
	rmmod "$1"
}

# tests MODULE [PARAMETER...]: its tests are named on standard input.
tests() {
	local module=$1 number=0 status=0 name mark
	shift
	if [ ! -e "$module.ko" ]; then
		skip "$module" "there is no $module.ko"
		return
	fi
	# The log is not cleared: what is in it is for others, too.
	mark="consumer: mark $(date +%s%N)"
	echo "$mark" >/dev/kmsg
	insmod "$module.ko" "$@" || status=$?
	dmesg | sed -n "1,/$mark/d; s/^.*\($module: .*\)/\1/p" >"$TMP/said"
	while read -r name; do
		number=$((number + 1))
		check "$name" said "$module" "$number" "$name"
	done
	check "$module${*:+ with $*} loads and unloads" whole "$module" "$number" "$status"
}

# The tests of ibcm without parameters that choose others; over Omni-Path, those that are not of rivals.
# shellcheck disable=SC2034
IBCM_TESTS='an unused identifier
listeners
a connection from outside
a connection in callbacks
an alternate path
rejections
data before the RTU
identifiers destroyed in each state
parameters
refused, then sent from another device
nobody answers
questions
texts
destroyed in haste'
# shellcheck disable=SC2034
IBCM_RIVALS='one service, two kinds of listeners at once
one service, two owners at once who may not have it
one service, two owners at once of whom one goes'
