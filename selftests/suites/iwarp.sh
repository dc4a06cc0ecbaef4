#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connections over iWARP, with the software driver siw: the debug kernel has it, for the
# stock kernel tools/siw builds siw.ko into the guest's share. Two devices over
# an interface pair of their own: siw0 here and siw1 in the namespace "peer".
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

D4=10.80.0.2 D6=fd80::2		# of siw1, in the namespace "peer"

if ! has_siw; then
	skip "iWARP" "this kernel has no siw, and there is no siw.ko (tools/siw)"
	finish
fi

DEVICE=siw0
plug() {
	rdma link add siw0 type siw netdev w0
}

# A receive that rping posts after its queue pair has failed stays there, since nobody tells the driver; rping
# waits for it. Over C as well.
LATE_RECEIVES_STAY=1

setup() {
	siw0 netns peer || return
	ip -n peer addr add "$D4/24" dev w1 && ip -n peer addr add "$D6/64" dev w1 nodad &&
		ip -n peer link set w1 up || return
	$PEER rdma link add siw1 type siw netdev w1
}
check "two devices" setup || finish

check "IPv4, one device" exchange "" "" "$C4" "$C4"
check "IPv6, one device" exchange "" "" "$C6" "$C6"
check "IPv4, server in the other namespace" exchange "$PEER" "" "$D4" "$D4"
check "IPv4, client in the other namespace" exchange "" "$PEER" "$C4" "$C4"
check "IPv6, server in the other namespace" exchange "$PEER" "" "$D6" "$D6"
check "IPv6, client in the other namespace" exchange "" "$PEER" "$C6" "$C6"
check "IPv4, wildcard listener" exchange "" "$PEER" 0.0.0.0 "$C4"
check "IPv6, wildcard listener" exchange "" "$PEER" :: "$C6"

# iw_cm and siw do not do this, so it fails in the same way over C. The driver calls the address
# that an IPv4 client of an IPv6 listener is at an IPv6 one, which no interface has.
mapped() {
	local server
	rping -s -a :: >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	! $PEER timeout $((20 * PATIENCE)) rping -c -a "$C4" -C 1 >"$TMP/client" 2>&1 || fail "connected" || return
	cat "$TMP/client"
	grep -q "REJECTED, error -104" "$TMP/client" || fail "not refused" || return
	runs "$server" || fail "the server is gone" || return
	end "$server"
	nothing_left
}
check "IPv4 to an IPv6 wildcard listener is refused" mapped

# rdma_establish() is for connections whose program sees the answer first; iWARP's are there then.
own_queue_pair() {
	local server
	rping -s -a "$C4" -C 1 -q >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	! timeout $((20 * PATIENCE)) rping -c -a "$C4" -C 1 -q >"$TMP/client" 2>&1 || fail "connected" || return
	cat "$TMP/client"
	grep -q "rdma_establish: Invalid argument" "$TMP/client" || fail "another error" || return
	end "$server"
	nothing_left
}
check "rdma_establish() is for others" own_queue_pair

# The number of clients at a time is limited to the backlog of rping's listener: siw has no memory
# for work of connections beyond that.
client() {
	run_rping "$PEER" 20 -c -a "$C4" -C 3
}

persistent() {
	local server clients i bad=0
	rping -s -P -a "$C4" >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	for i in $(seq 6); do
		client & clients=($!)
		client & clients+=($!)
		wait "${clients[0]}" || bad=$((bad + 1))
		wait "${clients[1]}" || bad=$((bad + 1))
	done
	end "$server" || return
	[ "$bad" -eq 0 ] || fail "$bad of 12 clients failed" || return
	nothing_left
}
check "persistent server, 12 clients" persistent

# programs SERVER -- CLIENT: a pair of which both succeed.
programs() {
	local words=() server status=0
	while [ "$1" != -- ]; do words+=("$1") && shift; done
	shift
	timeout $((60 * PATIENCE)) "${words[@]}" >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm ${words[0]}" || return
	# shellcheck disable=SC2086
	$PEER timeout $((60 * PATIENCE)) "$@" || status=$?
	ends_within 20 "$server" || { status=$?; echo "server: $status"; }
	cat "$TMP/server"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}
check "ucmatose, 1 connection" programs ucmatose -b "$C4" -- ucmatose -s "$C4"
check "ucmatose, 20 connections" programs ucmatose -b "$C4" -c 20 -- ucmatose -s "$C4" -c 20
check "ucmatose, IPv6" programs ucmatose -b "$C6" -- ucmatose -s "$C6"
check "rdma_server and rdma_client" thrice programs rdma_server -s "$C4" -- rdma_client -s "$C4"

# rping does not end when it cannot connect.
nobody() {
	local start=$SECONDS
	! timeout $((60 * PATIENCE)) ucmatose -s "$1" >"$TMP/client" 2>&1 || fail "connected to nobody" || return
	cat "$TMP/client"
	grep -q "Connection refused" "$TMP/client" || fail "another error" || return
	[ $((SECONDS - start)) -lt $((30 * PATIENCE)) ] || fail "took $((SECONDS - start)) s" || return
	nothing_left
}
check "no server: refused at once" nobody "$D4"
check "no server: refused at once, IPv6" nobody "$D6"

