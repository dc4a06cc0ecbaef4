#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# two-guests-end.sh NUMBER CM CM [capture]: what each of the guests of two-guests.sh
# does, both at the same time.
# seconds: 900
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/pairs/meet.sh
. "$SELFTESTS/pairs/meet.sh"

# server_end COMMAND [READY], client_end COMMAND [SECONDS]: both ends with success; the client starts when
# READY, or a listener, says so.
server_end() {
	local server status=0
	bash -c "exec $1" & server=$!
	"${2:-await_listener}"
	say ready
	hear ended || status=1
	[ "$status" -ne 0 ] || ends_or_lacks_ack 20 "$server" || { status=$?; echo "server: $status"; }
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

client_end() {
	local client status=0
	hear ready || return
	bash -c "exec $1" & client=$!
	ends_or_lacks_ack "${2:-150}" "$client" || status=$?
	say ended
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

# ends_or_lacks_ack SECONDS PID: as ends_within; says so if it knows that its connection has ended, and
# waits for the acknowledgement of its last message (see rdma_server in programs.sh).
ends_or_lacks_ack() {
	local status=0
	ends_within "$@" || status=$?
	if [ "$status" -eq 99 ] && cm_id_in DISCONNECT "pid $2 " &&
		! grep ucma_get_event "/proc/$2/stack" >/dev/null; then
		echo "its last message is not acknowledged"
	fi
	return "$status"
}

# exchange SERVER TITLE SERVER-COMMAND CLIENT-COMMAND [SECONDS]
exchange() {
	local title="$2, ${names[$1]} server"
	if [ "$1" = "$me" ]; then
		both "$title" server_end "$3"
	else
		both "$title" client_end "$4" "${5:-150}"
	fi
}

# racing SERVER TITLE SERVER-COMMAND CLIENT-COMMAND: an exchange after which both ends disconnect at once,
# so that it starts again if one never has its acknowledgement.
racing() {
	local title="$2, ${names[$1]} server"
	if [ "$1" = "$me" ]; then
		both "$title" tries server_end "$3"
	else
		both "$title" tries client_end "$4" 40
	fi
}

# Newer versions of cmtime meet at a socket before the server listens.
cmtime_server() {
	if cmtime_meets; then
		server_end "cmtime -L -C $own4 -b $own4 -c 100 -m 0 -q 2000000" own_place
	else
		server_end "cmtime -b $own4 -c 100 -m 0 -q 2000000"
	fi
}

own_place() {
	cmtime_place "$own4"
}

cmtime_client() {
	local place="-s $far4"
	! cmtime_meets || place="-C $far4"
	client_end "cmtime $place -b $own4 -c 100 -m 0 -q 1000000"
}

# The server of rcopy has no end of its own.
rcopy_server() {
	local server status=0
	rcopy & server=$!
	await_listener
	say ready
	hear ended || status=1
	kill "$server"
	wait "$server" 2>/dev/null
	[ "$status" -eq 0 ] || return "$status"
	cmp "$dir/rcopy.$round" "/tmp/rcopy.$round" || return
	nothing_left
}

rcopy_client() {
	head -c 1000000 /dev/urandom >"$dir/rcopy.$round"
	client_end "rcopy $dir/rcopy.$round $far4:/tmp/rcopy.$round"
}

# perftest SERVER PROGRAM: its server listens twice, once for the addresses of the test
# and once for its connections. A client that is faster is refused, as there is nobody
# yet; it does not try again, but crashes. So both ends start again then.
perftest() {
	local command="$2 -R -d rxe0 -F -n 50" title="$2 -R, ${names[$1]} server"
	if [ "$1" = "$me" ]; then
		both "$title" tries server_end "$command"
	else
		both "$title" tries client_end "$command $far4"
	fi
}

tries() {
	local first=$round round try theirs own
	for try in 1 2 3; do
		round=$first-$try
		own=good
		"$@" >"$TMP/try" 2>&1 || own=bad
		cat "$TMP/try"
		if grep -E "RDMA_CM_EVENT_REJECTED; error: 8|message is not acknowledged" "$TMP/try" >/dev/null; then
			own=again
		fi
		say end "$own"
		hear end || return
		theirs=$(told end)
		if [ "$own" != again ] && [ "$theirs" != again ]; then
			[ "$own" = good ]
			return
		fi
		end_jobs
		wait_for 10 no_cm_ids
	done
	return 1
}

# group SENDER: the other one receives, and waits for a few messages of many: not all
# are out when the sender ends, and what comes before the receiver's interface lets the group in is
# lost. So the sender sends until they have come.
group() {
	local title="mckey, ${names[$1]} sends"
	if [ "$1" = "$me" ]; then
		both "$title" group_sender
	else
		both "$title" group_receiver
	fi
}

group_sender() {
	hear ready || return
	until said_or_ended received; do
		timeout 150 mckey -s -C 1000 -m "239.1.2.$round" -b "$own4" || return
	done
	nothing_left
}

group_receiver() {
	local receiver status=0
	stdbuf -oL timeout 300 mckey -C 3 -m "239.1.2.$round" -b "$own4" >"$TMP/log" 2>&1 & receiver=$!
	wait_for 20 grep -q "joined dgid" "$TMP/log" || status=1
	say ready
	[ "$status" -ne 0 ] || ends_within 200 "$receiver" || { status=$?; echo "receiver: $status"; }
	[ "$status" -ne 0 ] || say received
	cat "$TMP/log"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

# One end is killed while connected: the other is told.
victim_server() {
	local server before
	before=$(farewells)
	stdbuf -oL rping -s -d -v -a "$own4" >"$TMP/log" 2>&1 & server=$!
	await_listener
	say ready
	hear ended || return
	misses "$server" "$TMP/log" || return
	wait_for 10 eval '[ "$(farewells)" -gt "$before" ]' || fail "neither DREQ nor DREP" || return
	nothing_left
}

# Prints the number of messages that have told that a connection ends.
farewells() {
	local dir=/sys/class/infiniband/rxe2/ports/1/cm_rx_msgs
	echo $(($(<"$dir/dreq") + $(<"$dir/drep")))
}

victim_client() {
	local client
	hear ready || return
	: >"$TMP/log"
	stdbuf -oL rping -c -d -v -a "$far4" >"$TMP/log" 2>&1 & client=$!
	wait_for 10 grep -q "ping data" "$TMP/log" || { kill -9 "$client"; say ended; return 1; }
	kill -9 "$client"
	say ended
	ends_within 20 "$client"
	[ $? -ne 99 ] || return
	nothing_left
}

# The client is gone, and nothing that its host sends about it arrives, as after a crash. The server waits for
# the client's next message: this module asks the client's host, C waits on.
forgotten_server() {
	local server since told=0
	[ "$CM" != rust ] || port_setting cm_keepalive_s 2 rxe2 || return
	stdbuf -oL rping -s -d -v -a "$own4" >"$TMP/log" 2>&1 & server=$!
	await_listener
	say ready
	hear forgotten || return
	since=$(date +%s%3N)
	learns 10 "$TMP/log" || told=1
	note "$CM: $([ "$told" = 0 ] && echo "told after $(($(date +%s%3N) - since)) ms" || echo "not told in 10 s")"
	[ "$CM" != rust ] || port_setting cm_keepalive_s 0 rxe2 || return
	if [ "$CM" = rust ]; then
		[ "$told" = 0 ] && misses "$server" "$TMP/log" || return
	else
		[ "$told" = 1 ] && cm_id_in CONNECT "pid $server " || return
		end "$server"
	fi
	nothing_left
}

forgotten_client() {
	local client
	hear ready || return
	: >"$TMP/log"
	stdbuf -oL rping -c -d -v -a "$far4" >"$TMP/log" 2>&1 & client=$!
	wait_for 10 grep -q "ping data" "$TMP/log" || { kill -9 "$client"; return 1; }
	kill -STOP "$client"
	pause 1
	tc qdisc add dev eth0 root netem loss 100% || return
	kill -9 "$client"
	wait_for 20 no_cm_ids
	tc qdisc del dev eth0 root || return
	say forgotten
	ends_within 20 "$client"
	[ $? -ne 99 ] || return
	nothing_left
}

if [ -e "$dir/programs.sqfs" ]; then
	use_programs_of "$dir/programs.sqfs" || exit
fi
if [ "$me" = 1 ] && [ "${4:-}" = capture ]; then
	capture_start eth0 /tmp/two-guests.pcap
fi
meet

for server in 1 2; do
	if [ "$server" = "$me" ]; then s4=$own4 s6=$own6; else s4=$far4 s6=$far6; fi
	exchange "$server" "rping" "rping -s -a $s4 -C 10 -V" "rping -c -a $s4 -C 10 -V"
	exchange "$server" "rping, IPv6" "rping -s -a $s6 -C 10 -V" "rping -c -a $s6 -C 10 -V"
	exchange "$server" "rping with its own queue pair" "rping -s -q -a $s4 -C 5" \
		"rping -c -q -a $s4 -C 5"
	for count in 1 20 100; do
		exchange "$server" "ucmatose with $count connections" "ucmatose -b $s4 -c $count" \
			"ucmatose -s $s4 -c $count"
	done
	exchange "$server" "udaddy with 10 ids" "udaddy -b $s4 -c 10" "udaddy -s $s4 -c 10"
	exchange "$server" "udaddy, IPv6" "udaddy -f ip6 -b $s6" "udaddy -f ip6 -s $s6"
	racing "$server" "rstream" "rstream -b $s4 -I 5 -C 5 -S 4096" \
		"rstream -s $s4 -I 5 -C 5 -S 4096"
	racing "$server" "riostream" "riostream -b $s4 -I 5 -C 5 -S 4096" \
		"riostream -s $s4 -I 5 -C 5 -S 4096"
	racing "$server" "rdma_server and rdma_client" "rdma_server -s $s4" "rdma_client -s $s4"
	racing "$server" "rdma_xserver and rdma_xclient" "rdma_xserver -c r" \
		"rdma_xclient -s $s4 -c r"
	pair "$server" rcopy
	pair "$server" cmtime
	for program in ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat \
		ib_atomic_bw ib_atomic_lat; do
		perftest "$server" "$program"
	done
	group "$server"
	pair "$server" victim "kill -9 of the client"
	pair "$server" forgotten "the client's host has lost the connection"
done
if [ -n "${TCPDUMP:-}" ]; then
	check "captured" capture_end /tmp/two-guests.pcap "$dir/two-guests.pcap"
fi

# Not captured: so many messages at once are more than there is room for on the way, and what is lost before it is
# seen cannot be judged. One message for each connection: the ten that ucmatose takes for granted are more than an
# emulated wire carries within the time that a queue pair waits for an acknowledgement, over C too.
for server in 1 2; do
	if [ "$server" = "$me" ]; then s4=$own4; else s4=$far4; fi
	exchange "$server" "ucmatose with 1000 connections" "ucmatose -b $s4 -c 1000 -C 1" \
		"ucmatose -s $s4 -c 1000 -C 1" 400
done
finish
