#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The unit tests of the protocol crate that are compiled into the module: one case
# per test, as KUnit reports it.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

suites=/sys/kernel/debug/kunit

why_not() {
	if [ "$CM" != rust ]; then
		echo "the module is not loaded"
	elif [ ! -d "$suites" ]; then
		echo "the kernel has no KUnit (CONFIG_KUNIT=y)"
	elif [ -e /sys/module/kunit/initstate ]; then
		echo "the kernel has KUnit as a module, which Rust cannot use"
	elif [ "$(cat /sys/module/kunit/parameters/enable 2>/dev/null)" = N ]; then
		echo "KUnit is off (kunit.enable=1)"
	fi
}

# Its results are there until the next run of the suite.
run_suite() {
	echo run >"$1/run" || return
	cat "$1/results"
	grep -q '^ok ' "$1/results"
}

case_result() {
	case $1 in
	ok*) ;;
	*) grep -B 8 -F "$1" "$2" && return 1 ;;
	esac
}

reason=$(why_not)
if [ "$reason" ]; then
	skip "unit tests" "$reason"
	finish
fi
found=0
for suite in "$suites"/cmproto_*; do
	[ -d "$suite" ] || continue
	found=1
	name=${suite##*/}
	check "$name" run_suite "$suite"
	# "    ok 1 name", or "    ok 1 name # SKIP".
	while read -r result; do
		title=${result#not }
		title="$name: ${title#ok * }"
		title=${title%% # SKIP*}
		case $result in
		*'# SKIP'*) skip "$title" "needs a host" ;;
		*) check "$title" case_result "$result" "$suite/results" ;;
		esac
	done < <(sed -nE 's/^ +((not )?ok [0-9]+ .*)/\1/p' "$suite/results")
done
[ "$found" -eq 1 ] || check "the module has suites" fail "none in $suites"
finish
