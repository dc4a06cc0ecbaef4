#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connection storms when something goes wrong: lost packets, a full backlog, a dead peer, senders
# whose neighbour does not resolve. The suite judges that all connections are made, in order, and
# the number of messages; how fast it went is shown.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

compiled storm trouble
STORM=$program
# The most times that a request is sent early.
EARLY=7
COUNTS=/sys/class/infiniband
# Connections of a storm: fewer where each takes several times as long.
MANY=$((1000 / PATIENCE)) CROWD=$((512 / PATIENCE))
# Requests in a second: not more than the processor can do, which on the debug kernel in counted time takes
# some 20 times as long for each.
RATE=1000
[ "$PATIENCE" -eq 1 ] || RATE=50
DEAD=10.0.0.99
# For so long somebody asks a dead peer, longer than the connections beside that take. After 73 s he is told that nobody
# answers.
DEAD_SECONDS=$((PATIENCE == 1 ? 15 : 60))

# counted DEVICE GROUP MESSAGE
counted() {
	cat "$COUNTS/$1/ports/1/cm_$2/$3"
}

# served BACKLOG PAUSE -- COMMAND...: with a server at 10.0.0.1:7000.
served() {
	local server status=0
	"$STORM" serve "$A4" 7000 "$1" "$2" >"$TMP/server" 2>&1 & server=$!
	shift 3
	await_listener || status=1
	[ "$status" -ne 0 ] || "$@" || status=$?
	kill -9 "$server"
	wait "$server" 2>/dev/null
	[ "$status" -eq 0 ] || cat "$TMP/server"
	return "$status"
}

# callers NUMBER AT_A_TIME SECONDS: from the other host.
callers() {
	$PEER "$STORM" call "$B4" "$A4" 7000 "$1" "$2" $(($3 * PATIENCE)) | tee "$TMP/callers" || return
	sed 's/^/# /' "$TMP/callers" >>"$TMP/shown"
}

shown() {
	[ ! -e "$TMP/shown" ] || cat "$TMP/shown"
	rm -f "$TMP/shown"
}

in_order() {
	! grep 'out of order' "$TMP/server"
}

# Each way one packet in a hundred is lost.
loss() {
	local status=0 before=0 after=0 message
	tc qdisc add dev v0 root netem loss 1% limit 100000 || return
	$PEER tc qdisc add dev v1 root netem loss 1% limit 100000 || return
	for message in req rep; do
		before=$((before + $(counted rxe0 tx_retries $message) + $(counted rxe1 tx_retries $message)))
	done
	served 1024 0 -- callers "$MANY" 100 60 || status=$?
	for message in req rep; do
		after=$((after + $(counted rxe0 tx_retries $message) + $(counted rxe1 tx_retries $message)))
	done
	tc qdisc del dev v0 root
	$PEER tc qdisc del dev v1 root
	echo "# $((after - before)) requests and replies were sent again" >>"$TMP/shown"
	[ "$status" -eq 0 ] || return
	[ $((after - before)) -ge 1 ] || fail "nothing was lost" || return
	# A slow machine sends some early that were not lost, but none more often than that.
	[ $((after - before)) -le $((2 * MANY * EARLY)) ] || fail "$((after - before)) were sent again"
}

# The milliseconds that the slowest of the last callers took.
longest() {
	sed -E 's/.* most ([0-9]+).*/\1/' "$TMP/callers"
}

# Nobody is turned away, asks more often than a few times, or is served before who came earlier.
backlog() {
	local before again
	before=$(counted rxe1 tx_retries req)
	served 8 500 -- callers "$CROWD" "$CROWD" 60 || return
	again=$(($(counted rxe1 tx_retries req) - before))
	echo "# $again requests were sent again" >>"$TMP/shown"
	[ "$CM" != c ] || return 0
	in_order || return
	[ "$again" -le "$CROWD" ] || fail "$again requests were sent again"
}

# Dropped in silence, as C does, where somebody wants that: the 4.6 s of a classic retry.
as_c() {
	local port=/sys/kernel/config/rdma_cm/rxe0/ports/1
	mkdir -p /sys/kernel/config/rdma_cm/rxe0 || return
	[ "$(cat $port/cm_backlog_parking)" = 1024 ] || fail "another default" || return
	echo 0 >$port/cm_backlog_parking
	local status=0 drops
	drops=$(cat "$COUNTS/rxe0/ports/1/cm_rx_drops/overload")
	served 1 100000 -- callers 8 8 60 || status=$?
	echo 1024 >$port/cm_backlog_parking
	rmdir /sys/kernel/config/rdma_cm/rxe0
	[ "$status" -eq 0 ] || return
	[ "$(cat "$COUNTS/rxe0/ports/1/cm_rx_drops/overload")" -gt "$drops" ] ||
		fail "nothing was dropped"
}

