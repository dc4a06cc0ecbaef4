#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The scripts for bpftrace of the package: each sees what programs have done. Needs bpftrace.sqfs in the
# current directory.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/image.sh
. "$SELFTESTS/lib/image.sh"

SCRIPTS=/mnt/repo/tools/rdma-cm/bpftrace
use_image bpftrace.sqfs || {
	skip "scripts for bpftrace" "there is no bpftrace.sqfs (tools/bpftrace)"
	finish
}

# trace SCRIPT: it runs, until "traced" ends it, and prints what it has counted: $TMP/counted.
trace() {
	: >"$TMP/counted"
	bpftrace -f json "$SCRIPTS/$1.bt" >"$TMP/counted" 2>"$TMP/err" & TRACER=$!
	wait_for 120 grep -q attached_probes "$TMP/counted" && wait_for 60 attached || fail "$(cat "$TMP/err" "$TMP/counted")"
}

# It says so before it attaches them, each of which is a file of it: for a while there are no more.
attached() {
	local before now=("/proc/$TRACER/fd"/*)
	before=${#now[@]}
	pause 3
	now=("/proc/$TRACER/fd"/*)
	[ "${#now[@]}" -eq "$before" ]
}

traced() {
	kill -INT "$TRACER" && ends_within 60 "$TRACER" || fail "$(cat "$TMP/err")" || return
	cat "$TMP/counted"
}

# counts KEY NUMBER...: so many are in the histogram of this key, or one of these numbers.
counts() {
	local counted want
	counted=$(jq -s --arg key "$1" '[.[] | select(.type == "hist").data | .[][$key] // empty | .[].count] | add // 0' "$TMP/counted")
	for want in "${@:2}"; do
		[ "$counted" -ne "$want" ] || return 0
	done
	fail "$1: $counted, not $2"
}

phases() {
	trace phases && connection 7370 || return
	! timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7371 -C 1 || fail "connected to nobody" || return
	traced && counts route 2 && counts answer 1 && counts accept 1 && counts RTU 1 && counts refusal 1 && counts "given up" 0 &&
		counts disconnect 1 0
}
check "phases: a connection and a refusal" phases

calls() {
	trace calls && connection 7373 && traced || return
	counts rping,rdma_connect 1 && counts rping,rdma_accept 1 && counts rping,rdma_listen 1 && counts rping,rdma_resolve_addr 1
}
check "calls: the functions of librdmacm that a client and a server call" calls
finish
