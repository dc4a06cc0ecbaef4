#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Programs of rdmacm-utils and perftest, unmodified, and uc in the current directory.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/mckey.sh
. "$SELFTESTS/lib/mckey.sh"

# both SERVER -- CLIENT: each a command line; the server runs in the other
# namespace, and both end with success.
both_after() {
	local ready=$1 server status=0 a=$2 b=$3
	$PEER timeout $((90 * PATIENCE)) bash -c "$a" >"$TMP/server" 2>&1 & server=$!
	"$ready" || {
		cat "$TMP/server"
		return 1
	}
	timeout $((90 * PATIENCE)) bash -c "$b" || { status=$?; echo "client: $status"; }
	ends_within 30 "$server" || { status=$?; echo "server: $status"; }
	echo "--- server"
	cat "$TMP/server"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}
both() {
	both_after await_listener "$@"
}

# Runs both ends like the function before, and both print that line.
both_say() {
	local text=$1 status
	shift
	both "$@" >"$TMP/both" 2>&1 || { status=$?; cat "$TMP/both"; return "$status"; }
	[ "$(grep -c "$text" "$TMP/both")" -ge 2 ] || fail "not twice: $text"
}

for count in 1 10 100 1000; do
	check "ucmatose -c $count" both_say "return status 0" \
		"ucmatose -c $count" "ucmatose -s $B4 -c $count"
done
check "ucmatose, IPv6" both_say "return status 0" \
	"ucmatose -f ip6 -b $B6" "ucmatose -f ip6 -s $B6"
check "ucmatose, bound source" both_say "return status 0" \
	"ucmatose -b $B4 -c 5" "ucmatose -s $B4 -b $A4 -c 5"
check "ucmatose, type of service and timeout" both_say "return status 0" \
	"ucmatose -c 5 -t 32 -a 14" "ucmatose -s $B4 -c 5 -t 32 -a 14"
check "ucmatose, messages" both_say "return status 0" \
	"ucmatose -c 5 -C 20 -S 4096" "ucmatose -s $B4 -c 5 -C 20 -S 4096"

for count in 1 10 100; do
	check "udaddy -c $count" both_say "return status 0" \
		"udaddy -c $count" "udaddy -s $B4 -c $count"
done
check "udaddy, IPv6" both_say "return status 0" \
	"udaddy -f ip6 -b $B6" "udaddy -f ip6 -s $B6"
check "udaddy, type of service" both_say "return status 0" \
	"udaddy -c 5 -t 32" "udaddy -s $B4 -b $A4 -c 5 -t 32"
check "udaddy, messages" both_say "return status 0" \
	"udaddy -c 5 -C 20 -S 1000" "udaddy -s $B4 -c 5 -C 20 -S 1000"

# The client puts its queue pair into the error state when it has the server's message,
# which may be before soft-RoCE has acknowledged it. The server then waits for that for
# ever: with a retry count of 7 soft-RoCE does not give up.
check "rdma_server and rdma_client" thrice both "rdma_server -s $B4" "rdma_client -s $B4"
check "rdma_xserver and rdma_xclient" thrice both "rdma_xserver -c r" "rdma_xclient -s $B4 -c r"

# No other program has queue pairs of unreliable connections (selftests/uc).
if [ -e uc ]; then
	check "UC, a word in either direction" both_say "done" "./uc $B4 7471" "./uc -c $B4 7471"
	check "UC, IPv6" both_say "done" "./uc $B6 7471" "./uc -c $B6 7471"
else
	skip "UC" "there is no uc (tools/check makes it)"
fi

# Soft-RoCE has no XRC queue pairs, and the client says so, whatever the connection
# manager.
no_xrc() {
	timeout $((20 * PATIENCE)) rdma_xclient -s "$B4" -c x >"$TMP/xrc" 2>&1
	echo "status $?" >>"$TMP/xrc"
	grep -q "Operation not supported" "$TMP/xrc" || { cat "$TMP/xrc"; return 1; }
	nothing_left
}
check "rdma_xclient, XRC: not supported" no_xrc

# Datagram rsockets find no device over soft-RoCE, and the client says so, whatever the
# connection manager.
no_udpong() {
	local server
	$PEER udpong -b "$B4" -C 5 -S 1000 >/dev/null 2>&1 & server=$!
	sleep 1
	timeout $((20 * PATIENCE)) udpong -s "$B4" -b "$A4" -C 5 -S 1000 >"$TMP/udpong" 2>&1
	echo "status $?" >>"$TMP/udpong"
	end "$server"
	grep -q "rconnect: No such file or directory" "$TMP/udpong" || { cat "$TMP/udpong"; return 1; }
	nothing_left
}
check "udpong: no device" no_udpong

# An rsocket that closes waits for the acknowledgement of its last message, too.
for kind in b n r; do
	check "rstream -T $kind" thrice both "rstream -b $B4 -I 5 -C 5 -S 4096 -T $kind" \
		"rstream -s $B4 -I 5 -C 5 -S 4096 -T $kind"
