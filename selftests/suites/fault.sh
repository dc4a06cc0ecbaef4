#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Allocations and copies from and to user memory fail: each of each command in turn
# (walk/fault.c), and then some of those of the whole connection manager at random, also in its
# work queues, while commands are given. Arguments: -v, and a pattern for "STATE: COMMAND"; or
# "random": only those at random.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

debugfs=/sys/kernel/debug
if [ ! -d $debugfs/failslab ] || [ ! -d $debugfs/fail_usercopy ]; then
	skip "allocations and copies that fail" "the kernel has no fault injection"
	finish
fi
if [ ! -x "$PWD/cm-fault" ] || [ ! -x "$PWD/cm-race" ]; then
	make -s -C "$SELFTESTS/walk" OUT="$TMP" >&2 || exit 1
	PATH=$TMP:$PATH
else
	PATH=$PWD:$PATH
fi

# Without a line in the log for each; also where the kernel could wait for memory.
for kind in failslab fail_page_alloc fail_usercopy; do
	echo 0 >$debugfs/$kind/verbose
done
echo N >$debugfs/failslab/ignore-gfp-wait
echo N >$debugfs/fail_page_alloc/ignore-gfp-wait
echo 0 >$debugfs/fail_page_alloc/min-order

# text: the first and the last function of the connection manager, as addresses.
text() {
	awk '$2 ~ /[tT]/ && $4 ~ /^\[(rust_rdma_cm|ib_cm|rdma_cm|rdma_ucm)\]$/ { print $1 }' \
		/proc/kallsyms | sort | sed -n '1p; $p'
}

# random KIND PERCENT: so many of the connection manager's allocations fail, in every task: the
# functions on the stack tell them.
random() {
	local range
	mapfile -t range < <(text)
	[ "${#range[@]}" -eq 2 ] || fail "no symbols" || return
	echo "0x${range[0]}" >$debugfs/"$1"/require-start
	echo "0x${range[1]}" >$debugfs/"$1"/require-end
	echo 32 >$debugfs/"$1"/stacktrace-depth
	echo 1 >$debugfs/"$1"/interval
	echo -1 >$debugfs/"$1"/times
	echo "$2" >$debugfs/"$1"/probability
}

no_faults() {
	local kind
	for kind in failslab fail_page_alloc fail_usercopy; do
		echo 0 >$debugfs/$kind/probability
		echo 0 >$debugfs/$kind/require-start
		echo 0xffffffffffffffff >$debugfs/$kind/require-end
	done
}

# short KIND PERCENT SECONDS: all commands in all states, meanwhile. When it is over, nothing is
# left, and connections are made as ever.
short() {
	local status=0 server
	random "$1" "$2" || return
	cm-race -w -s "$3" || status=$?
	no_faults
	[ "$status" -eq 0 ] || return "$status"
	nothing_left 60 || return
	run_rping "" 60 -s -a $A4 -p 7999 -C 3 & server=$!
	await_listener "comm rping" || return
	run_rping "" 60 -c -a $A4 -p 7999 -C 3 || return
	ends_within 30 $server
}

# The sweep prints a case for each command in each state.
if [ "${1:-}" != random ]; then
	cm-fault "$@" | tee "$TMP/sweep" | grep --line-buffered -v '^1\.\.'
	RESULTS=$(grep -cE '^(not )?ok ' "$TMP/sweep")
	FAILED=$(grep -c '^not ok ' "$TMP/sweep")
	check "the sweep came to its end" grep '^1\.\.' "$TMP/sweep"
fi
if [ $# -eq 0 ] || [ "$1" = random ]; then
	check "one allocation of fifty fails" short failslab 2 30
	check "one allocation of five fails" short failslab 20 30
	check "one page of five fails" short fail_page_alloc 20 15
fi
finish
