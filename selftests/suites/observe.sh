#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The suite checks the view of monitoring on healthy connections: the checks that were proposed for
# the kernel's own selftests in May 2026 (baseline, trace sequence, counter delta, fault injection),
# each as a case here.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

TRACING=/sys/kernel/tracing
GROUPS_OF_COUNTERS=(cm_tx_msgs cm_tx_retries cm_rx_msgs cm_rx_duplicates)
MESSAGES=(req mra rej rep rtu dreq drep sidr_req sidr_rep lap apr)
CONNECTIONS=4

# workload: some connections, one after the other, whose data arrive and that end well.
workload() {
	local server i status=0
	$PEER rping -s -P -a "$B4" -p 7320 >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	for ((i = 0; i < CONNECTIONS; i++)); do
		run_rping "" 30 -c -a "$B4" -p 7320 -C 2 -V || status=$?
	done
	# Until the last one is over at both ends.
	wait_for 10 sh -c '! rdma resource show cm_id | grep -q "state CONNECT"' || status=1
	end "$server" || return
	[ "$status" -eq 0 ] || cat "$TMP/server"
	return "$status"
}

# counters DEVICE FILE: "group.message value", a line each; all must be there.
counters() {
	local group message value
	for group in "${GROUPS_OF_COUNTERS[@]}"; do
		for message in "${MESSAGES[@]}"; do
			value=$(<"/sys/class/infiniband/$1/ports/1/$group/$message") || return
			[[ $value =~ ^[0-9]+$ ]] || fail "$group/$message: $value" || return
			echo "$group.$message $value"
		done
	done >"$2"
}

baseline() {
	local event
	for event in icm_send_req icm_send_rep icm_send_rtu icm_send_dreq icm_send_drep icm_mad_send_err; do
		[ "$(<"$TRACING/events/ib_cma/$event/enable")" = 0 ] || fail "$event" || return
	done
	counters rxe0 "$TMP/baseline" && counters rxe1 "$TMP/baseline" || return
	[ "$(wc -l <"$TMP/baseline")" -eq 44 ]
}
check "baseline: tracepoints and counters are there to be read" baseline

# traced FILE COMMAND...: what ib_cma says while the command runs.
traced() {
	local file=$1 status
	shift
	echo >$TRACING/trace
	echo 1 >$TRACING/events/ib_cma/enable
	"$@"
	status=$?
	echo 0 >$TRACING/events/ib_cma/enable
	sed -nE 's/^.* [0-9]+\.[0-9]+: (icm_.*)$/\1/p' $TRACING/trace >"$file"
	return "$status"
}

# no_errors FILE: none but that of a DREP that was sent already.
no_errors() {
	! grep -E '^icm_[a-z_]*_err:' "$1" | grep -v '^icm_send_drep_err: .*state=TIMEWAIT'
}

# in_order FILE: each connection has its REQ, REP, RTU, DREQ and DREP, once, in this order.
in_order() {
	local local_id rep_id want='req rep rtu dreq drep' got complete=0
	for local_id in $(sed -nE 's/^icm_send_req: local_id=([0-9]+) .*/\1/p' "$1"); do
		rep_id=$(sed -nE "s/^icm_send_rep: local_id=([0-9]+) remote_id=$local_id .*/\1/p" "$1")
		[ -n "$rep_id" ] || fail "no REP for $local_id" || return
		got=$(sed -nE "s/^icm_send_([a-z]+): local_id=($local_id|$rep_id) .*/\1/p" "$1" | xargs)
		[ "$got" = "$want" ] || fail "$local_id and $rep_id: $got" || return
		complete=$((complete + 1))
	done
	[ "$complete" -eq "$CONNECTIONS" ] || fail "$complete connections"
}

sequence() {
	traced "$TMP/trace" workload || return
	in_order "$TMP/trace" && no_errors "$TMP/trace" && return
	cat "$TMP/trace"
	return 1
}
check "trace sequence: each connection leaves its messages in order, and no error" sequence

# grown DEVICE GROUP.MESSAGE: by how much since counters wrote $TMP/before-DEVICE.
grown() {
	local before after
	before=$(sed -n "s/^$2 //p" "$TMP/before-$1")
	after=$(sed -n "s/^$2 //p" "$TMP/after-$1")
	echo $((after - before))
}

