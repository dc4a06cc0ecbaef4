#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# kill -9 of either end: the other is told, and nothing is left.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# Starts a pair that pings for ever: sets server and client.
endless() {
	: >"$TMP/client"
	$PEER stdbuf -oL rping -s -d -v -a "$B4" >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm rping" || return
	stdbuf -oL rping -c -d -v -a "$B4" >"$TMP/client" 2>&1 &
	client=$!
	wait_for 10 grep -q "ping data" "$TMP/client" || {
		tail "$TMP/server" "$TMP/client"
		return 1
	}
}

# other_end VICTIM OTHER
other_end() {
	local victim=$1 other=$2 server client start
	endless || return
	kill -9 "${!victim}"
	start=$SECONDS
	learns 10 "$TMP/$other" || return
	[ $((SECONDS - start)) -lt $((8 * PATIENCE)) ] || fail "took $((SECONDS - start)) s" || return
	# rping ends then, or hangs in its own threads.
	end "$server" "$client" || return
	nothing_left
}

check "kill -9 of the client" other_end client server
check "kill -9 of the server" other_end server client

both() {
	local server client
	endless || return
	kill -9 "$server" "$client"
	ends_within 5 "$server"
	ends_within 5 "$client"
	# The time wait, which is 2 s here, keeps nothing.
	nothing_left 1
}
check "kill -9 of both ends" both

listener() {
	local server
	$PEER rping -s -P -a 0.0.0.0 &
	server=$!
	await_listener "comm rping" || return
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

# The request would be sent again only after more than a minute.
asking() {
	local client status=0
	ip neigh replace 10.0.0.98 lladdr 02:00:00:00:00:98 dev v0 nud permanent || return
	if [ "$CM" = rust ]; then
		early_retry 0 && port_setting cm_response_timeout 24 rxe0 || return
	fi
	rping -c -a 10.0.0.98 & client=$!
	wait_for 10 cm_id_in CONNECT "comm rping" || status=1
	if [ "$CM" = rust ]; then
		port_setting cm_response_timeout 20 rxe0
		early_retry 20
	fi
	kill -9 "$client"
	ends_within 5 "$client"
	[ $? -ne 99 ] && nothing_left || status=1
	ip neigh del 10.0.0.98 dev v0
	return "$status"
}
check "kill -9 while somebody does not answer" asking

# Not the whole exchange, but anywhere in it.
anywhere() {
	local round server client
	for round in $(seq 12); do
		$PEER rping -s -a "$B4" >"$TMP/server" 2>&1 &
		server=$!
		await_listener "comm rping" || return
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
		end "$client" "$server" || return
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
		learns 10 "$TMP/server" || return
		end "$server" "$client" || return
	done
	nothing_left
}
check "again and again on one port" again

# A server's main thread ends if a client goes away half-way (REJECTED), so that
# all have to be connected before it is asked whether it still serves.
clients_ping() {
	[ "$(grep -l "ping data" "$TMP"/client.* | wc -l)" -eq "$1" ]
}

crowd() {
	local server clients=() i
	$PEER rping -s -P -a "$B4" >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm rping" || return
	for i in $(seq 20); do
		stdbuf -oL rping -c -v -a "$B4" >"$TMP/client.$i" 2>&1 &
		clients+=($!)
	done
	wait_for 30 clients_ping 20 || fail "not all are connected" || return
	end "${clients[@]}" || return
	wait_for 20 eval '[ "$(cm_ids | grep -c "state CONNECT")" -eq 0 ]'
	run_rping "" 30 -c -a "$B4" -C 2 || {
		runs "$server" || echo "it has ended"
		cat "$TMP/server"
		fail "the server serves no more"
		return
	}
	end "$server" || return
	nothing_left
}
check "kill -9 of 20 clients of one server" crowd

storm() {
	local server clients i round
	for round in 1 2 3 4 5 6; do
		$PEER rping -s -P -a "$B4" >"$TMP/server" 2>&1 &
		server=$!
		await_listener "comm rping" || return
		clients=()
		for i in $(seq 20); do
			rping -c -a "$B4" >/dev/null 2>&1 &
			clients+=($!)
		done
		sleep "0.$((round * 15))"
		end "${clients[@]}" "$server" || return
	done
	nothing_left
}
check "kill -9 of 20 connecting clients and their server" storm
finish
