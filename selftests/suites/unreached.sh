#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Requests from senders whose neighbour does not answer, when their listener ends: they end with it,
# at once, and nothing is shown under the name of a module that has gone. seconds: 200
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"

compiled storm trouble
STORM=$program
# The number of requests a second, and the seconds.
RATE=40 SPOOFED=60
COUNTS=/sys/class/infiniband/rxe0/ports/1/cm_rx_msgs
sources=()
for i in $(seq 1 100); do sources+=("10.0.7.$i"); done

# Packets go both ways, but nobody says where the sources are.
lead_nowhere() {
	local i
	$PEER sysctl -qw net.ipv4.conf.v1.arp_ignore=8 || return
	ip neigh replace "$B4" lladdr "$($PEER cat /sys/class/net/v1/address)" dev v0 nud permanent
	$PEER ip neigh replace "$A4" lladdr "$(cat /sys/class/net/v0/address)" dev v1 nud permanent
	for i in "${sources[@]}"; do $PEER ip addr add "$i/32" dev v1 || return; done
	ip route add 10.0.7.0/24 dev v0
}

lead_back() {
	local i
	ip route del 10.0.7.0/24
	for i in "${sources[@]}"; do $PEER ip addr del "$i/32" dev v1; done
	$PEER sysctl -qw net.ipv4.conf.v1.arp_ignore=0
	ip neigh del "$B4" dev v0
	$PEER ip neigh del "$A4" dev v1
}

# requests PATTERN: those that are shown at the device of this end.
requests() {
	local line
	while IFS= read -r line; do
		[[ $line != *"link rxe0/"*"state CONNECT "* || ! $line =~ $1 ]] || echo "$line"
	done < <(cm_ids)
}

# arrived MESSAGE BEFORE PATTERN: some have arrived, and are shown; C shows one when its sender is
# known.
arrived() {
	[ $(($(<"$COUNTS/$1") - $2)) -ge 10 ] || return
	[ "$CM" = c ] || [ -n "$(requests "$3")" ]
}

# spoofed MODE PORT MESSAGE PATTERN: starts the requests and waits until there are some.
spoofed() {
	local before
	before=$(<"$COUNTS/$3")
	$PEER "$STORM" "$1" "${sources[@]}" "$A4" "$2" "$RATE" "$SPOOFED" >/dev/null 2>&1 & spoof=$!
	wait_for 20 arrived "$3" "$before" "$4" || fail "no requests are shown"
}

none_are_shown() {
	local left
	left=$(requests "$1")
	[ -z "$left" ] || fail "$left"
}

stop_spoof() {
	kill "$spoof"
	wait "$spoof"
	nothing_left
}

# program_ends MODE PORT MESSAGE COMMAND...: the listener is COMMAND's.
program_ends() {
	local mode=$1 port=$2 message=$3 server spoof
	shift 3
	"$@" >/dev/null 2>&1 & server=$!
	await_listener || return
	spoofed "$mode" "$port" "$message" ":$port" || return
	kill -9 "$server"
	wait "$server"
	none_are_shown ":$port" || return
	stop_spoof
}

dumping() {
	while [ ! -e "$TMP/enough" ]; do
		rdma resource show cm_id >/dev/null || echo "a dump failed"
	done
}

# The part of the kernel that listens ends its listener, and is unloaded, while dumps go on.
module_goes() {
	local dumps spoof failed
	nvmet_load 16 && nvmet_target "$1" || return
	spoofed spoof 4420 req nvmet_rdma || return
	rm -f "$TMP/enough"
	dumping >"$TMP/dumps" 2>&1 & dumps=$!
	nvmet_off 1 || return
	none_are_shown nvmet_rdma || return
	rmmod nvmet_rdma || return
	sleep 2
	touch "$TMP/enough"
	wait "$dumps"
	failed=$(<"$TMP/dumps")
	[ -z "$failed" ] || fail "$failed" || return
	stop_spoof || return
	rmdir "$NVMET/ports/1" || return
	echo 0 >"$NVMET/subsystems/t/namespaces/1/enable" || return
	rmdir "$NVMET/subsystems/t/namespaces/1" "$NVMET/subsystems/t"
}

check "the way to the senders is unknown" lead_nowhere || finish
check "a program's listener ends" program_ends spoof 7000 req "$STORM" serve "$A4" 7000 16 0
check "a program's wildcard listener ends" program_ends spoof 7000 req "$STORM" serve 0.0.0.0 7000 16 0
check "a program's listener for datagrams ends" program_ends spoof-udp 7174 sidr_req \
	udaddy -b "$A4"
if modinfo nvmet-rdma >/dev/null 2>&1; then
	check "nvmet-rdma ends its listener and goes" module_goes "$A4"
	check "nvmet-rdma ends its wildcard listener and goes" module_goes 0.0.0.0
else
	skip "nvmet-rdma ends its listener and goes" "the kernel has none"
fi
lead_back
finish
