#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tracepoints: groups, names and fields are those of the C modules, and a connection
# leaves the same trace whichever connection manager is loaded.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

tracefs=/sys/kernel/tracing
groups=(rdma_cma ib_cma)

# formats DIR: what the loaded module says of its events, a file for each.
formats() {
	local event
	mkdir -p "$1"
	for event in "${groups[@]/#/$tracefs/events/}"; do
		for event in "$event"/*/; do
			# The number is given out when the module is loaded.
			grep -v '^ID:' "$event/format" >"$1/$(basename "$event")" || return
		done
	done
}

same_formats() {
	cm-use c && formats "$TMP/c" && cm-use "$CM" && formats "$TMP/own" || return
	[ "$(ls "$TMP/c" | wc -l)" -ge 53 ] || fail "C has only: $(ls "$TMP/c")" || return
	diff -r "$TMP/c" "$TMP/own"
}
check "events and their formats are those of C" same_formats

# record FILE COMMAND...: what is traced while the command runs.
record() {
	local file=$1 group status
	shift
	echo >$tracefs/trace
	for group in "${groups[@]}"; do
		echo 1 >"$tracefs/events/$group/enable"
	done
	"$@"
	status=$?
	for group in "${groups[@]}"; do
		echo 0 >"$tracefs/events/$group/enable"
	done
	sed -nE 's/^.* [0-9]+\.[0-9]+: ((cm|icm)_.*)$/\1/p' $tracefs/trace >"$file"
	return "$status"
}

# of SRC FILE: the events of the end at this address, without its numbers; repeated
# lines of a call and its return become one.
of() {
	sed -nE -e "s/^(cm_[a-z_]+): cm.id=[0-9]+ src=$1:[0-9]+ dst=[^ ]+ (tos=0 ?)?/\1 /p" "$2" |
		sed -E -e 's/ (qp_num|device)=.*//' -e 's/ +$//'
}

messages() {
	sed -nE 's/^(icm_[a-z_]+):.*( (state|reason)=[A-Z_]+).*/\1\2/p; s/^(icm_issue_[a-z]+):.*/\1/p' "$1"
}

same() {
	diff -u "$1" - && return
	fail "want what has a minus sign, got what has a plus sign"
}

traced_connection() {
	record "$TMP/trace" connection 7300 || return
	cat >"$TMP/client" <<-'END'
		cm_id_attach
		cm_event_handler ADDR_RESOLVED (0/0)
		cm_event_done ADDR_RESOLVED consumer returns 0
		cm_event_handler ROUTE_RESOLVED (2/0)
		cm_event_done ROUTE_RESOLVED consumer returns 0
		cm_send_req
		cm_prepare_mra
		cm_event_handler CONNECT_RESPONSE (5/0)
		cm_event_done CONNECT_RESPONSE consumer returns 0
		cm_send_rtu
		cm_disconnect
		cm_sent_dreq
	END
	# The order of the DREP and the end is a matter of time.
	of "$A4" "$TMP/trace" | sed '/cm_sent_dreq/q' | grep -v DISCONNECTED |
		same "$TMP/client" || return
	cat >"$TMP/server" <<-'END'
		cm_id_attach
		cm_req_handler REQ_RECEIVED (1)
		cm_id_attach
		cm_event_handler CONNECT_REQUEST (4/0)
		cm_event_done CONNECT_REQUEST consumer returns 0
		cm_prepare_mra
		cm_send_rep
		cm_event_handler ESTABLISHED (9/0)
		cm_event_done ESTABLISHED consumer returns 0
		cm_event_handler DISCONNECTED (10/0)
		cm_event_done DISCONNECTED consumer returns 0
		cm_disconnect
		cm_sent_drep
		cm_id_destroy
		cm_id_destroy
	END
	of "$B4" "$TMP/trace" | same "$TMP/server" || return
	cat >"$TMP/messages" <<-'END'
		icm_send_req state=IDLE
		icm_send_rep state=MRA_REQ_SENT
		icm_send_rtu state=MRA_REP_SENT
		icm_send_dreq state=ESTABLISHED
		icm_dreq_skipped state=DREQ_RCVD
		icm_send_drep state=TIMEWAIT
	END
	messages "$TMP/trace" | same "$TMP/messages"
}
# Early retries on a slow machine are traced, too.
early_retry 0
check "a connection" traced_connection

nobody_there() {
	timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7301 -C 1
	[ $? -ne 124 ]
}

traced_refusal() {
	record "$TMP/trace" nobody_there || return
	cat >"$TMP/messages" <<-'END'
		icm_issue_rej
		icm_no_listener_err state=REQ_RCVD
		icm_send_req state=IDLE
	END
	messages "$TMP/trace" | sort | same "$TMP/messages" || return
	of "$A4" "$TMP/trace" | grep 'cm_event_handler REJECTED (8/8)'
}
check "a request for nobody" traced_refusal

# The numbers of the two ends, by which a script joins the events of a connection.
ids_agree() {
	local req rep
	record "$TMP/trace" connection 7300 || return
	req=$(sed -nE 's/^icm_send_req: local_id=([0-9]+) remote_id=0 .*/\1/p' "$TMP/trace")
	rep=$(sed -nE "s/^icm_send_rep: local_id=([0-9]+) remote_id=$req .*/\1/p" "$TMP/trace")
	[ -n "$req" ] && [ -n "$rep" ] || fail "REQ $req, REP $rep" || return
	grep "^icm_send_rtu: local_id=$req remote_id=$rep " "$TMP/trace" &&
		grep "^icm_send_drep: local_id=$rep remote_id=$req " "$TMP/trace"
}
check "communication ids" ids_agree

devices() {
	rdma link del rxe0 && rdma link add rxe0 type rxe netdev v0
}

traced_devices() {
	record "$TMP/trace" devices || return
	grep '^cm_remove_one: device name=rxe0' "$TMP/trace" &&
		grep '^cm_add_one: device name=rxe0' "$TMP/trace"
}
check "devices that come and go" traced_devices

# A program whose device goes, and which then ends.
ends_after_its_device() {
	local server
	rping -s -P -a "$A4" >/dev/null 2>&1 & server=$!
	await_listener "comm rping" || return
	devices
	kill -9 "$server"
	wait "$server"
	nothing_left
}

traced_ends() {
	record "$TMP/trace" ends_after_its_device || return
	sed -nE 's/^cm_id_destroy: cm.id=([0-9]+) .*/\1/p' "$TMP/trace" | sort >"$TMP/ended"
	[ -s "$TMP/ended" ] || fail "no end was traced" || return
	[ -z "$(uniq -d "$TMP/ended")" ] || fail "ended twice: $(uniq -d "$TMP/ended")"
}
check "an identifier ends once, whose device has gone before" traced_ends
early_retry 20
finish