done
# Asynchronous, the client often ends with what poll said last, 16 for POLLHUP,
# because the server was faster: that the server got all is in its last line.
async() {
	both "rstream -b $B4 -I 5 -C 5 -S 4096 -T a" \
		"rstream -s $B4 -I 5 -C 5 -S 4096 -T a; s=\$?; [ \$s -eq 0 ] || [ \$s -eq 16 ]" \
		>"$TMP/both" 2>&1 || { cat "$TMP/both"; return 1; }
	grep -q '^custom .* 200k ' <<<"$(sed '1,/^--- server/d' "$TMP/both")" || fail "not all the data"
}
check "rstream -T a" thrice async
check "riostream" thrice both "riostream -b $B4 -I 5 -C 5 -S 4096" "riostream -s $B4 -I 5 -C 5 -S 4096"

copy() {
	local server status=0
	head -c 1000000 /dev/urandom >"$TMP/data"
	$PEER rcopy >"$TMP/server" 2>&1 & server=$!
	await_listener || return
	timeout $((60 * PATIENCE)) rcopy "$TMP/data" "$B4:$TMP/copy" || status=$?
	sleep 0.5
	kill "$server"
	wait "$server" 2>/dev/null
	[ "$status" -eq 0 ] || return "$status"
	cmp "$TMP/data" "$TMP/copy" || return
	nothing_left
}
check "rcopy" thrice copy

# mckeys GROUP RECEIVER-OPTIONS SENDER-OPTIONS: both ends of a group. A group of a link is at the interfaces between the two.
mckeys() {
	local group=$1 there=$B4 here=$A4
	[[ $group != *:* ]] || there=$B6 here=$A6
	mckey_pair "-m $group -b $there $2" "-m $group -b $here $3" in_group "$PEER" v1 "$group" || return
	! in_group "$PEER" v1 "$group" && ! in_group "" v0 "$group" || fail "an interface is still a member" || return
	nothing_left
}

# in_group NAMESPACE NETDEV GROUP: is the interface a member?
in_group() {
	$1 ip maddr show dev "$2" | grep -w "inet6*  *$3" >/dev/null
}

check "mckey" thrice mckeys 239.1.2.3 "-C 3" "-C 1000"
check "mckey, larger messages" thrice mckeys 239.1.2.4 "-C 3 -S 1024" "-C 1000 -S 1024"
check "mckey, sends only" thrice mckeys 239.1.2.5 "-C 3" "-C 1000 -o"
check "mckey, several ids" thrice mckeys 239.1.2.6 "-C 3 -c 5" "-C 1000 -c 5"
if [ "$(cm-use)" != c ]; then
	check "mckey, IPv6" thrice mckeys ff0e::1234 "-C 3" "-C 1000"
	check "mckey, IPv6, sends only" thrice mckeys ff0e::1235 "-C 3" "-C 1000 -o"
	check "mckey, IPv6, a group of the link" thrice mckeys ff12::99 "-C 3" "-C 1000"
	check "mckey, IPv6, a group of the site" thrice mckeys ff15::99 "-C 3 -c 5" "-C 1000 -c 5"
else
	skip "mckey, IPv6" "C has no IPv6 groups over RoCE v2"
fi

# Many connections at once. The numbers of queue pairs are made up, far from real
# ones, and different for the two ends.
cmtime_both() {
	if cmtime_meets; then
		both_after meeting_place "cmtime -L -C $B4 -b $B4 $* -q 2000000" \
			"cmtime -C $B4 -b $A4 $* -q 1000000"
	else
		both "cmtime -b $B4 $* -q 2000000" "cmtime -s $B4 -b $A4 $* -q 1000000"
	fi
}
meeting_place() {
	# shellcheck disable=SC2086
	cmtime_place "$B4" $PEER
}
check "cmtime, 50 connections" cmtime_both -c 50 -m 0
check "cmtime, 500 connections" cmtime_both -c 500 -m 0
check "cmtime, 50 connections with queue pairs" cmtime_both -c 50

# The server of perftest listens, serves a first connection, and then listens anew
# for those of the test. A client that is faster is refused, as there is nobody yet;
# it does not try again, but crashes. So it is started again here.
perf() {
	local program=$1 try
	shift
	for try in 1 2 3; do
		both "$program -R -d rxe1 -F -n 50 $*" "$program -R -d rxe0 -F -n 50 $* $B4" \
			>"$TMP/perf" 2>&1 && return
		grep "RDMA_CM_EVENT_REJECTED; error: 8" "$TMP/perf" >/dev/null || break
		echo "try $try: the client was faster"
		end_jobs
		wait_for 10 no_cm_ids
	done
	cat "$TMP/perf"
	return 1
}
for program in ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat \
	ib_atomic_bw ib_atomic_lat; do
	check "$program -R" perf "$program"
done
check "ib_write_bw -R, four queue pairs" perf ib_write_bw -q 4
finish