check "RoCE and iWARP at the same time, one listener" both_kinds "$C4"

check "a killed server is missed" killed server "$C4"
check "a killed client is missed" killed client "$C4"

check "the device of a connected server goes" replugged end_unplugged server client "$C4"
check "the device of a listener goes" replugged listener_unplugged "$PEER" "$C4"

# Before anybody has served there: the driver's removal waits for programs that have it open.
comes_later() {
	local server status=0
	unplug || return
	rping -s -P -a 0.0.0.0 >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	for _ in 1 2 3; do
		plug && unplug || return
	done
	plug || return
	run_rping "$PEER" 30 -c -a "$C4" -C 2 || status=$?
	end "$server" || return
	[ "$status" -eq 0 ] || fail "client: $status" || return
	nothing_left
}
check "a device that comes later serves a wildcard listener" replugged comes_later

check "the interface below a listener's device goes" interface_goes siw 10.81.0.1

vlan() {
	# An earlier try may have left this.
	ip link del w0.7 2>/dev/null
	ip -n peer link del w1.7 2>/dev/null
	ip link add link w0 name w0.7 type vlan id 7 && ip addr add 10.82.0.1/24 dev w0.7 &&
		ip link set w0.7 up || return
	ip -n peer link add link w1 name w1.7 type vlan id 7 &&
		ip -n peer addr add 10.82.0.2/24 dev w1.7 && ip -n peer link set w1.7 up || return
	exchange "" "$PEER" 10.82.0.1 10.82.0.1 || return
	ip link del w0.7 && ip -n peer link del w1.7
}
check "an address of a VLAN" vlan

# Ends that come at any moment: while the TCP connection is made, while the request waits, while it is
# answered, while an event is handled, while the other end goes. The kernel log tells.
ends_at_any_time() {
	local server i pids=() end=$((SECONDS + $1))
	while [ "$SECONDS" -lt "$end" ]; do
		rping -s -P -a "$C4" >/dev/null 2>&1 & server=$!
		for i in 1 2 3 4; do
			$PEER rping -c -a "$C4" >/dev/null 2>&1 & pids+=($!)
		done
		sleep 0.$((RANDOM % 6))$((RANDOM % 10))
		for i in "${pids[@]}"; do
			kill -9 "$i" 2>/dev/null
			[ $((RANDOM % 3)) -ne 0 ] || sleep 0.0$((RANDOM % 5))
			[ $((RANDOM % 4)) -ne 0 ] || kill -9 "$server" 2>/dev/null
		done
		end "$server" "${pids[@]}" || fail "a killed process has not ended" || return
		pids=()
	done
	nothing_left 30 || return
	exchange "" "$PEER" "$C4" "$C4"
}
check "ends come while handlers run" ends_at_any_time 25

devices_at_any_time() {
	local server pids=() i
	for i in $(seq 8); do
		rping -s -P -a 0.0.0.0 >/dev/null 2>&1 & server=$!
		$PEER rping -c -a "$C4" >/dev/null 2>&1 & pids=($!)
		$PEER rping -c -a "$C4" >/dev/null 2>&1 & pids+=($!)
		sleep 0.$((RANDOM % 7))
		rdma link del siw0 & pids+=($!)
		sleep 0.$((RANDOM % 3))
		end "$server" "${pids[@]:0:2}" || fail "a killed process has not ended" || return
		wait "${pids[2]}"
		rdma link show siw0/1 >/dev/null 2>&1 || plug || return
	done
	nothing_left 30 || return
	exchange "" "$PEER" "$C4" "$C4"
}
check "the device goes while handlers run" devices_at_any_time

reload() {
	local i
	for i in 1 2 3; do
		cm-use none || return
		[ ! -e /dev/infiniband/rdma_cm ] || fail "the device node is left" || return
		cm-use "$CM" || return
	done
	exchange "" "$PEER" "$C4" "$C4" || return
	# At once: identifiers may still be going. Nothing of them runs after that.
	cm-use none && sleep 3 && cm-use "$CM" || return
	exchange "$PEER" "" "$D4" "$D4"
}
check "unload and load" reload

conformance 'iwarp.*'

gone() {
	$PEER rdma link del siw1 && no_siw0
}
check "everything goes" gone

# The driver begins to watch the server's connection 200 ms after it has sent the answer, and does not notice what came before.
# So the client, at this host, may not be told before the server's accept is over.
late() {
	insmod siw-late.ko && siw0 || return
	exchange "" "" "$C4" "$C4" && exchange "" "" "$C6" "$C6" || return
	no_siw0
}
if [ "$CM" = c ]; then
	skip "a driver that watches a connection late" "C tells the client at once"
elif [ ! -e siw-late.ko ]; then
	skip "a driver that watches a connection late" "there is no siw-late.ko (tools/siw --late)"
else
	check "a driver that watches a connection late" late
fi
finish