# A request that cannot even be parked is dropped, counted, and served later.
parking_is_bounded() {
	local port=/sys/kernel/config/rdma_cm/rxe0/ports/1 status=0 drops
	mkdir -p /sys/kernel/config/rdma_cm/rxe0 || return
	echo 10 >$port/cm_backlog_parking
	drops=$(cat "$COUNTS/rxe0/ports/1/cm_rx_drops/overload")
	served 1 300000 -- callers 40 40 30 || status=$?
	drops=$(($(cat "$COUNTS/rxe0/ports/1/cm_rx_drops/overload") - drops))
	echo 1024 >$port/cm_backlog_parking
	rmdir /sys/kernel/config/rdma_cm/rxe0
	[ "$status" -eq 0 ] || return
	[ "$drops" -ge 27 ] || fail "$drops were counted"
}

# sent_since BEFORE NUMBER: requests of this host.
sent_since() {
	[ $(($(counted rxe0 tx_msgs req) - $1)) -ge "$2" ]
}

# Requests to a host that does not answer, and at the same time to one that does.
dead_peer() {
	local before sent dead status=0 took=${EPOCHREALTIME/./}
	ip neigh replace "$DEAD" lladdr 02:00:00:00:00:99 dev v0 nud permanent || return
	before=$(counted rxe0 tx_msgs req)
	"$STORM" dead "$A4" "$DEAD" 300 "$DEAD_SECONDS" & dead=$!
	sleep 3
	wait_for 10 sent_since "$before" 300
	sent=$(($(counted rxe0 tx_msgs req) - before))
	took=$(((${EPOCHREALTIME/./} - took) / 1000))
	served 1024 0 -- callers "$MANY" 100 40 || status=$?
	wait "$dead" || status=$?
	ip neigh del "$DEAD" dev v0
	echo "# $sent requests were sent to the dead peer in $took ms" >>"$TMP/shown"
	[ "$status" -eq 0 ] || return
	[ "$sent" -ge 300 ] || fail "$sent requests were sent" || return
	# The first that ask may send early; of the others nobody does, but again after 4 s.
	[ "$sent" -le $((300 * (1 + took / 4096) + 33 * EARLY)) ] || fail "$sent requests were sent"
}

# The dead peer is the caller: those that connect to the dead and the living are one host.
dead_peer_of_the_caller() {
	local dead status=0
	$PEER ip neigh replace "$DEAD" lladdr 02:00:00:00:00:99 dev v1 nud permanent || return
	$PEER "$STORM" dead "$B4" "$DEAD" 300 "$DEAD_SECONDS" & dead=$!
	sleep 3
	served 1024 0 -- callers "$MANY" 100 40 || status=$?
	wait "$dead" || status=$?
	$PEER ip neigh del "$DEAD" dev v1
	return "$status"
}

# sends_end DEVICE: nothing that was posted there is still to be sent.
sends_end() {
	local i sent before=''
	for ((i = 0; i < 60 * PATIENCE; i++)); do
		sent=$(cat "$COUNTS/$1/ports/1/hw_counters/sent_pkts") || return
		[ "$sent" != "$before" ] || return 0
		before=$sent
		sleep 0.5
	done
	fail "$1 still sends"
}

