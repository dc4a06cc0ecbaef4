#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The network block device over RDMA: rnbd_client maps a disk of rnbd_server over rxe0, or with OVER over another device
# (storage.sh). Their transport, RTRS, has a connection for each CPU on each of its paths. The paths are those of two
# addresses of IPv4: RTRS takes a path of another family for one that it has (upstream-bugs.rst).
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"

needs brd
[ -e rnbd/rnbd-client.ko ] || {
	skip "all of it" "there is no RNBD (tools/rnbd)"
	finish
}

MAP=/sys/devices/virtual/rnbd-client/ctl/map_device
SESSION=/sys/devices/virtual/rtrs-client/s
RNBD=/sys/block/rnbd0/rnbd
DISK=/dev/rnbd0
# The address of the second path.
SECOND=10.9.9.1
# Two ends of a connection for each CPU, and of one for the rest.
ENDS=$((($(nproc) + 1) * 2))

# serve: the server, with few buffers, as each takes 128 kB at each path.
serve() {
	insmod rnbd/rnbd-server.ko || return
	wait_for 20 cm_id_in LISTEN 1234 || fail "no listener: $(cm_ids)"
}

load() {
	ip addr add "$SECOND/24" dev "$NETDEV" || return
	modprobe brd rd_nr=1 rd_size=65536 && insmod rnbd/rtrs-core.ko && insmod rnbd/rtrs-server.ko sess_queue_depth=32 &&
		insmod rnbd/rtrs-client.ko && insmod rnbd/rnbd-client.ko
}
check "the modules load" load || finish
check "a server listens" serve || finish

# map SESSION DISK [OPTION...]: the server's disk.
map() {
	timeout $((100 * PATIENCE)) bash -c "echo 'sessname=$1 device_path=$2 ${*:3}' >$MAP"
}

# paths: the directories of the paths of the session.
paths() {
	printf '%s\n' "$SESSION"/paths/*
}

# path NUMBER: the first or the second one.
path() {
	local addresses=("$A4" "$SECOND")
	local address=${addresses[$1 - 1]}
	echo "$SESSION/paths/ip:$address@ip:$address"
}

# path_is NUMBER STATE
path_is() {
	[ "$(<"$(path "$1")/state")" = "$2" ]
}

# path_becomes NUMBER STATE [SECONDS]
path_becomes() {
	wait_for "${3:-60}" path_is "$1" "$2" || fail "the path is $(<"$(path "$1")/state"), not $2: $(cm_ids)"
}

ends_are() {
	[ "$(cm_ids | grep -c 'state CONNECT')" -eq "$1" ]
}

# verify MEGABYTES: what is written is read, also by the server.
verify() {
	ram_disk_verify "$DISK" "$1" 64
}

mapped() {
	map s /dev/ram0 "path=ip:$A4@ip:$A4" "path=ip:$SECOND@ip:$SECOND" || fail "not mapped" || return
	wait_for 20 test -b "$DISK" || fail "no disk" || return
	path_is 1 connected && path_is 2 connected || fail "$(cat "$SESSION"/paths/*/state)" || return
	ends_are $((2 * ENDS)) || fail "$(cm_ids)" || return
	cm_id_in CONNECT "rtrs_client.*$SECOND" || fail "$(cm_ids)"
}
check "a disk is mapped over two paths" mapped || finish
check "what is written is read" verify 4
check "the connection manager is in use" in_use

# writing: reads and writes the disk until the file is removed.
writing() {
	while [ -e "$TMP/writing" ]; do
		verify 1 || return
	done
}

# A path goes while the disk is used: the other one carries on.
one_path() {
	local writer status=0
	: >"$TMP/writing"
	writing & writer=$!
	sleep 1
	echo 1 >"$(path "$1")/disconnect" || status=1
	path_becomes "$1" disconnected || status=1
	ends_are "$ENDS" || { status=1; cm_ids; }
	sleep 1
	echo 1 >"$(path "$1")/reconnect" || status=1
	path_becomes "$1" connected || status=1
	rm "$TMP/writing"
	ends_within 60 "$writer" || fail "the disk failed" || return
	[ "$status" -eq 0 ] && ends_are $((2 * ENDS)) || fail "$(cm_ids)"
}
check "the first path goes and comes back, the other one carries on" one_path 1
check "the second path goes and comes back, the other one carries on" one_path 2

