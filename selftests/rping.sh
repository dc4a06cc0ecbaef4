#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rping as Debian ships it: both address families, on one host and between two
# network namespaces, a persistent server with many clients.
# seconds: 400
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"

# rping SERVER-PREFIX CLIENT-PREFIX ADDRESS OPTION...: one exchange of both.
pingpong() {
	local sprefix=$1 cprefix=$2 address=$3 server status=0
	shift 3
	# shellcheck disable=SC2086 # prefixes are commands
	$sprefix timeout 60 rping -s -a "$address" -C 10 -V "$@" >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm rping" || return
	# shellcheck disable=SC2086
	$cprefix timeout 60 rping -c -a "$address" -C 10 -V -v "$@" || status=$?
	[ "$status" -eq 0 ] || echo "client: $status"
	ends_within 20 "$server" || { status=$?; echo "server: $status"; }
	cat "$TMP/server"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

check "IPv4, one device" pingpong "" "" "$A4"
check "IPv6, one device" pingpong "" "" "$A6"
link_local=$(ip -6 -o addr show dev v0 scope link | awk '{ sub("/.*", "", $4); print $4; exit }')
check "IPv6 link-local, one device" pingpong "" "" "$link_local%v0"
check "IPv4, server in the other namespace" pingpong "$PEER" "" "$B4"
check "IPv4, client in the other namespace" pingpong "" "$PEER" "$A4"
check "IPv6, server in the other namespace" pingpong "$PEER" "" "$B6"
check "IPv6, client in the other namespace" pingpong "" "$PEER" "$A6"
check "queue pair of the program's own" pingpong "" "" "$A4" -q
check "queue pair of the program's own, other namespace" pingpong "$PEER" "" "$B4" -q
check "queue pair of the program's own, IPv6" pingpong "$PEER" "" "$B6" -q

wildcard() {
	local address=$1 any=$2 server status=0
	$PEER timeout 60 rping -s -a "$any" -C 5 >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm rping" || return
	timeout 60 rping -c -a "$address" -C 5 || status=$?
	ends_within 20 "$server" || status=$?
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}
check "IPv4, wildcard listener" wildcard "$B4" 0.0.0.0
check "IPv6, wildcard listener" wildcard "$B6" ::
check "IPv4 to an IPv6 wildcard listener" wildcard "$B4" ::

persistent() {
	local server clients=() pid bad=0 i
	# shellcheck disable=SC2086
	$1 rping -s -P -a 0.0.0.0 >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm rping" || return
	for i in $(seq 50); do
		timeout 120 rping -c -a "$2" -C 3 >"$TMP/client.$i" 2>&1 &
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
	kill -0 "$server" || fail "the server is gone" || return
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
	if timeout 60 rping -c -a "$1" -C 1; then
		fail "connected to nobody"
		return
	fi
	[ $((SECONDS - start)) -lt 10 ] || fail "took $((SECONDS - start)) s" || return
	nothing_left
}
check "no server: refused at once" refused "$B4"
check "no server: refused at once, IPv6" refused "$B6"
check "no such neighbour: an error after a while" refused 10.0.0.250

both_ways() {
	local a b status=0
	timeout 60 rping -s -a "$A4" -p 8001 -C 20 & a=$!
	$PEER timeout 60 rping -s -a "$B4" -p 8002 -C 20 & b=$!
	await_listener 8001 && await_listener 8002 || return
	timeout 60 rping -c -a "$B4" -p 8002 -C 20 & local c=$!
	$PEER timeout 60 rping -c -a "$A4" -p 8001 -C 20 || status=$?
	wait "$c" || status=$?
	ends_within 20 "$a" || status=$?
	ends_within 20 "$b" || status=$?
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}
check "both ways at the same time" both_ways
finish
