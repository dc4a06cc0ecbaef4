#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The suite checks the output of "rdma resource show cm_id": the same columns and values for the
# same ids, whichever connection manager is loaded.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# Numbers that differ from run to run become letters.
normal() {
	sed -E -e 's/cm-idn [0-9]+/cm-idn N/' -e 's/lqpn [0-9]+/lqpn Q/' -e 's/pid [0-9]+/pid P/' \
		-e 's/(addr 10\.0\.0\.[12]|addr fd00::[12]):[3-6][0-9]{4}/\1:E/' -e 's/ +$//' | sort
}

shows() {
	local want=$1 got
	got=$(cm_ids | normal)
	[ "$got" = "$want" ] && return
	diff -u <(echo "$want") <(echo "$got")
}

stop() {
	kill -9 "$@"
	wait "$@" 2>/dev/null
	nothing_left
}

listener() {
	local server
	rping -s -P -a "$1" -p 7200 & server=$!
	await_listener || return
	shows "$2" || return
	stop "$server"
}
check "listener with an address" listener "$A4" \
	"link rxe0/1 cm-idn N state LISTEN ps TCP pid P comm rping src-addr 10.0.0.1:7200 dst-addr 0.0.0.0:0"
check "listener with an IPv6 address" listener "$A6" \
	"link rxe0/1 cm-idn N state LISTEN ps TCP pid P comm rping src-addr fd00::1:7200 dst-addr :::0"
# One of its own for each device, of no port.
check "wildcard listener" listener 0.0.0.0 \
"link rxe0/- cm-idn N state LISTEN ps TCP pid P comm rping src-addr 0.0.0.0:7200
link rxe1/- cm-idn N state LISTEN ps TCP pid P comm rping src-addr 0.0.0.0:7200"

both_ends_have_numbers() {
	[ "$(cm_ids | grep -c "lqpn .* state CONNECT")" -eq 2 ]
}

connected() {
	local server client
	$PEER rping -s -a "$1" -p 7200 & server=$!
	await_listener || return
	rping -c -a "$1" -p 7200 & client=$!
	wait_for 10 both_ends_have_numbers || fail "no connection" || return
	shows "$2" || return
	stop "$server" "$client"
}
check "connection" connected "$B4" \
"link rxe0/1 cm-idn N lqpn Q qp-type RC state CONNECT ps TCP pid P comm rping src-addr 10.0.0.1:E dst-addr 10.0.0.2:7200
link rxe1/1 cm-idn N lqpn Q qp-type RC state CONNECT ps TCP pid P comm rping src-addr 10.0.0.2:7200 dst-addr 10.0.0.1:E
link rxe1/1 cm-idn N state LISTEN ps TCP pid P comm rping src-addr 10.0.0.2:7200 dst-addr 0.0.0.0:0"
check "connection over IPv6" connected "$B6" \
"link rxe0/1 cm-idn N lqpn Q qp-type RC state CONNECT ps TCP pid P comm rping src-addr fd00::1:E dst-addr fd00::2:7200
link rxe1/1 cm-idn N lqpn Q qp-type RC state CONNECT ps TCP pid P comm rping src-addr fd00::2:7200 dst-addr fd00::1:E
link rxe1/1 cm-idn N state LISTEN ps TCP pid P comm rping src-addr fd00::2:7200 dst-addr :::0"

# States that an rping is in only for a moment, with a program that stays there.
cat >"$TMP/states.py" <<'PYTHON'
import sys, time
from pyverbs.cmid import CMID, CMEventChannel, CMEvent, AddrInfo
import pyverbs.cm_enums as ce

def step(channel, want):
    event = CMEvent(channel)
    assert event.event_type == want, event.event_str()
    event.ack_cm_event()

what, dst = sys.argv[1:]
channel = CMEventChannel()
cid = CMID(creator=channel)
if what == "bound":
    cid.bind_addr(AddrInfo(src=dst, src_service="7201", port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE))
else:
    cid.resolve_addr(AddrInfo(dst=dst, dst_service="7201", port_space=ce.RDMA_PS_TCP))
    step(channel, ce.RDMA_CM_EVENT_ADDR_RESOLVED)
    if what == "route":
        cid.resolve_route(2000)
        step(channel, ce.RDMA_CM_EVENT_ROUTE_RESOLVED)
print("ready", flush=True)
time.sleep(120)
PYTHON

state() {
	local program
	: >"$TMP/ready"
	python3 "$TMP/states.py" "$1" "$2" >"$TMP/ready" & program=$!
	wait_for 60 grep -q ready "$TMP/ready" || fail "not ready" || return
	shows "$3" || return
	stop "$program"
}
check "bound id" state bound "$A4" \
	"link rxe0/1 cm-idn N state ADDR_BOUND ps TCP pid P comm python3 src-addr 10.0.0.1:7201 dst-addr 0.0.0.0:0"
check "address resolved" state addr "$B4" \
	"link rxe0/1 cm-idn N state ADDR_RESOLVED ps TCP pid P comm python3 src-addr 10.0.0.1:E dst-addr 10.0.0.2:7201"
check "route resolved" state route "$B4" \
	"link rxe0/1 cm-idn N state ROUTE_RESOLVED ps TCP pid P comm python3 src-addr 10.0.0.1:E dst-addr 10.0.0.2:7201"

as_json() {
	local server keys
	rping -s -P -a "$A4" -p 7200 & server=$!
	await_listener || return
	keys=$(rdma -j resource show cm_id | jq -r '.[0] | keys | join(" ")')
	[ "$keys" = "cm-idn comm dst-addr ifindex ifname pid port ps src-addr state" ] ||
		fail "keys: $keys" || return
	[ "$(rdma -j resource show cm_id | jq -r '.[0].pid')" = "$server" ] || fail "other pid" || return
	rdma resource show | grep "^.*rxe0:.*cm_id 1" >/dev/null || fail "$(rdma resource show)" || return
	stop "$server"
}
check "JSON and totals" as_json

by_number() {
	local server number
	rping -s -P -a "$A4" -p 7200 & server=$!
	await_listener || return
	number=$(rdma -j resource show cm_id | jq -r '.[0]."cm-idn"')
	rdma resource show cm_id link rxe0 cm-idn "$number" | grep "cm-idn $number" >/dev/null ||
		fail "number $number is not found" || return
	[ -z "$(rdma resource show cm_id link rxe0 cm-idn 999999 2>/dev/null)" ] ||
		fail "number 999999 is found" || return
	stop "$server"
}
check "query by number" by_number

while_churning() {
	local server i
	rping -s -P -a "$A4" >/dev/null 2>&1 & server=$!
	await_listener || return
	(while :; do rdma resource show cm_id >/dev/null; done) & local reader=$!
	for i in $(seq 10); do
		run_rping "" 30 -c -a "$A4" -C 1 >/dev/null || fail "client $i" || return
	done
	kill "$reader"
	stop "$server"
}
check "reading while connections come and go" while_churning
finish
