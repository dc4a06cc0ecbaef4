#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs, while packets of one host are lost, come twice, or in another order.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# with NETEM... -- COMMAND...: while the network does that to what leaves v0.
with() {
	local how=() status=0
	while [ "$1" != -- ]; do
		how+=("$1")
		shift
	done
	shift
	tc qdisc add dev v0 root netem "${how[@]}" || return
	"$@" || status=$?
	tc qdisc del dev v0 root
	return "$status"
}

# A client that is done sends its DREQ once, so that a server may never hear of the
# end of a connection: it is the clients that must succeed.
rpings() {
	local server status=0 i
	$PEER rping -s -P -a "$B4" >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || status=1
	for i in 1 2 3 4 5; do
		timeout $((60 * PATIENCE)) rping -c -a "$B4" -C 3 || { status=$?; echo "client $i: $status"; }
	done
	end "$server" || return
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

# Twenty connections at a time, to a server whose answers are what is lost.
connections() {
	local server status=0
	timeout $((120 * PATIENCE)) cmtime -b "$A4" -c 20 -m 0 -q 2000000 >"$TMP/server" 2>&1 & server=$!
	await_listener "comm cmtime" || return
	$PEER timeout $((100 * PATIENCE)) cmtime -s "$A4" -b "$B4" -c 20 -m 0 -q 1000000 || status=$?
	end "$server" || return
	[ "$status" -eq 0 ] || return "$status"
	nothing_left 30
}

check "five rping while one in twenty packets is lost" with loss 5% -- rpings
check "five rping while packets come twice" with duplicate 30% -- rpings
check "five rping while packets overtake each other" with delay 5ms reorder 60% 50% -- rpings
check "20 connections while one in ten answers is lost" with loss 10% -- connections
finish
