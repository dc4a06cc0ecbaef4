#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Ceph's messenger: the ends of its benchmark connect by the connection manager, and the server answers each message.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/middleware.sh
. "$SELFTESTS/lib/middleware.sh"

use_middleware

# By the type iWARP, over any device, the connection manager makes the connections and moves the queue pairs; by default the
# ends meet at a TCP socket. There is no monitor that could say who they are. As large as by default the buffers would not
# fit in this guest.
OPTIONS=(--ms_type=async+rdma --ms_async_rdma_cm=true --ms_async_rdma_type=iwarp
	--auth_cluster_required=none --auth_service_required=none --auth_client_required=none
	--ms_async_rdma_buffer_size=8192 --ms_async_rdma_receive_queue_len=256 --ms_async_rdma_receive_buffers=4096
	--ms_async_rdma_send_buffers=256 --log_to_stderr=true --err_to_stderr=true --debug_ms=1)

# Its identifiers are those of threads.
comm_of() {
	echo "msgr-worker-."
}

messenger_server() {
	serve ceph_perf_msgr_server "${OPTIONS[@]}" --ms_async_rdma_device_name=rxe1 "$B4:7300" 1 0
}

# CLIENT CONNECTIONS MESSAGES: of 4 kB, up to four of each connection at a time.
CLIENT=(ceph_perf_msgr_client "${OPTIONS[@]}" --ms_async_rdma_device_name=rxe0 "$B4:7300")
messages() {
	client 120 "${CLIENT[@]}" "$1" 4 "$2" 0 4096
}

# count FILE PATTERN
count() {
	grep -c -- "$2" "$1"
}

# answered CONNECTIONS MESSAGES: all have gone out, and have an answer, but for the last five of each connection, for which the
# client does not wait.
answered() {
	local all=$(($1 * $2)) answers
	[ "$(count "$TMP/client" "^ Total op $all run time")" -eq 1 ] || fail "$(grep -v osd_op "$TMP/client")" || return
	answers=$(count "$TMP/client" "<== osd.*osd_op_reply(")
	[ "$answers" -ge $((all - 5 * $1)) ] || fail "$answers of $all: $(grep -v osd_op "$TMP/client")"
}

# transfer CONNECTIONS MESSAGES
transfer() {
	local server before
	before=$(requests)
	messenger_server && messages "$@" && answered "$@" || return
	[ $(($(requests) - before)) -ge "$1" ] || fail "$(($(requests) - before)) requests" || return
	closed
}
check "messages are answered" transfer 1 100
check "four connections of one client" transfer 4 100

# stays: sets "client", which is connected and goes on.
stays() {
	"${CLIENT[@]}" 1 4 100000000 0 4096 >"$TMP/client" 2>&1 & client=$!
	await_connections messenger 2 && wait_for 60 grep -q "osd_op_reply(" "$TMP/client" || fail "$(cat "$TMP/client")"
}

# told OUTPUT: this end has lost its connection.
told() {
	wait_for 30 grep -q "reading from fd=.* : -104" "$TMP/$1" || fail "not told: $(grep -v osd_op "$TMP/$1")"
}

# A client that nobody answers asks again and again.
comes() {
	local server client
	"${CLIENT[@]}" 1 4 30 0 4096 >"$TMP/client" 2>&1 & client=$!
	wait_for 60 grep -q "rdma connection rejected" "$TMP/client" || fail "$(cat "$TMP/client")" || return
	messenger_server && ends_within 60 "$client" && answered 1 30 || return
	closed
}
check "nobody there: refused, until a server comes" comes

killed() {
	local server client
	messenger_server && stays && end "$server" && told client && await_connections messenger 0 || return
	end "$client" && nothing_left && transfer 1 30
}
check "the server is killed: the client is told, and the next server serves" killed

client_killed() {
	local server client
	messenger_server && stays && end "$client" && told server && await_connections messenger 0 || return
	messages 1 30 && answered 1 30 && closed
}
check "the client is killed: the server is told, and serves the next one" client_killed

# The client has no word for it, and goes on to read events of a device that is gone.
unplugged() {
	local server client
	messenger_server && stays && unplug && told server && end "$client" && await_connections messenger 0 || return
	plug || return
	messages 1 30 && answered 1 30 && closed && unloads
}
check "the client's device goes: the server is told, and serves the next one" replugged unplugged
finish