gid_of_last() {
	grep -q ':0a00:07f0$' /sys/class/infiniband/rxe1/ports/1/gids/* 2>/dev/null
}

# unresolvable RATE: requests from hosts of which no answer to an ARP request comes.
unresolvable() {
	local sources=() i status=0
	# A device has a GID for each, and names no more than 256.
	for i in $(seq 1 240); do sources+=("10.0.7.$i"); done
	unresolvable_begins && served 1024 0 -- with_spoof "$1" "${sources[@]}" || status=$?
	# A send that has no route any more ends queue pair 1 of soft-RoCE for good.
	sends_end rxe1 || status=$?
	unresolvable_ends
	return "$status"
}

unresolvable_begins() {
	$PEER sysctl -qw net.ipv4.conf.v1.arp_ignore=8 &&
		sysctl -qw net.ipv4.neigh.v0.mcast_solicit=1 || return
	ip neigh replace "$B4" lladdr "$($PEER cat /sys/class/net/v1/address)" dev v0 nud permanent
	$PEER ip neigh replace "$A4" lladdr "$(cat /sys/class/net/v0/address)" dev v1 nud permanent
	printf 'addr add %s/32 dev v1\n' "${sources[@]}" | $PEER ip -batch - &&
		ip route add 10.0.7.0/24 dev v0 || return
	# The device has all of them a little later.
	wait_for 30 gid_of_last
}

unresolvable_ends() {
	ip route del 10.0.7.0/24
	printf 'addr del %s/32 dev v1\n' "${sources[@]}" | $PEER ip -force -batch -
	$PEER sysctl -qw net.ipv4.conf.v1.arp_ignore=0
	sysctl -qw net.ipv4.neigh.v0.mcast_solicit=3
	ip neigh del "$B4" dev v0
	$PEER ip neigh del "$A4" dev v1
}

# The most neighbours that are being looked for, while process PID lives.
most_incomplete() {
	local most=0 now
	while runs "$1"; do
		now=$(ip neigh show dev v0 nud incomplete | wc -l)
		[ "$now" -le "$most" ] || most=$now
		sleep 0.2
	done
	echo "$most"
}

with_spoof() {
	local rate=$1 spoof status=0 before most
	shift
	before=$(cat "$COUNTS/rxe0/ports/1/cm_rx_drops/unreachable" 2>/dev/null || echo 0)
	$PEER "$STORM" spoof "$@" "$A4" 7000 "$rate" 8 & spoof=$!
	most_incomplete "$spoof" >"$TMP/incomplete" & most=$!
	sleep 2
	callers 100 1 30 || status=$?
	wait "$spoof" || status=$?
	wait "$most"
	[ "$status" -eq 0 ] || return
	[ "$CM" = c ] && return
	[ "$(cat "$COUNTS/rxe0/ports/1/cm_rx_drops/unreachable")" -gt "$before" ] ||
		fail "all were resolved" || return
	# 32 requests and 32 answers wait for a second each at most, and the host forgets their neighbours then.
	most=$(cat "$TMP/incomplete")
	echo "# up to $most neighbours were being looked for" >>"$TMP/shown"
	[ "$most" -le 64 ] || fail "$most neighbours were looked for at a time" || return
	[ "$rate" -lt 1000 ] || [ "$most" -ge 32 ] || fail "only $most neighbours were looked for" || return
	# None waits for a neighbour that does not answer, which is a second and more.
	[ "$(longest)" -lt $((1000 * PATIENCE)) ] || fail "the honest had to wait"
}

# forgetting COMMAND...: connections, each after COMMAND has made that a neighbour is not known.
forgetting() {
	local i best=$((20000 * PATIENCE))
	for i in 1 2 3; do
		"$@" 2>/dev/null
		callers 1 1 20 || return
		[ "$(longest)" -ge "$best" ] || best=$(longest)
	done
	# On this link the answer to an ARP request comes before ib_core waits for it, and C waits for the
	# timeout then.
	[ "$CM" = c ] || [ "$best" -lt $((900 * PATIENCE)) ] || fail "each waited for an answer that was there"
}

# The neighbour of who asks is known only when it has been asked for, and there is room to do that again.
looked_for() {
	local status=0
	# To ask where this host is would say where the other one is.
	$PEER ip neigh replace "$A4" lladdr "$(cat /sys/class/net/v0/address)" dev v1 nud permanent || return
	served 1024 0 -- forgetting ip neigh del "$B4" dev v0 || status=$?
	$PEER ip neigh del "$A4" dev v1
	return "$status"
}

quietly() {
	served 1024 0 -- callers "$MANY" 100 60 && served 1024 0 -- callers 100 1 30
}

check "$MANY connections, and 100 one after the other, with nothing wrong" quietly
shown
check "$MANY connections while one in a hundred packets is lost" loss
shown
check "$CROWD callers and a backlog of 8" backlog
shown
if [ "$CM" = rust ]; then
	check "requests that are not parked are dropped and counted" as_c
	shown
	check "parked requests are bounded" parking_is_bounded
	shown
	check "$MANY connections beside 300 to a dead peer" dead_peer
	shown
	check "$MANY connections of a host that asks a dead peer" dead_peer_of_the_caller
	shown
	check "connections while 10 requests a second come from nowhere" unresolvable 10
	shown
	check "connections while $RATE requests a second come from nowhere" unresolvable "$RATE"
	shown
else
	for name in "requests that are not parked are dropped and counted" "parked requests are bounded"; do
		skip "$name" "C parks nothing and counts nothing"
	done
	skip "$MANY connections beside 300 to a dead peer" "C makes none of them in 40 s"
	skip "connections while requests come from nowhere" "C takes seconds for each"
fi
check "connections whose sender has to be looked for, after all that" looked_for
shown
check "connections whose receiver has to be looked for" \
	served 1024 0 -- forgetting $PEER ip neigh del "$A4" dev v1
shown
finish
