#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# librpma: a program of it (selftests/middleware) writes, flushes and reads the memory of a server, and the server says what
# is there.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/middleware.sh
. "$SELFTESTS/lib/middleware.sh"

use_middleware rpma

# one ADDRESS: a client whose data arrives.
one() {
	client 120 ./rpma -c "$1" 7204 && grep -qx done "$TMP/client" || fail "$(cat "$TMP/client")"
}

transfer() {
	local server i
	serve ./rpma "$1" 7204 || return
	for ((i = 0; i < 5; i++)); do
		one "$1" || return
	done
	wait_for 60 eval '[ "$(grep -cx "Connection closed" "$TMP/server")" -eq 5 ]' || fail "$(cat "$TMP/server")" || return
	closed
}
check "five clients, IPv4" transfer "$B4"
check "five clients, IPv6" transfer "$B6"

# waiting ADDRESS: sets "waiting", a client that is connected.
waiting() {
	timeout $((120 * PATIENCE)) ./rpma -c -w "$1" 7204 1 >"$TMP/waiting" 2>&1 & waiting=$!
	wait_for 60 grep -qx waits "$TMP/waiting" || fail "$(cat "$TMP/waiting")" || return
	await_connections rpma 2
}

killed() {
	local server waiting
	serve ./rpma "$B4" 7204 && waiting "$B4" || return
	end "$server" || return
	ends_within 60 "$waiting" || fail "$(cat "$TMP/waiting")" || return
	grep -qxE 'Connection (closed|lost)' "$TMP/waiting" || fail "$(cat "$TMP/waiting")" || return
	nothing_left || return
	serve ./rpma "$B4" 7204 && one "$B4" && closed
}
check "the server is killed: the client is told, and the next server serves" killed

client_killed() {
	local server waiting
	serve ./rpma "$B4" 7204 && waiting "$B4" || return
	kill -9 "$(cm_ids | sed -n "s/.*state CONNECT .* pid \([0-9]*\) comm rpma src-addr $A4.*/\1/p")" || return
	wait_for 60 grep -qxE 'Connection (closed|lost)' "$TMP/server" || fail "$(cat "$TMP/server")" || return
	one "$B4" && closed
}
check "the client is killed: the server is told, and serves the next one" client_killed

nobody() {
	! client 120 ./rpma -c "$B4" 7205 || fail "connected to nobody" || return
	grep -qx "Connection rejected" "$TMP/client" || fail "$(cat "$TMP/client")" || return
	! client 120 ./rpma -c 192.0.2.1 7205 || fail "connected to nowhere" || return
	nothing_left
}
check "nobody and nowhere" nobody
finish
