#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Allocations of the connection manager for parts of the kernel, while they do all that the modules
# of consumer/ do, and in its own work items, also those that end what a program leaves behind, wait
# for no input or output: it may be that of storage which waits for the connection. Retransmissions
# need no memory at all. Needs reclaim.ko, ibcm.ko, cmid.ko and cmstorm in the current directory.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

COUNTS=/sys/module/reclaim/parameters
RETRIES=/sys/class/infiniband/rxe0/ports/1/cm_tx_retries

# runs MODULE: all its tests, which are judged by the suite "consumer".
runs() {
	insmod "$1.ko" && rmmod "$1"
}

# A file with so many connections is closed by work items.
closes() {
	timeout $((100 * PATIENCE)) ./cmstorm both -a "$A4" -n 300 -f 30 --finish=close
}

none_waits() {
	[ "$(<$COUNTS/waits)" -eq 0 ] && return
	dmesg | grep -A 12 'reclaim: ' | tail -n 50
	fail "$(<$COUNTS/waits) may wait for input or output"
}

retries() {
	cat "$RETRIES"/* | awk '{ sum += $1 } END { print sum }'
}

none_in_timers() {
	echo "$(<$COUNTS/timed) allocations in timers, $(retries) messages sent again, before that $before"
	[ "$(<$COUNTS/timed)" -eq 0 ] && [ "$(retries)" -gt "$before" ]
}

for file in reclaim.ko ibcm.ko cmid.ko cmstorm; do
	[ -e "$file" ] && continue
	skip "memory for storage" "there is no $file"
	finish
done
if [ "$CM" != rust ]; then
	# It retransmits without memory, but what comes in and callbacks allocate with GFP_KERNEL.
	skip "memory for storage" "C may wait for input and output where messages come in (differences.rst)"
	finish
fi
before=$(retries)
# An address of nobody that does not have to be looked for.
ip neigh replace 10.0.0.98 lladdr 02:00:00:00:00:98 dev v0 nud permanent
check "the module that looks" insmod reclaim.ko
check "a consumer of ib_cm" runs ibcm
check "a consumer of rdma_cm" runs cmid
check "a program that leaves connections behind" closes
check "what may wait was seen" test "$(<$COUNTS/seen)" -gt 1000
check "none waits for input or output" none_waits
check "what is sent again allocates nothing" none_in_timers
check "the module that looks goes" rmmod reclaim
ip neigh del 10.0.0.98 dev v0
finish
