#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe over RDMA: nvme-rdma connects to nvmet-rdma over rxe0, both of this kernel and
# both kernel consumers of the connection manager.
# seconds: 800
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"

NVMET=/sys/kernel/config/nvmet
HOST=hostnqn=nqn.2014-08.org.nvmexpress:uuid:5ca1ab1e-0000-4000-8000-000000000001
HOST=$HOST,hostid=5ca1ab1e-0000-4000-8000-000000000001

load() {
	modprobe brd rd_nr=1 rd_size=65536 || return
	load_consumer nvmet-rdma nvme-rdma || return
	wait_for 5 test -e /dev/nvme-fabrics
}
check "the modules load" load || {
	finish
}

# subsystem NAME: with the RAM disk in it.
subsystem() {
	local dir=$NVMET/subsystems/$1
	mkdir "$dir" || return
	echo 1 >"$dir/attr_allow_any_host" || return
	mkdir "$dir/namespaces/1" || return
	echo /dev/ram0 >"$dir/namespaces/1/device_path" || return
	echo 1 >"$dir/namespaces/1/enable"
}

port() {
	local dir=$NVMET/ports/$1
	mkdir "$dir" || return
	echo rdma >"$dir/addr_trtype" || return
	echo "$2" >"$dir/addr_adrfam" || return
	echo "$3" >"$dir/addr_traddr" || return
	echo 4420 >"$dir/addr_trsvcid"
}

target() {
	subsystem t || return
	port 1 ipv4 "$A4" || return
	ln -s "$NVMET/subsystems/t" "$NVMET/ports/1/subsystems/t" || return
	wait_for 5 cm_id_in LISTEN "$A4:4420" || fail "no listener" || return
	# Named by the module that has it.
	cm_id_in LISTEN "nvmet_rdma" || fail "not shown as nvmet_rdma's"
}
check "a target listens" target

# connect_to ADDRESS SUBSYSTEM [OPTION...]: prints the controller's number.
connect_to() {
	local opts=transport=rdma,traddr=$1,trsvcid=4420,nqn=$2,$HOST
	shift 2
	opts+=,nr_io_queues=2,keep_alive_tmo=30,reconnect_delay=1,ctrl_loss_tmo=120
	[ $# -eq 0 ] || opts+=,$(IFS=,; echo "$*")
	exec 7<>/dev/nvme-fabrics
	echo -n "$opts" >&7 || {
		exec 7>&-
		return 1
	}
	sed -n 's/^instance=\([0-9]*\).*/\1/p' <&7
	exec 7>&-
}

state_of() {
	cat "/sys/class/nvme/nvme$1/state"
}

is_in() {
	[ "$(state_of "$1")" = "$2" ]
}

# The disk of a controller, by whichever number multipath gave it.
disk_of() {
	local dir
	for dir in /sys/class/nvme/nvme"$1"/nvme*n1 /sys/class/nvme-subsystem/*/nvme*n1; do
		[ ! -e "/dev/${dir##*/}" ] || [ ! -b "/dev/${dir##*/}" ] || {
			echo "/dev/${dir##*/}"
			return
		}
	done
	return 1
}

# verify CONTROLLER MEGABYTES: writes, and reads back from both ends.
verify() {
	local disk
	wait_for 10 disk_of "$1" || fail "no disk" || return
	disk=$(disk_of "$1")
	head -c "${2}M" /dev/urandom >"$TMP/data"
	timeout 60 dd if="$TMP/data" of="$disk" bs=256k oflag=direct status=none || return
	timeout 60 dd if="$disk" bs=256k count=$(($2 * 4)) iflag=direct status=none |
		cmp - "$TMP/data" || fail "read something else" || return
	# Not from this end's cache, which knows nothing of what the target writes.
	dd if=/dev/ram0 bs=256k count=$(($2 * 4)) iflag=direct status=none |
		cmp - "$TMP/data" || fail "it is not in the target"
}

connected() {
	connect_to "$1" t >/tmp/nvme.number || fail "cannot connect" || return
	is_in "$(</tmp/nvme.number)" live || fail "state $(state_of "$(</tmp/nvme.number)")" || return
	# An admin queue and two for data, each with two ends.
	[ "$(cm_ids | grep -c 'state CONNECT')" -ge 6 ] || fail "$(cm_ids)"
}
check "a host connects" connected "$A4"
N=$(</tmp/nvme.number)
check "what is written is read" verify "$N" 4

