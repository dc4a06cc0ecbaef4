#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe over RDMA: nvme-rdma connects to nvmet-rdma over rxe0, or with OVER over another device
# (storage.sh), both of this kernel and both kernel consumers of the connection manager.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"

# The amount that the larger tests write.
MEGABYTES=${MEGABYTES:-48}

needs nvme-rdma nvmet-rdma brd

load() {
	nvmet_load $((MEGABYTES * 4 / 3 + 32)) && nvme_load
}
check "the modules load" load || {
	finish
}

check "a target listens" nvmet_target "$A4"

# verify CONTROLLER MEGABYTES: writes, and reads back from both ends.
verify() {
	wait_for 10 nvme_disk "$1" || fail "no disk" || return
	ram_disk_verify "$(nvme_disk "$1")" "$2"
}

connected() {
	nvme_create "$1" t >/tmp/nvme.number || fail "cannot connect" || return
	nvme_is "$(</tmp/nvme.number)" live || fail "state $(nvme_state "$(</tmp/nvme.number)")" || return
	# An admin queue and two for data, each with two ends.
	[ "$(cm_ids | grep -c 'state CONNECT')" -ge 6 ] || fail "$(cm_ids)"
}
check "a host connects" connected "$A4"
N=$(</tmp/nvme.number)
check "what is written is read" verify "$N" 4

check "the connection manager is in use" in_use

reset() {
	echo 1 >"/sys/class/nvme/nvme$N/reset_controller" || return
	wait_for 30 nvme_is "$N" live || fail "state $(nvme_state "$N")" || return
	verify "$N" 1
}
check "reset, and again" reset
check "reset, once more" reset

outage() {
	nvmet_off 1 || return
	wait_for 30 nvme_is "$N" connecting || fail "state $(nvme_state "$N")" || return
	sleep 2
	nvmet_on 1 || return
	wait_for 60 nvme_is "$N" live || fail "state $(nvme_state "$N")" || return
	verify "$N" 1
}
check "the target goes and comes back" outage

refused() {
	! nvme_create "$A4" unknown || fail "connected to what is not there" || return
	! timeout $((60 * PATIENCE)) bash -c "echo -n \
		transport=rdma,traddr=$A4,trsvcid=4421,nqn=t,$NVME_HOST >/dev/nvme-fabrics" ||
		fail "connected to nobody" || return
	! timeout $((60 * PATIENCE)) bash -c "echo -n \
		transport=rdma,traddr=192.0.2.1,trsvcid=4420,nqn=t,$NVME_HOST >/dev/nvme-fabrics" ||
		fail "connected to nowhere"
}
check "nobody and nothing there" refused

disconnected() {
	nvme_delete "$N" || fail "it is still there" || return
	wait_for 20 eval '! cm_id_in CONNECT' || fail "$(cm_ids)"
}
check "disconnect" disconnected

# Each has an admin queue and four for data.
many() {
	local i n numbers=()
	for ((i = 0; i < 16; i++)); do
		n=$(nvme_create "$A4" t duplicate_connect nr_write_queues=2) || fail "controller $i" || return
		numbers+=("$n")
	done
	[ "$(cm_ids | grep -c 'state CONNECT')" -ge $((16 * 5 * 2)) ] || fail "$(cm_ids)" || return
	verify "${numbers[0]}" 1 || return
	for n in "${numbers[@]}"; do
		echo 1 >"/sys/class/nvme/nvme$n/reset_controller" &
	done
	wait
	nvme_all_are live "${numbers[@]}" || return
	nvmet_off 1 || return
	nvme_all_are connecting "${numbers[@]}" || return
	nvmet_on 1 || return
	nvme_all_are live "${numbers[@]}" || return
	verify "${numbers[15]}" 1 || return
	for n in "${numbers[@]}"; do
		nvme_delete "$n" &
	done
	wait
	wait_for 40 eval '! cm_id_in CONNECT' || fail "$(cm_ids)"
}
check "16 controllers, reset at once, and lost at once" many

# A kernel gives a controller three queues per CPU: to read, to write, to poll.
queues() {
	local cpus n
	cpus=$(nproc)
	n=$(nvme_create "$A4" t nr_io_queues="$cpus" nr_write_queues="$cpus" nr_poll_queues="$cpus") ||
		fail "cannot connect" || return
	[ "$(</sys/class/nvme/nvme"$n"/queue_count)" -eq $((3 * cpus + 1)) ] ||
		fail "$(</sys/class/nvme/nvme"$n"/queue_count) queues" || return
	verify "$n" 2 || return
	echo 1 >"/sys/class/nvme/nvme$n/reset_controller" || return
	nvme_all_are live "$n" || return
	verify "$n" 2 || return
	nvme_delete "$n"
}
check "all queues of $(nproc) CPUs" queues