# The server ends a path. The client is told, and connects again after half a minute.
by_server() {
	local before
	before=$(<"$(path 1)/stats/reconnects")
	echo 1 >"/sys/devices/virtual/rtrs-server/s/paths/ip:$A4@ip:$A4/disconnect" || return
	path_becomes 1 connecting 5 || path_becomes 1 disconnected 5 || return
	verify 1 || return
	path_becomes 1 connected 100 || return
	[ "$(<"$(path 1)/stats/reconnects")" != "$before" ] || fail "$before" || return
	verify 1
}
check "the server ends a path, and the client connects again" by_server

removed() {
	echo 1 >"$(path 2)/remove_path" || return
	[ "$(paths)" = "$(path 1)" ] || fail "$(paths)" || return
	ends_are "$ENDS" || fail "$(cm_ids)" || return
	verify 1 || return
	echo "ip:$SECOND@ip:$SECOND" >"$SESSION/add_path" || fail "not added" || return
	path_becomes 2 connected || return
	ends_are $((2 * ENDS)) || fail "$(cm_ids)" || return
	verify 1
}
check "a path is removed, and another one added" removed

# Nothing is left of an attempt that fails.
refused() {
	local before
	before=$(cm_ids | wc -l)
	! map s /dev/nothing "path=ip:$A4" || fail "mapped what is not there" || return
	! map t /dev/ram0 "path=ip:$A4" dest_port=1235 || fail "mapped from nobody" || return
	! map t /dev/ram0 path=ip:192.0.2.1 || fail "mapped from nowhere" || return
	wait_for 20 eval "[ \"\$(cm_ids | wc -l)\" -eq $before ]" || fail "$(cm_ids)" || return
	verify 1
}
check "nobody, nothing and nowhere" refused

server_again() {
	wait_for 20 rmmod rnbd-server || fail "$(lsmod)" || return
	wait_for 60 eval '! cm_id_in LISTEN 1234' || fail "$(cm_ids)" || return
	wait_for 60 ends_are 0 || fail "$(cm_ids)" || return
	serve || return
	# It would by itself, but only after half a minute, or a whole one.
	echo 1 >"$(path 1)/reconnect" && echo 1 >"$(path 2)/reconnect" || fail "no way back" || return
	path_becomes 1 connected && path_becomes 2 connected || return
	wait_for 20 grep -q open "$RNBD/state" || fail "$(<"$RNBD/state")" || return
	verify 2
}
check "the server is unloaded, and loaded again" server_again

# After the device has gone, RNBD waits for answers for a minute, with the connection manager of C, too: as long as it takes
# until the guest's kernel calls a task hung.
HUNG=$(</proc/sys/kernel/hung_task_timeout_secs)
sysctl -q kernel.hung_task_timeout_secs=$((HUNG * 3))

unplugged() {
	unplug || return
	wait_for 60 ends_are 0 || fail "$(cm_ids)" || return
	plug || return
	wait_for 20 cm_id_in LISTEN 1234 || fail "no listener: $(cm_ids)" || return
	echo 1 >"$(path 1)/reconnect" && echo 1 >"$(path 2)/reconnect" || fail "no way back" || return
	path_becomes 1 connected && path_becomes 2 connected || return
	wait_for 20 grep -q open "$RNBD/state" || fail "$(<"$RNBD/state")" || return
	verify 2
}
check "the device goes and comes back" unplugged

unmapped() {
	echo normal >"$RNBD/unmap_device" || return
	wait_for 60 test ! -e "$DISK" || fail "the disk is still there" || return
	wait_for 60 ends_are 0 || fail "$(cm_ids)"
}
check "the disk is unmapped" unmapped

ipv6() {
	map v6 /dev/ram0 "path=ip:$A6@ip:$A6" || fail "not mapped" || return
	wait_for 20 test -b "$DISK" || fail "no disk" || return
	cm_id_in CONNECT "rtrs_client.*$A6" && ends_are "$ENDS" || fail "$(cm_ids)" || return
	verify 2 && unmapped
}
check "over IPv6" ipv6

unload() {
	unloaded rnbd_client rnbd_server rtrs_client rtrs_server rtrs_core brd && ip addr del "$SECOND/24" dev "$NETDEV"
}
check "the modules unload" unload
made_for_it_goes
sysctl -q kernel.hung_task_timeout_secs="$HUNG"
finish
