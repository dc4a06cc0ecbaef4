#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Connections over ports with an InfiniBand link layer: two of softib, which tools/softib builds into the
# guest's share, ib_a here and ib_b in the namespace "peer", IPoIB over both, and a subnet administrator
# (sa.py). With OVER=opa over ports with the capabilities and the LIDs of Omni-Path; there both consumers (ibcm and cmid) and
# a round of the suite race are cases, too.
# shellcheck disable=SC2086,SC2015,SC2119 # prefixes are commands
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/mckey.sh
. "$SELFTESTS/lib/mckey.sh"
# shellcheck source=selftests/lib/softib.sh
. "$SELFTESTS/lib/softib.sh"
# shellcheck source=selftests/lib/consumer.sh
. "$SELFTESTS/lib/consumer.sh"

if ! has_softib; then
	skip "InfiniBand" "there is no softib.ko (tools/softib)"
	finish
fi

[ "$SOFTIB_OPA" ] || CMID_SUBNET=()
check "two ports, IPoIB, a subnet administrator" softib_up "${CMID_SUBNET[@]}" || finish
if [ "$SOFTIB_OPA" ]; then
	check "LIDs of 32 bits" grep -qx 0x10001 /sys/class/infiniband/ib_a/ports/1/lid
fi
IA=$(gid_address ib_a) IB=$(gid_address ib_b)

check "IPv4, one port" exchange "" "" "$I4" "$I4"
check "IPv6, one port" exchange "" "" "$I6" "$I6"
check "IPv4, server in the other namespace" exchange "$PEER" "" "$J4" "$J4"
check "IPv4, client in the other namespace" exchange "" "$PEER" "$I4" "$I4"
check "IPv6, server in the other namespace" exchange "$PEER" "" "$J6" "$J6"
check "IPv6, client in the other namespace" exchange "" "$PEER" "$I6" "$I6"
check "IPv4, wildcard listener" exchange "" "$PEER" 0.0.0.0 "$I4"
check "IPv6, wildcard listener" exchange "" "$PEER" :: "$I6"
check "IPv4 to an IPv6 wildcard listener" exchange "" "$PEER" :: "$I4"
check "queue pairs of the program's own" exchange "" "$PEER" "$I4" "$I4" -q

persistent() {
	local server clients=() i bad=0
	rping -s -P -a "$I4" >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	for i in $(seq 8); do
		run_rping "$PEER" 40 -c -a "$I4" -C 3 >"$TMP/client.$i" 2>&1 & clients+=($!)
	done
	for i in "${clients[@]}"; do
		wait "$i" || bad=$((bad + 1))
	done
	end "$server" || return
	[ "$bad" -eq 0 ] || { fail "$bad of 8 clients failed"; cat "$TMP"/client.*; return 1; }
	nothing_left
}
check "persistent server, 8 clients at once" persistent

# listening COMMAND [GIDS]: until it does. The "rdma" program cannot show an id whose address is a GID, nor
# any other while there is one.
listening() {
	if [ -z "${2-}" ]; then
		await_listener "comm $1"
	else
		wait_for 20 sh -c "rdma resource | grep '^[0-9]*: ib_' | grep -q 'cm_id [1-9]'" && pause 0.5
	fi || { cat "$TMP/server" && false; }
}

