#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The scripts for bpftrace of the package: each sees what programs have done, and prints what Documentation/administration.rst
# quotes, but for times. Needs bpftrace.sqfs in the current directory.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/image.sh
. "$SELFTESTS/lib/image.sh"
# shellcheck source=selftests/lib/reader.sh
. "$SELFTESTS/lib/reader.sh"

# As the package has them.
SCRIPTS=/usr/share/rdma-cm/bpftrace
mkdir -p "$SCRIPTS" && cp /mnt/repo/tools/rdma-cm/bpftrace/*.bt "$SCRIPTS"
use_image bpftrace.sqfs || {
	skip "scripts for bpftrace" "there is no bpftrace.sqfs (tools/bpftrace)"
	finish
}

# trace SCRIPT: it runs, until "traced" ends it, and writes what it has counted into the file COUNTED.
trace() {
	COUNTED=/tmp/$1
	: >"$COUNTED"
	typed a "bpftrace -o $COUNTED $SCRIPTS/$1.bt"
	bpftrace -o "$COUNTED" "$SCRIPTS/$1.bt" >"$TMP/out" 2>"$TMP/err" & TRACER=$!
	wait_for 120 grep -q '^Attaching ' "$COUNTED" && wait_for 60 attached || fail "$(cat "$TMP/err" "$COUNTED")"
}

# It says so before it attaches them, each of which is a file of it: for a while there are no more.
attached() {
	local before now=("/proc/$TRACER/fd"/*)
	before=${#now[@]}
	pause 3
	now=("/proc/$TRACER/fd"/*)
	[ "${#now[@]}" -eq "$before" ]
}

# traced LINE: the reader looks at the file with that.
traced() {
	kill -INT "$TRACER" && ends_within 60 "$TRACER" || fail "$(cat "$TMP/err")" || return
	cat "$TMP/out" "$COUNTED"
	! grep -q . "$TMP/out" && at a "$1"
}

# Buckets are other ones in each run, as is the order of histograms, and whether the end of a connection is asked for by one
# end or both.
VARIES='/^(\[|@us\[disconnect\]:)/d' ORDER=sort

# counts KEY NUMBER...: so many are in the histogram of this key, or one of these numbers.
counts() {
	local counted want
	counted=$(awk -v "key=@us[$1]:" '/^@/ { found = $0 == key } found && sub(/^\[[^)\]]*[)\]]/, "") { sum += $1 } END { print sum + 0 }' \
		"$COUNTED")
	for want in "${@:2}"; do
		[ "$counted" -ne "$want" ] || return 0
	done
	fail "$1: $counted, not $2"
}

phases() {
	trace phases && connection 7370 || return
	! timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7371 -C 1 || fail "connected to nobody" || return
	traced "cat -s $COUNTED" && counts route 2 && counts answer 1 && counts accept 1 && counts RTU 1 && counts refusal 1 && counts "given up" 0 &&
		counts disconnect 1 0
}
situation phases phases

calls() {
	trace calls && connection 7373 && traced "sed -nE '/rdma_(connect|accept|listen)\]/,/^\$/p' $COUNTED" || return
	counts "rping, rdma_connect" 1 && counts "rping, rdma_accept" 1 && counts "rping, rdma_listen" 1 &&
		counts "rping, rdma_resolve_addr" 1
}
situation calls calls
finish
