#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Removal of the device while programs use it.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

DEVICE=rxe0 NETDEV=v0 AT=''
plug() {
	# shellcheck disable=SC2086
	rxe_again "$DEVICE" "$NETDEV" $AT
}

check "the device of a connected server" replugged end_unplugged server client "$A4"
check "the device of a connected client" \
	eval 'DEVICE=rxe1 NETDEV=v1 AT=$PEER replugged end_unplugged client server "$A4"'
check "the device of a listener" replugged listener_unplugged "$PEER" "$A4"

wildcard() {
	local server status=0
	rping -s -P -a 0.0.0.0 >"$TMP/near" 2>&1 & server=$!
	await_listener "comm rping" || return
	unplug || return
	runs "$server" || fail "the listener is gone" || return
	plug || return
	# It listens on the new device, too.
	run_rping "$PEER" 30 -c -a "$A4" -C 2 || status=$?
	kill -9 "$server"
	ends_within 10 "$server"
	[ "$status" -eq 0 ] || fail "client: $status" || return
	nothing_left
}
check "a device of a wildcard listener" wildcard

three_listen() {
	[ "$(cm_ids | grep -c 'state LISTEN')" -ge 3 ]
}

# Listeners that end while a device gets their entries: none of these keeps the device.
ending_wildcards() {
	local i j servers
	for i in $(seq 20); do
		servers=()
		for j in 1 2 3; do
			rping -s -P -a 0.0.0.0 -p $((7400 + j)) >/dev/null 2>&1 &
			servers+=($!)
		done
		wait_for 5 three_listen || fail "they do not listen" || return
		unplug || fail "round $i" || return
		plug &
		sleep "0.0$((i % 5))"
		kill -9 "${servers[@]}"
		wait
	done
	unplug || fail "an entry keeps the device" || return
	plug && nothing_left && exchange "" "$PEER" "$A4" "$A4"
}
check "wildcard listeners that end while a device comes" ending_wildcards

many() {
	local server clients=() i
	rping -s -P -a "$A4" >/dev/null 2>&1 & server=$!
	await_listener "comm rping" || return
	for i in $(seq 10); do
		$PEER rping -c -a "$A4" >/dev/null 2>&1 &
		clients+=($!)
	done
	sleep 1.5
	unplug || return
	kill -9 "$server" "${clients[@]}" 2>/dev/null
	plug || return
	nothing_left 20 || return
	exchange "" "$PEER" "$A4" "$A4"
}
check "a device with ten connections" many

both() {
	local server client
	$PEER rping -s -a "$B4" >/dev/null 2>&1 & server=$!
	await_listener "comm rping" || return
	rping -c -a "$B4" >/dev/null 2>&1 & client=$!
	wait_for 10 cm_id_in CONNECT "comm rping" || fail "no connection" || return
	unplug & local one=$!
	DEVICE=rxe1 AT=$PEER unplug || return
	wait "$one" || return
	kill -9 "$server" "$client" 2>/dev/null
	plug && $PEER rdma link add rxe1 type rxe netdev v1 || return
	sleep 0.5
	nothing_left || return
	exchange "" "$PEER" "$A4" "$A4"
}
check "both devices at the same time" both

# client_unplugged [COMMAND...]: the device of a client goes as soon as it connects, and after that command.
client_unplugged() {
	local server client status=0
	$PEER rping -s -P -a "$B4" >/dev/null 2>&1 & server=$!
	await_listener "comm rping" || return
	rping -c -a "$B4" >/dev/null 2>&1 & client=$!
	wait_for 10 cm_id_in CONNECT "comm rping" || { fail "no connection"; status=1; }
	"$@" || status=1
	unplug || status=1
	kill -9 "$server" "$client" 2>/dev/null
	plug || return
	[ "$status" -eq 0 ] && nothing_left 20 && exchange "" "$PEER" "$A4" "$A4"
}
check "the device of a client that connects" client_unplugged
check "the device of a client that ends" client_unplugged eval 'kill -9 "$client"'

# requests_came NUMBER: whether the device has received more requests than that.
requests_came() {
	[ "$(cat /sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/req)" -gt "$1" ]
}

# The client knows this host, which has to ask where it is before it can refuse: no endpoint sends that, which the removal
# would wait for. The device goes while the refusal is being sent.
refusal_unplugged() {
	local before client status=0
	before=$(</sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/req)
	$PEER ip neigh replace "$A4" lladdr "$(</sys/class/net/v0/address)" dev v1 nud permanent &&
		ip neigh flush dev v0 || return
	$PEER rping -c -a "$A4" -p 7999 >/dev/null 2>&1 & client=$!
	wait_for 20 requests_came "$before" || { fail "no request"; status=1; }
	unplug || status=1
	kill -9 "$client" 2>/dev/null
	$PEER ip neigh del "$A4" dev v1 || status=1
	plug || return
	[ "$status" -eq 0 ] && nothing_left 20 && exchange "" "$PEER" "$A4" "$A4"
}
check "the device of a host that refuses" refusal_unplugged

# Both ends at the device that goes: what they said to each other then would come too late.
with_itself() {
	local server client events=/sys/kernel/tracing/events
	rping -s -a "$A4" >/dev/null 2>&1 & server=$!
	await_listener "comm rping" || return
	stdbuf -oL rping -c -v -a "$A4" >"$TMP/near" 2>&1 & client=$!
	wait_for 10 grep -q "ping data" "$TMP/near" || fail "no connection" || return
	# A program that sees its queue pair fail may disconnect before its connection is told of the removal: they stand still. On
	# a slow host the messages that make the connection are sent again early, and may still be on the way.
	kill -STOP "$server" "$client"
	sleep 1
	echo >/sys/kernel/tracing/trace
	echo 1 | tee "$events/ib_mad/ib_mad_send_done_handler/enable" "$events/rdma_cma/cm_remove_one/enable" >/dev/null
	unplug || return
	echo 0 | tee "$events/ib_mad/ib_mad_send_done_handler/enable" "$events/rdma_cma/cm_remove_one/enable" >/dev/null
	kill -9 "$server" "$client" 2>/dev/null
	plug || return
	sed -n '/cm_remove_one/,$p' /sys/kernel/tracing/trace >"$TMP/removal"
	grep -q cm_remove_one "$TMP/removal" || fail "no removal was traced" || return
	! grep -F ib_mad_send_done_handler "$TMP/removal" || fail "messages were sent" || return
	nothing_left || return
	exchange "" "$PEER" "$A4" "$A4"
}
if [ "$CM" = rust ]; then
	check "the device of both ends" with_itself
else
	skip "the device of both ends" "C has it send to itself, which ib_mad does not always survive"
fi

cycles() {
	local i
	for i in $(seq 10); do
		unplug && plug || return
	done
	exchange "" "$PEER" "$A4" "$A4"
}
check "remove and add, ten times" cycles

check "the network interface below the device" interface_goes rxe 10.79.0.1
finish
