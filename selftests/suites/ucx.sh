#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# UCX: its io_demo connects by the transport "rdmacm", and then has queue pairs of its own; it looks at all that it reads
# and writes.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/middleware.sh
. "$SELFTESTS/lib/middleware.sh"

use_middleware

export UCX_TLS=rc UCX_SOCKADDR_TLS_PRIORITY=rdmacm
# Soft-RoCE says more than once that a queue pair took the last receive request of its queue, and UCX takes that for an
# error of its own, over any connection manager.
export UCX_IB_ASYNC_EVENTS=n
# Both ends know how much is sent at a time, at most.
DEMO=(io_demo -p 1337 -q -d "512:65536")

demo_server() {
	UCX_NET_DEVICES=rxe1:1 serve "${DEMO[@]}"
}

# demo_client SECONDS OPTION... SERVER...
demo_client() {
	UCX_NET_DEVICES=rxe0:1 client "$1" "${DEMO[@]}" -o read,write "${@:2}"
}

# said OUTPUT TEXT [TIMES]
said() {
	[ "$(grep -c -- "$2" "$1")" -ge "${3:-1}" ] || fail "no \"$2\": $(tail -n 30 "$1")"
}

arrived() {
	said "$TMP/client" "Client exit with status 'OK'" && runs "$server" || fail "$(tail -n 30 "$TMP/server")" || return
	closed
}

# transfer CLIENTS
transfer() {
	local i
	demo_server || return
	for ((i = 0; i < $1; i++)); do
		demo_client 120 -i 60 "$B4" || return
		said "$TMP/client" "Connected to server" || return
	done
	wait_for 60 no_connections || fail "$(cm_ids)" || return
	arrived
}

no_connections() {
	has_connections io_demo 0
}
check "three clients, one after the other: what is sent arrives" transfer 3

# UCX looks at the destination GID of each datagram, and drops those of soft-RoCE for that, over any connection manager.
datagrams() {
	export UCX_TLS=ud_v UCX_UD_VERBS_ETH_DGID_CHECK=n
	transfer 2
}
check "two clients, unreliable datagrams" datagrams

# A client with as many connections.
several() {
	local servers=() i
	for ((i = 0; i < 5; i++)); do
		servers+=("$B4")
	done
	demo_server || return
	demo_client 120 -i 100 "${servers[@]}" || return
	said "$TMP/client" "Connected to server" 5 && arrived
}
check "five connections of one client" several

# client_stays: sets "pid", a client that is connected and goes on.
client_stays() {
	demo_client 120 -i 100000000 "$B4" & client=$!
	await_connections io_demo 2 && wait_for 60 said "$TMP/client" "total min" || fail "$(cat "$TMP/client")" || return
	pid=$(cm_ids | sed -n "s/.* pid \([0-9]*\) comm io_demo src-addr $A4.*/\1/p")
}

# client_goes: it is ended.
client_goes() {
	kill -9 "$pid" || return
	ends_within 60 "$client"
	[ $? -ne 99 ]
}

killed() {
	local server client pid
	demo_server && client_stays || return
	end "$server" || return
	wait_for 60 said "$TMP/client" "detected error: Connection reset by remote peer" || fail "$(cat "$TMP/client")" ||
		return
	client_goes && nothing_left || return
	demo_server && demo_client 120 -i 60 "$B4" && arrived
}
check "the server is killed: the client is told, and the next server serves" killed

client_killed() {
	local server client pid
	demo_server && client_stays && client_goes && await_connections io_demo 0 || return
	wait_for 60 said "$TMP/server" "detected error: Connection reset by remote peer" || fail "$(cat "$TMP/server")" || return
	demo_client 120 -i 60 "$B4" && arrived
}
check "the client is killed: the server is told, and serves the next one" client_killed

# The client ends by itself where it posts a request that it cannot do without.
unplugged() {
	local server client pid
	demo_server && client_stays && unplug || return
	wait_for 60 said "$TMP/client" "ibv_.*Input/output error" || return
	wait_for 60 said "$TMP/server" "detected error: " || return
	! runs "$pid" || kill -9 "$pid"
	ends_within 60 "$client"
	[ $? -ne 99 ] && await_connections io_demo 0 && plug || return
	demo_client 120 -i 60 "$B4" && arrived && unloads
}
check "the client's device goes: both have their errors, and the server serves the next one" replugged unplugged

# The program ends with success also where it has connected to nobody.
nobody() {
	demo_client 120 -i 60 -c 2 -y 1 "$B4"
	said "$TMP/client" "Connect to server .* failed" && ! said "$TMP/client" "Connected to server" || return
	nothing_left
}
check "nobody there" nobody
finish
