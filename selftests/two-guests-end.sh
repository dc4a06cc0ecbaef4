#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# two-guests-end.sh NUMBER CM CM [capture]: what each of the guests of two-guests.sh
# does, both at the same time. They meet through files in the directory they share.
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"

me=$1 other=$((3 - $1))
names=([1]="$2" [2]="$3")
dir=$PWD
own4=10.0.1.$me own6=fd01::$me
far4=10.0.1.$other far6=fd01::$other

say() {
	: >"$dir/$1.$me"
}

# A guest may take long to boot where many run.
hear() {
	wait_for "${2:-60}" test -e "$dir/$1.$other" || fail "nothing heard of $1"
}

round=0

# exchange SERVER TITLE SERVER-COMMAND CLIENT-COMMAND: both ends end with success.
server_end() {
	local server status=0
	timeout 60 bash -c "exec $2" & server=$!
	await_listener
	say "$1-ready"
	hear "$1-done" || status=1
	[ "$status" -ne 0 ] || ends_within 20 "$server" || { status=$?; echo "server: $status"; }
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

client_end() {
	local status=0
	hear "$1-ready" || return
	timeout 50 bash -c "exec $2" || status=$?
	say "$1-done"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

exchange() {
	local server=$1 what=$2
	round=$((round + 1))
	if [ "$server" = "$me" ]; then
		check "$what, ${names[server]} server" server_end "$round" "$3"
	else
		check "$what, ${names[server]} server" client_end "$round" "$4"
	fi
}

# group SENDER: the other one receives, and waits for a few messages of many: not all
# are out when the sender ends.
group() {
	round=$((round + 1))
	if [ "$1" = "$me" ]; then
		check "mckey, ${names[$1]} sends" client_end "$round" \
			"mckey -s -C 1000 -m 239.1.2.$round -b $own4"
	else
		check "mckey, ${names[$1]} sends" group_receiver "$round"
	fi
}

group_receiver() {
	local receiver status=0
	stdbuf -oL timeout 60 mckey -C 3 -m "239.1.2.$1" -b "$own4" >"$TMP/log" 2>&1 & receiver=$!
	wait_for 20 grep -q "joined dgid" "$TMP/log" || status=1
	say "$1-ready"
	hear "$1-done" || status=1
	[ "$status" -ne 0 ] || ends_within 20 "$receiver" || { status=$?; echo "receiver: $status"; }
	cat "$TMP/log"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

# One end is killed while connected: the other is told.
victim() {
	local server=$1 what=$2
	round=$((round + 1))
	if [ "$server" = "$me" ]; then
		check "$what" survivor "$round"
	else
		check "$what" killed "$round"
	fi
}

survivor() {
	local server
	stdbuf -oL rping -s -d -v -a "$own4" >"$TMP/log" 2>&1 & server=$!
	await_listener
	say "$1-ready"
	hear "$1-done" || return
	wait_for 10 grep -q DISCONNECTED "$TMP/log" || fail "no DISCONNECTED" || return
	ends_within 20 "$server"
	[ $? -ne 99 ] || return
	nothing_left
}

killed() {
	local client
	hear "$1-ready" || return
	stdbuf -oL rping -c -d -v -a "$far4" >"$TMP/log" 2>&1 & client=$!
	wait_for 10 grep -q "ping data" "$TMP/log" || { kill -9 "$client"; say "$1-done"; return 1; }
	kill -9 "$client"
	say "$1-done"
	ends_within 20 "$client"
	[ $? -ne 99 ] || return
	nothing_left
}

if [ "$me" = 1 ] && [ "${4:-}" = capture ]; then
	capture_start eth0 /tmp/two-guests.pcap
fi
say booted
check "the other guest is there" hear booted 150
check "it answers" wait_for 20 ping -c 1 -W 2 "$far4"

for server in 1 2; do
	if [ "$server" = "$me" ]; then s4=$own4 s6=$own6; else s4=$far4 s6=$far6; fi
	exchange "$server" "rping" "rping -s -a $s4 -C 10 -V" "rping -c -a $s4 -C 10 -V"
	exchange "$server" "rping, IPv6" "rping -s -a $s6 -C 10 -V" "rping -c -a $s6 -C 10 -V"
	exchange "$server" "rping with its own queue pair" "rping -s -q -a $s4 -C 5" \
		"rping -c -q -a $s4 -C 5"
	exchange "$server" "ucmatose with 20 connections" "ucmatose -b $s4 -c 20" \
		"ucmatose -s $s4 -c 20"
	exchange "$server" "udaddy with 10 ids" "udaddy -b $s4 -c 10" "udaddy -s $s4 -c 10"
	exchange "$server" "udaddy, IPv6" "udaddy -f ip6 -b $s6" "udaddy -f ip6 -s $s6"
	exchange "$server" "rstream" "rstream -b $s4 -I 5 -C 5 -S 4096" \
		"rstream -s $s4 -I 5 -C 5 -S 4096"
	exchange "$server" "riostream" "riostream -b $s4 -I 5 -C 5 -S 4096" \
		"riostream -s $s4 -I 5 -C 5 -S 4096"
	exchange "$server" "rdma_server and rdma_client" "rdma_server -s $s4" "rdma_client -s $s4"
	exchange "$server" "rdma_xserver and rdma_xclient" "rdma_xserver -c r" \
		"rdma_xclient -s $s4 -c r"
	exchange "$server" "cmtime with 100 connections" "cmtime -b $s4 -c 100 -m 0 -q 2000000" \
		"cmtime -s $s4 -b 10.0.1.$((3 - server)) -c 100 -m 0 -q 1000000"
	group "$server"
	victim "$server" "kill -9 of the client, ${names[server]} server"
done
say finished
hear finished 60 || :
if [ -n "${TCPDUMP:-}" ]; then
	check "captured" capture_end /tmp/two-guests.pcap "$dir/two-guests.pcap"
fi
finish
