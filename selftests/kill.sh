#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kill -9 of either end: the other is told, and nothing is left.
# seconds: 400
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"

# Starts a pair that pings for ever: sets server and client.
endless() {
	# shellcheck disable=SC2086
	$PEER stdbuf -oL rping -s -d -v -a "$B4" >"$TMP/server" 2>&1 &
	server=$!
	listening "comm rping" || return
	stdbuf -oL rping -c -d -v -a "$B4" >"$TMP/client" 2>&1 &
	client=$!
	wait_for 10 grep -q "ping data" "$TMP/client" || {
		tail "$TMP/server" "$TMP/client"
		return 1
	}
}

# Keeps the log short: only what the connection manager said.
events() {
	echo "--- $1"
	grep -av 'ping data\|completion\|RDMA\|server posted\|server received\|write adv' "$TMP/$1" |
		tail -n 20
}

# other_end VICTIM OTHER
other_end() {
	local victim=$1 other=$2 server client start
	endless || return
	kill -9 "${!victim}"
	start=$SECONDS
	wait_for 10 grep -q "cma_event type RDMA_CM_EVENT_DISCONNECTED" "$TMP/$other" || {
		events server
		events client
		kill -9 "${!other}"
		fail "no DISCONNECTED"
		return
	}
	ends_within 10 "${!other}"
	[ $? -ne 99 ] || return
	[ $((SECONDS - start)) -lt 15 ] || fail "took $((SECONDS - start)) s" || return
	nothing_left
}

check "kill -9 of the client" other_end client server
check "kill -9 of the server" other_end server client

both() {
	local server client
	endless || return
	kill -9 "$server" "$client"
	nothing_left
}
check "kill -9 of both ends" both

listener() {
	local server
	$PEER rping -s -P -a 0.0.0.0 &
	server=$!
	listening "comm rping" || return
	kill -9 "$server"
	wait "$server"
	nothing_left
}
check "kill -9 of a listener" listener

resolving() {
	local client
	rping -c -a 10.0.0.250 &
	client=$!
	wait_for 5 test -d "/proc/$client/fd"
	sleep 0.5
	kill -9 "$client"
	ends_within 5 "$client"
	[ $? -ne 99 ] || return
	nothing_left
}
check "kill -9 while an address is being resolved" resolving

# Not the whole exchange, but anywhere in it.
anywhere() {
	local round server client
	for round in $(seq 12); do
		$PEER rping -s -a "$B4" >"$TMP/server" 2>&1 &
		server=$!
		listening "comm rping" || return
		rping -c -a "$B4" >"$TMP/client" 2>&1 &
		client=$!
		sleep "0.0$((round * 8 % 100))"
		if [ $((round % 2)) -eq 0 ]; then
			kill -9 "$client"
			# A listener that saw no client goes on.
			sleep 0.3
			kill -9 "$server" 2>/dev/null
		else
			kill -9 "$server"
			sleep 0.3
			kill -9 "$client" 2>/dev/null
		fi
		ends_within 20 "$client"
		[ $? -ne 99 ] || return
		ends_within 20 "$server"
		[ $? -ne 99 ] || return
	done
	nothing_left
}
check "kill -9 at many moments of an exchange" anywhere

# The connection can be made again at once, on the same port.
again() {
	local server client i
	for i in 1 2 3 4 5; do
		endless || return
		kill -9 "$client"
		ends_within 10 "$server"
		[ $? -ne 99 ] || return
	done
	nothing_left
}
check "again and again on one port" again

storm() {
	local server clients=() i pid
	$PEER rping -s -P -a "$B4" >"$TMP/server" 2>&1 &
	server=$!
	listening "comm rping" || return
	for i in $(seq 20); do
		rping -c -a "$B4" >/dev/null 2>&1 &
		clients+=($!)
	done
	sleep 1
	kill -9 "${clients[@]}"
	for pid in "${clients[@]}"; do
		ends_within 20 "$pid"
		[ $? -ne 99 ] || return
	done
	# Its server threads all see the end, and it still serves.
	timeout 30 rping -c -a "$B4" -C 2 || fail "the server serves no more" || return
	kill -9 "$server"
	ends_within 20 "$server"
	[ $? -ne 99 ] || return
	nothing_left
}
check "kill -9 of 20 clients of one server" storm
finish