in_use() {
	! rmmod "$CM_MODULE" 2>/dev/null || fail "it was unloaded"
	! rmmod rdma_cm 2>/dev/null
}
check "the connection manager is in use" in_use

reset() {
	echo 1 >"/sys/class/nvme/nvme$N/reset_controller" || return
	wait_for 30 is_in "$N" live || fail "state $(state_of "$N")" || return
	verify "$N" 1
}
check "reset, and again" reset
check "reset, once more" reset

outage() {
	rm "$NVMET/ports/1/subsystems/t" || return
	wait_for 30 is_in "$N" connecting || fail "state $(state_of "$N")" || return
	sleep 2
	ln -s "$NVMET/subsystems/t" "$NVMET/ports/1/subsystems/t" || return
	wait_for 60 is_in "$N" live || fail "state $(state_of "$N")" || return
	verify "$N" 1
}
check "the target goes and comes back" outage

refused() {
	! connect_to "$A4" unknown || fail "connected to what is not there" || return
	! timeout 60 bash -c "echo -n \
		transport=rdma,traddr=$A4,trsvcid=4421,nqn=t,$HOST >/dev/nvme-fabrics" ||
		fail "connected to nobody" || return
	! timeout 60 bash -c "echo -n \
		transport=rdma,traddr=192.0.2.1,trsvcid=4420,nqn=t,$HOST >/dev/nvme-fabrics" ||
		fail "connected to nowhere"
}
check "nobody and nothing there" refused

disconnect() {
	echo 1 >"/sys/class/nvme/nvme$1/delete_controller" || return
	wait_for 30 test ! -e "/sys/class/nvme/nvme$1"
}

disconnected() {
	disconnect "$N" || fail "it is still there" || return
	wait_for 20 eval '! cm_id_in CONNECT' || fail "$(cm_ids)"
}
check "disconnect" disconnected

many() {
	local i n numbers=()
	for i in 1 2 3 4 5 6 7 8; do
		n=$(connect_to "$A4" t duplicate_connect) || fail "controller $i" || return
		numbers+=("$n")
	done
	verify "${numbers[0]}" 1 || return
	for n in "${numbers[@]}"; do
		echo 1 >"/sys/class/nvme/nvme$n/reset_controller" &
	done
	wait
	for n in "${numbers[@]}"; do
		wait_for 60 is_in "$n" live || fail "controller $n: $(state_of "$n")" || return
	done
	for n in "${numbers[@]}"; do
		disconnect "$n" &
	done
	wait
	wait_for 20 eval '! cm_id_in CONNECT' || fail "$(cm_ids)"
}
check "eight controllers, reset at once" many

ipv6() {
	port 2 ipv6 "$A6" || return
	ln -s "$NVMET/subsystems/t" "$NVMET/ports/2/subsystems/t" || return
	connected "$A6" || return
	verify "$(</tmp/nvme.number)" 1 || return
	disconnect "$(</tmp/nvme.number)" || return
	rm "$NVMET/ports/2/subsystems/t" && rmdir "$NVMET/ports/2"
}
check "over IPv6" ipv6

unplugged() {
	local start n
	connected "$A4" || return
	n=$(</tmp/nvme.number)
	verify "$n" 1 || return
	start=$SECONDS
	timeout 60 rdma link del rxe0 || fail "rdma link del: $?" || return
	[ $((SECONDS - start)) -lt 30 ] || fail "it took $((SECONDS - start)) s" || return
	disconnect "$n" 2>/dev/null
	rdma link add rxe0 type rxe netdev v0 || return
	wait_for 5 grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/1 || return
	# The port lost its listener with the device.
	rm "$NVMET/ports/1/subsystems/t" || return
	ln -s "$NVMET/subsystems/t" "$NVMET/ports/1/subsystems/t" || return
	connected "$A4" || return
	n=$(</tmp/nvme.number)
	verify "$n" 1 || return
	disconnect "$n"
}
check "the device goes and comes back" unplugged

unload() {
	rm "$NVMET/ports/1/subsystems/t" && rmdir "$NVMET/ports/1" || return
	echo 0 >"$NVMET/subsystems/t/namespaces/1/enable" || return
	rmdir "$NVMET/subsystems/t/namespaces/1" "$NVMET/subsystems/t" || return
	rmmod nvme-rdma nvmet-rdma || return
	nothing_left
}
check "the modules unload" unload
finish
