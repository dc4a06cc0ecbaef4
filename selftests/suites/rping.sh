#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rping as Debian ships it: both address families, on one host and between two
# network namespaces, a persistent server with many clients.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

check "IPv4, one device" exchange "" "" "$A4" "$A4"
check "IPv6, one device" exchange "" "" "$A6" "$A6"
link_local=$(ip -6 -o addr show dev v0 scope link | awk '{ sub("/.*", "", $4); print $4; exit }')
check "IPv6 link-local, one device" exchange "" "" "$link_local%v0" "$link_local%v0"
check "IPv4, server in the other namespace" exchange "$PEER" "" "$B4" "$B4"
check "IPv4, client in the other namespace" exchange "" "$PEER" "$A4" "$A4"
check "IPv6, server in the other namespace" exchange "$PEER" "" "$B6" "$B6"
check "IPv6, client in the other namespace" exchange "" "$PEER" "$A6" "$A6"
check "queue pair of the program's own" exchange "" "" "$A4" "$A4" -q
check "queue pair of the program's own, other namespace" exchange "$PEER" "" "$B4" "$B4" -q
check "queue pair of the program's own, IPv6" exchange "$PEER" "" "$B6" "$B6" -q

check "IPv4, wildcard listener" exchange "$PEER" "" 0.0.0.0 "$B4"
check "IPv6, wildcard listener" exchange "$PEER" "" :: "$B6"
check "IPv4 to an IPv6 wildcard listener" exchange "$PEER" "" :: "$B4"

persistent() {
	local server clients=() pid bad=0 i
	# shellcheck disable=SC2086
	$1 rping -s -P -a 0.0.0.0 >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm rping" || return
	for i in $(seq 50); do
		run_rping "" 120 -c -a "$2" -C 3 >"$TMP/client.$i" 2>&1 &
		clients+=($!)
		# In groups, so that some are there at the same time.
		if [ $((i % 10)) -eq 0 ]; then
			for pid in "${clients[@]}"; do
				wait "$pid" || bad=$((bad + 1))
			done
			clients=()
		fi
	done
	[ "$bad" -eq 0 ] || {
		echo "$bad of 50 clients failed"
		cat "$TMP"/client.*
	}
	runs "$server" || fail "the server is gone" || return
	# A client has gone only when the server has seen it go.
	wait_for 20 eval '[ "$(cm_ids | grep -c "state CONNECT")" -eq 0 ]'
	kill -9 "$server"
	wait "$server"
	nothing_left || return
	return "$bad"
}
check "persistent server, 50 clients" persistent "" "$A4"
check "persistent server in the other namespace, 50 clients" persistent "$PEER" "$B4"

refused() {
	local start=$SECONDS
	if timeout $((60 * PATIENCE)) rping -c -a "$1" -C 1; then
		fail "connected to nobody"
		return
	fi
	[ $((SECONDS - start)) -lt $((10 * PATIENCE)) ] || fail "took $((SECONDS - start)) s" || return
	nothing_left
}
check "no server: refused at once" refused "$B4"
check "no server: refused at once, IPv6" refused "$B6"
check "no such neighbour: an error after a while" refused 10.0.0.250

both_ways() {
	local a b status=0
	run_rping "" 60 -s -a "$A4" -p 8001 -C 20 & a=$!
	run_rping "$PEER" 60 -s -a "$B4" -p 8002 -C 20 & b=$!
	await_listener 8001 && await_listener 8002 || return
	run_rping "" 60 -c -a "$B4" -p 8002 -C 20 & local c=$!
	run_rping "$PEER" 60 -c -a "$A4" -p 8001 -C 20 || status=$?
	wait "$c" || status=$?
	ends_within 20 "$a" || status=$?
	ends_within 20 "$b" || status=$?
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}
check "both ways at the same time" both_ways
finish