# both SERVER -- CLIENT: command lines; the server runs in the other namespace unless SERVER_HERE is set, and
# both end with success.
SERVER_HERE=
both() {
	local words=() server status=0 gids=''
	while [ "$1" != -- ]; do
		[ "$1" != gid ] || gids=1
		words+=("$1") && shift
	done
	shift
	${SERVER_HERE:-$PEER} timeout $((90 * PATIENCE)) "${words[@]}" >"$TMP/server" 2>&1 & server=$!
	listening "${words[0]}" $gids || return
	timeout $((90 * PATIENCE)) "$@" || { status=$?; echo "client: $status"; }
	ends_within 30 "$server" || { status=$?; echo "server: $status"; }
	cat "$TMP/server"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

# Runs both ends like the function before, and both report success.
both_say() {
	local status
	both "$@" >"$TMP/both" 2>&1 || { status=$?; cat "$TMP/both"; return "$status"; }
	[ "$(grep -c "return status 0" "$TMP/both")" -eq 2 ] || { cat "$TMP/both" && false; }
}
for count in 1 20 100; do
	case="ucmatose -c $count"
	# It has all routes resolved at once, and waits 2 s.
	if [ "$count" -eq 100 ] && [ "$PATIENCE" -gt 1 ]; then
		skip "$case" "the subnet administrator, a script, answers as many in more than 2 s here"
	else
		check "$case" both_say ucmatose -c "$count" -- ucmatose -s "$J4" -c "$count"
	fi
done
check "ucmatose, IPv6" both_say ucmatose -f ip6 -b "$J6" -- ucmatose -f ip6 -s "$J6"
check "ucmatose, type of service and timeout" both_say ucmatose -c 5 -t 32 -a 14 -- \
	ucmatose -s "$J4" -c 5 -t 32 -a 14
check "ucmatose, bound source" both_say ucmatose -b "$J4" -c 5 -- ucmatose -s "$J4" -b "$I4" -c 5
check "udaddy" both_say udaddy -c 10 -- udaddy -s "$J4" -c 10
check "udaddy, IPv6" both_say udaddy -f ip6 -b "$J6" -- udaddy -f ip6 -s "$J6"

says_no() {
	local want=$1
	shift
	! timeout $((20 * PATIENCE)) "$@" >"$TMP/client" 2>&1 && grep -q "$want" "$TMP/client" ||
		{ cat "$TMP/client" && false; }
}

# Addresses that are GIDs, AF_IB, of no IPoIB. Requests to these are all of the first namespace, so only
# listeners there are found, wherever the port's interface is; clients can be anywhere.
SERVER_HERE="env"
check "ucmatose, GIDs" both_say ucmatose -f gid -P ib -b "$IB" -- \
	ucmatose -f gid -P ib -b "$IA" -s "$IB"
check "ucmatose, GIDs, 20 connections" both_say ucmatose -f gid -P ib -b "$IB" -c 20 -- \
	ucmatose -f gid -P ib -b "$IA" -s "$IB" -c 20
check "ucmatose, GIDs, client in the other namespace" both_say ucmatose -f gid -P ib -b "$IA" -- \
	$PEER ucmatose -f gid -P ib -b "$IB" -s "$IA"
check "ucmatose, GIDs, one port" both_say ucmatose -f gid -P ib -b "$IB" -- \
	ucmatose -f gid -P ib -b "$IB" -s "$IB"
check "udaddy, GIDs" both_say udaddy -f gid -b "$IB" -- udaddy -f gid -b "$IA" -s "$IB"
SERVER_HERE=
# Without an address of its own the first port of the same prefix is taken, though it be RoCE's.
check "ucmatose, GIDs, no source" says_no "resolve route failed: No such device" \
	ucmatose -f gid -P ib -s "$IB"
elsewhere() {
	local server
	$PEER ucmatose -f gid -P ib -b "$IB" >"$TMP/server" 2>&1 & server=$!
	listening ucmatose gids || return
	says_no "REJECTED, error: 28" ucmatose -f gid -P ib -b "$IA" -s "$IB" || return
	end "$server" || return
	nothing_left
}
check "ucmatose, GIDs, a listener in the other namespace is not found" elsewhere

check "rdma_server and rdma_client" thrice both rdma_server -s "$J4" -- rdma_client -s "$J4"
check "rdma_xserver and rdma_xclient" thrice both rdma_xserver -c r -- rdma_xclient -s "$J4" -c r
check "rstream" thrice both rstream -b "$J4" -I 5 -C 5 -S 4096 -T b -- \
	rstream -s "$J4" -I 5 -C 5 -S 4096 -T b
check "riostream" thrice both riostream -b "$J4" -I 5 -C 5 -S 4096 -- riostream -s "$J4" -I 5 -C 5 -S 4096

perf() {
	local program=$1
	shift
	# Its server listens twice, and a client that is faster is refused and crashes (programs.sh).
	thrice both "$program" -R -d ib_b -F -n 50 "$@" -- "$program" -R -d ib_a -F -n 50 "$@" "$J4"
}
for program in ib_write_bw ib_send_bw ib_read_lat; do
	check "$program -R" perf "$program"
done

cmtime_pair() {
	if cmtime_meets; then
		skip "cmtime" "of another version"
	else
		both cmtime -b "$J4" "$@" -q 2000000 -- cmtime -s "$J4" -b "$I4" "$@" -q 1000000
	fi
}
# The subnet administrator is a script, which answers 200 questions at once in more than 2 s if the host is busy.
for count in 50 200; do
	check "cmtime, $count connections" cmtime_pair -c "$count" -m 0 -t $((10000 * PATIENCE))
done

# mckeys GROUP RECEIVER-OPTIONS SENDER-OPTIONS [-M]: both ends of a group.
mckeys() {
	mckey_pair "${4:--m} $1 -b $J4 $2" "${4:--m} $1 -b $I4 $3" && nothing_left
}
check "mckey" thrice mckeys 239.1.2.3 "-C 3" "-C 1000"
if [ "$SOFTIB_OPA" ]; then
	skip "mckey, sends only" "the kernel does not look for the capability in Omni-Path's class port info"
else
	check "mckey, sends only" thrice mckeys 239.1.2.5 "-C 3" "-C 1000 -o"
fi
check "mckey, several ids" thrice mckeys 239.1.2.6 "-C 3 -c 5" "-C 1000 -c 5"
check "mckey, a GID" thrice mckeys ff12:a01b:fe80::1234 "-C 3" "-C 1000" -M

# A group of link-local scope is at the interface that is named: at both ends there is another.
mckeys_by_scope() {
	local there here
	there=$(ipoib_of ib_b "$PEER") && here=$(ipoib_of ib_a) || return
	mckey_pair "-m $1%$there -C 3" "-m $1%$here -C 1000" && nothing_left
}
check "mckey, a group of the link" thrice mckeys_by_scope ff12::99
check "mckey, a group of the link that IANA gives" thrice mckeys_by_scope ff02::1:99

# fails WANT SECONDS COMMAND...: with this in its output, and no later.
fails() {
	local want=$1 limit=$2 start=$SECONDS
	shift 2
	timeout $((60 * PATIENCE)) "$@" >"$TMP/client" 2>&1
	sa
	cat "$TMP/client"
	grep -q "$want" "$TMP/client" || fail "not: $want" || return
	[ $((SECONDS - start)) -le $((limit * PATIENCE)) ] || fail "took $((SECONDS - start)) s" || return
	nothing_left
}
check "no server: refused at once" fails "REJECTED, error: 8" 5 ucmatose -s "$J4"
check "no server: refused at once, GIDs" fails "REJECTED, error: 8" 5 ucmatose -f gid -P ib -b "$IA" -s "$IB"
check "nobody has the address" fails "ADDR_ERROR, error: -110" 20 ucmatose -s 10.78.0.77

# Sets the answers of the subnet administrator to queries for paths.
route() {
	local action=$1
	shift
	sa path "$action"
	"$@"
}
check "no answer: no route" route silent fails "ROUTE_ERROR, error: -110" 10 ucmatose -s "$J4"
check "an error: no route" route refuse fails "ROUTE_ERROR, error: -22" 5 ucmatose -s "$J4"
check "no answer in time: no route" route delay=15000 fails "ROUTE_ERROR, error: -110" 12 ucmatose -s "$J4"
check "no path to the GID: no route" fails "ROUTE_ERROR, error: -22" 5 \
	ucmatose -f gid -P ib -b "$IA" -s fe80::1:2:3:4
answered() {
	local status=0
	sa path "$1"
	both_say ucmatose -c 3 -- ucmatose -s "$J4" -c 3 || status=$?
	sa
	return "$status"
}
check "three queries are lost" answered drop=3
check "a late answer" answered delay=500

silent_multicast() {
	sa mcast "$1"
	fails "MULTICAST_ERROR, error: $2" 90 $PEER mckey -m 239.1.9.9 -b "$J4"
}
check "no group: refused" silent_multicast refuse -22

check "a killed server is missed" killed server "$I4"
check "a killed client is missed" killed client "$I4"

# shows WANT: the columns of what there is, with letters for numbers that differ from run to run.
shows() {
	diff -u <(echo "$1") <(cm_ids | sed -E -e 's/cm-idn [0-9]+/cm-idn N/' -e 's/lqpn [0-9]+/lqpn Q/' \
		-e 's/pid [0-9]+/pid P/' -e 's/(10\.78\.0\.[12]):[3-6][0-9]{4}/\1:E/' -e 's/ +$//' | sort)
}
both_ends_have_numbers() {
	[ "$(cm_ids | grep -c "lqpn .* state CONNECT")" -eq 2 ]
}
columns() {
	local server client
	rping -s -P -a "$I4" -p 7200 & server=$!
	await_listener || return
	$PEER rping -c -a "$I4" -p 7200 & client=$!
	wait_for 10 both_ends_have_numbers || fail "no connection" || return
	shows \
"link ib_a/1 cm-idn N lqpn Q qp-type RC state CONNECT ps TCP pid P comm rping src-addr $I4:7200 dst-addr $J4:E
link ib_a/1 cm-idn N state LISTEN ps TCP pid P comm rping src-addr $I4:7200 dst-addr 0.0.0.0:0
link ib_b/1 cm-idn N lqpn Q qp-type RC state CONNECT ps TCP pid P comm rping src-addr $J4:E dst-addr $I4:7200" ||
		return
	kill -9 "$server" "$client"
	wait "$server" "$client" 2>/dev/null
	nothing_left
}
check "rdma resource show cm_id" columns

DEVICE=ib_b AT=$PEER
plug() {
	softib_b && softib_pings
}
check "the device of a connected client goes" replugged end_unplugged client server "$I4"
check "the device of a listener goes" replugged listener_unplugged "" "$J4"

# The port is down for a while, which those who look at the subnet are told.
cable() {
	$PEER ip link set m1 down || return
	wait_for 10 grep -q DOWN /sys/class/infiniband/ib_b/ports/1/state || fail "still up" || return
	$PEER ip link set m1 up || return
	wait_for 10 grep -q ACTIVE /sys/class/infiniband/ib_b/ports/1/state || fail "still down" || return
	softib_pings || fail "no ping" || return
	exchange "$PEER" "" "$J4" "$J4"
}
check "a port is down for a while" cable

is_in_state() {
	grep -q "$1" "/sys/class/infiniband/$2/ports/1/state"
}

# tells_within MS SINCE: the server is told, by an event, in that time; with C it is not.
tells_within() {
	local told=0 ms
	wait_for 6 grep -q "DISCONNECT EVENT" "$TMP/server" || told=1
	ms=$(($(date +%s%3N) - $2))
	if [ "$CM" = c ]; then
		[ "$told" = 1 ] && cm_id_in CONNECT "ib_a.*comm rping" || fail "told after $ms ms"
	else
		[ "$told" = 0 ] && [ "$ms" -le $(($1 * PATIENCE)) ] || fail "$told after $ms ms"
	fi
}

# idle ADDRESS: a connection of which nothing is under way, so that no queue pair notices that its peer is silent.
idle() {
	connected "$1" && kill -STOP "$client" && pause 1
}

# set_port NAME VALUE: of the server's port; C has no such setting.
set_port() {
	[ "$CM" = c ] || port_setting "$1" "$2" ib_a
}

dead_port() {
	local server client status=0 since
	set_port cm_dead_link_ms 300 && idle "$I4" || return
	since=$(date +%s%3N)
	$PEER ip link set m1 down && wait_for 10 is_in_state DOWN ib_a || status=1
	tells_within 2000 "$since" || status=1
	$PEER ip link set m1 up && set_port cm_dead_link_ms 0 || status=1
	wait_for 10 is_in_state ACTIVE ib_a && softib_pings || status=1
	end "$client" "$server" && [ "$status" -eq 0 ] && nothing_left 60
}
check "a server hears of its dead port" dead_port

no_ids_of() {
	[[ "$(cm_ids)" != *"link $1/"* ]]
}

# The client is gone, and nothing that its host sends about it arrives. The server asks, and is answered.
forgotten() {
	local server client status=0 since sent=/sys/class/infiniband/ib_b/ports/1/cm_tx_msgs/dreq before
	set_port cm_keepalive_s 2 && idle "$I4" || return
	$PEER tc qdisc add dev m1 root netem loss 100% || status=1
	kill -9 "$client"
	wait_for 30 no_ids_of ib_b || status=1
	before=$(<$sent)
	$PEER tc qdisc del dev m1 root || status=1
	since=$(date +%s%3N)
	tells_within 4000 "$since" || status=1
	[ "$(<$sent)" -eq "$before" ] || { fail "the client's host has said so itself" || status=1; }
	set_port cm_keepalive_s 0 || status=1
	end "$client" "$server" && [ "$status" -eq 0 ] && nothing_left 60
}
check "a server asks after a client that its host has lost" forgotten

check "RoCE and InfiniBand at the same time, one listener" both_kinds "$I4"

# A round of race/race-ib: two threads give commands to one id.
pairs() {
	compiled cm-race-ib walk
	"$program" -r 1 && nothing_left 30
}
if [ "$SOFTIB_OPA" ]; then
	check "every pair of commands on one id" pairs
	tests ibcm device=ib_a other=ib_b <<<"$IBCM_TESTS"
	cmid_over_ib
fi

# answers_to_laps: the ends of a connection answer each proposal of an alternate path by its status: it is loaded, no port
# has the GID, the LID is not that of a port; and two more are loaded. Nobody sends a LAP with C.
answers_to_laps() {
	local want="0 8 7 0 0" got program
	[ "$CM" != c ] || want=''
	compiled ucma_conformance abi
	capture_start infiniband "$TMP/laps.pcap"
	"$program" ib.alternate_path_of_a_connection || return
	capture_end "$TMP/laps.pcap" "$TMP/laps.erf" || return
	got=$("$SELFTESTS/lib/aprs.py" "$TMP/laps.erf") || return
	[ "$got" = "$want" ] || fail "APRs with $got"
}
[ "$SOFTIB_OPA" ] || check "alternate paths are answered by their status" answers_to_laps

check "a third interface" softib_c
if [ "$SOFTIB_OPA" ]; then
	conformance 'opa.*'
else
	conformance 'ib.*'
fi
sa

check "everything goes" softib_down
finish
