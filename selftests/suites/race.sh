#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Two threads give commands to one id (walk/race.c); and commands are given while devices,
# neighbours and addresses come and go. Arguments: how many rounds of each pair (1), how many
# seconds for each change of the world (15), and the number of the first round (0). None of the
# former two, 0, leaves that part out. With OVER=ib the ids are those of a port with an InfiniBand
# link layer (softib.sh), and the world does not change.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

rounds=${1:-1} seconds=${2:-15} first=${3:-0}
name=cm-race
if [ "${OVER:-}" = ib ]; then
	# shellcheck source=selftests/lib/softib.sh
	. "$SELFTESTS/lib/softib.sh"
	name=cm-race-ib
	check "two ports, IPoIB, a subnet administrator" softib_up || finish
fi
program=$PWD/$name
if [ ! -x "$program" ]; then
	program=/tmp/$name
	make -s -C "$SELFTESTS/walk" OUT=/tmp >&2 || exit 1
fi

# Everything that a storm does may fail; it is the commands that must not.
storm() {
	while :; do
		"$@"
		sleep 0.0$((RANDOM % 10))
	done >/dev/null 2>&1
}

# during SECONDS STORM: commands, one after the other, while that goes on.
during() {
	local pid status=0
	storm "$2" & pid=$!
	"$program" -w -s "$1" || status=$?
	kill "$pid"
	wait "$pid" 2>/dev/null
	calm
	[ "$status" -eq 0 ] || return "$status"
	nothing_left 30
}

# As it was when the guest was set up.
calm() {
	ip link set v0 up
	ip addr replace 10.0.0.1/24 dev v0
	ip addr replace fd00::1/64 dev v0 nodad
	rdma link show rxe0/1 >/dev/null 2>&1 || rdma link add rxe0 type rxe netdev v0
	ip neigh flush dev v0
}

pairs() {
	"$program" -r "$rounds" -f "$first" || return
	nothing_left 30
}

device() {
	rdma link del rxe0
	sleep 0.0$((RANDOM % 10))
	rdma link add rxe0 type rxe netdev v0
	sleep 0.2
}

neighbour() {
	ip neigh replace 10.0.0.1 lladdr "02:00:00:00:00:0$((RANDOM % 10))" dev v0 nud reachable
	ip neigh replace 10.0.0.2 lladdr "02:00:00:00:00:0$((RANDOM % 10))" dev v0 nud reachable
	ip neigh replace 10.0.0.250 lladdr "02:00:00:00:00:0$((RANDOM % 10))" dev v0 nud reachable
	ip neigh flush dev v0
}

address() {
	ip addr del 10.0.0.1/24 dev v0
	ip addr add 10.0.0.1/24 dev v0
	sleep 0.1
}

[ "$rounds" -eq 0 ] || check "every pair of commands on one id" pairs
if [ "${OVER:-}" = ib ]; then
	check "everything goes" softib_down
	finish
fi
[ "$seconds" -ne 0 ] || finish
check "commands while neighbours change" during "$seconds" neighbour
check "commands while addresses go and come" during "$seconds" address
check "commands while the device goes and comes" during "$seconds" device
finish