# Gives the commands that an administrator types.
administrator() {
	nvme_discover "$A4" && nvme_connect "$A4" || return
	nvme_mount && nvme_fio "$MEGABYTES" && umount "$NVME_MOUNT" || return
	nvme_disconnect
}
if use_storage; then
	check "discover, connect, mkfs, fio of $MEGABYTES MB, disconnect" administrator
else
	skip "discover, connect, mkfs, fio, disconnect" "there is no storage.sqfs (tools/storage)"
fi

ipv6() {
	nvmet_port 2 ipv6 "$A6" && nvmet_on 2 || return
	connected "$A6" || return
	verify "$(</tmp/nvme.number)" 1 || return
	nvme_delete "$(</tmp/nvme.number)" || return
	nvmet_off 2 && rmdir "$NVMET/ports/2"
}
check "over IPv6" ipv6

unplugged() {
	local start n
	connected "$A4" || return
	n=$(</tmp/nvme.number)
	verify "$n" 1 || return
	start=$SECONDS
	unplug || return
	[ $((SECONDS - start)) -lt $((30 * PATIENCE)) ] || fail "it took $((SECONDS - start)) s" || return
	nvme_delete "$n" 2>/dev/null
	plug || return
	# The port lost its listener with the device.
	nvmet_off 1 && nvmet_on 1 || return
	connected "$A4" || return
	n=$(</tmp/nvme.number)
	verify "$n" 1 || return
	nvme_delete "$n"
}
check "the device goes and comes back" unplugged

# pulled_out: how many milliseconds it takes until the controller N is not live any more, 10,000 at most.
pulled_out() {
	local begun now
	begun=$(date +%s%3N)
	ip -n switch link set h1 down || return
	while nvme_is "$N" live && now=$(date +%s%3N) && [ $((now - begun)) -lt 10000 ]; do
		sleep 0.01
	done
	echo $(($(date +%s%3N) - begun))
}

# The cable of the host is pulled out. This module tells both ends of each queue after 200 ms, if that is
# wanted; otherwise, and with C, they wait for what NVMe itself notices.
cable_pulled_out() {
	local ms port=/sys/kernel/config/rdma_cm/rxeh/ports/1
	lay_cable && nvmet_port 3 ipv4 "$TARGET_ADDRESS" && nvmet_on 3 || return
	connected "$TARGET_ADDRESS" || return
	N=$(</tmp/nvme.number)
	verify "$N" 1 || return
	ms=$(pulled_out) || return
	[ "$ms" -ge 10000 ] || fail "$(nvme_state "$N") after $ms ms, unasked" || return
	cable on && wait_for 100 nvme_is "$N" live || fail "state $(nvme_state "$N")" || return
	if [ "$CM" = rust ]; then
		mkdir -p "${port%/ports*}" && echo 200 >"$port/cm_dead_link_ms" || return
		ms=$(pulled_out) || return
		echo "$ms" >/tmp/nvme.told
		[ "$ms" -ge 200 ] && [ "$ms" -lt $((200 + 1500 * PATIENCE)) ] || fail "after $ms ms" || return
		nvme_is "$N" connecting || fail "state $(nvme_state "$N")" || return
		rmdir "${port%/ports*}" && cable on || return
		wait_for 100 nvme_is "$N" live || fail "state $(nvme_state "$N")" || return
	fi
	verify "$N" 1 && nvme_delete "$N" || return
	nvmet_off 3 && rmdir "$NVMET/ports/3" && remove_cable
}
if [ "$DEVICE" = rxe0 ]; then
	# shellcheck source=tools/bench.d/cable.sh
	. "$SELFTESTS/../tools/bench.d/cable.sh"
	check "the cable is pulled out" cable_pulled_out
	[ ! -e /tmp/nvme.told ] || echo "# told after $(</tmp/nvme.told) ms"
fi

unload() {
	nvmet_remove || return
	unloaded nvme-rdma nvmet-rdma && rmmod brd
}
check "the modules unload" unload
made_for_it_goes
finish