deltas() {
	local device group message by
	counters rxe0 "$TMP/before-rxe0" && counters rxe1 "$TMP/before-rxe1" && workload || return
	counters rxe0 "$TMP/after-rxe0" && counters rxe1 "$TMP/after-rxe1" || return
	for device in rxe0 rxe1; do
		for group in "${GROUPS_OF_COUNTERS[@]}"; do
			for message in "${MESSAGES[@]}"; do
				by=$(grown $device "$group.$message")
				[ "$by" -ge 0 ] || fail "$device $group.$message: $by" || return
				case $group in
				cm_tx_retries | cm_rx_duplicates)
					[ "$by" -le 10 ] || fail "$device $group.$message: $by" || return
					;;
				esac
			done
		done
	done
	# The active end, the passive one, and the end of it all.
	for message in rxe0:cm_tx_msgs.req rxe1:cm_rx_msgs.req rxe1:cm_tx_msgs.rep rxe0:cm_rx_msgs.rep \
		rxe0:cm_tx_msgs.rtu rxe1:cm_rx_msgs.rtu; do
		by=$(grown "${message%:*}" "${message#*:}")
		[ "$by" -ge $CONNECTIONS ] || fail "$message: $by" || return
	done
}
check "counter delta: none shrinks, and few messages come twice" deltas

# slow_network COMMAND...: an answer takes far longer than those that came before.
slow_network() {
	local status=0
	tc qdisc add dev v0 root netem delay 400ms || return
	"$@" || status=$?
	tc qdisc del dev v0 root
	return "$status"
}

# Early retries make that usual: what comes twice is not counted among the errors.
twice() {
	local device message total=0
	counters rxe0 "$TMP/before-rxe0" && counters rxe1 "$TMP/before-rxe1" || return
	traced "$TMP/trace" slow_network workload || return
	counters rxe0 "$TMP/after-rxe0" && counters rxe1 "$TMP/after-rxe1" || return
	no_errors "$TMP/trace" || return
	for device in rxe0 rxe1; do
		for message in "${MESSAGES[@]}"; do
			total=$((total + $(grown $device "cm_rx_duplicates.$message")))
		done
	done
	# C sends nothing twice so soon.
	echo "duplicates: $total"
	[ "$CM" = c ] || [ "$total" -gt 0 ]
}
check "messages that come twice are no errors" twice

refused() {
	local i
	for ((i = 0; i < CONNECTIONS; i++)); do
		timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7321 -C 1
		[ $? -ne 124 ] || return
	done
	# So that the answers to the copies are seen, too.
	sleep 1
}

refused_twice() {
	traced "$TMP/trace" slow_network refused || return
	local refusals
	refusals=$(grep -c '^icm_issue_rej' "$TMP/trace")
	echo "$refusals refusals of $CONNECTIONS requests"
	[ "$CM" = c ] || [ "$refusals" -gt $CONNECTIONS ] || return
	# Each request is for nobody; none of its refusals is an error of the one who asked.
	! grep -E '^icm_[a-z_]*_err:' "$TMP/trace" | grep -v '^icm_no_listener_err'
}
check "a refusal that comes twice is no error" refused_twice

failslab=/sys/kernel/debug/failslab
injected() {
	local knob status left
	for knob in verbose:0 task-filter:1 probability:100 interval:100 times:20 ignore-gfp-wait:0; do
		echo "${knob#*:}" >"$failslab/${knob%:*}" || return
	done
	# It may fail, but not hang. Its programs, and they alone, are those whose allocations fail.
	(
		trap end_jobs EXIT
		echo 1 >/proc/self/make-it-fail
		workload
	) >"$TMP/injected" 2>&1
	status=$? left=$(<$failslab/times)
	for knob in task-filter:0 probability:0 times:0; do
		echo "${knob#*:}" >"$failslab/${knob%:*}"
	done
	cat "$TMP/injected"
	echo "status $status while allocations failed; $left failures were left of 20"
	[ "$left" -lt 20 ] || return
	wait_for 100 no_cm_ids || return
	workload && nothing_left
}
if [ -d $failslab ]; then
	check "fault injection: when it is over all is as before" injected
else
	skip "fault injection: when it is over all is as before" "the kernel has none"
fi
finish
