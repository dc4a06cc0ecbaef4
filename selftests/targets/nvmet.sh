# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# NVMe over RDMA: the kernel's target with one RAM disk, and a host of it. To be sourced, after
# storage.sh.

NVMET=/sys/kernel/config/nvmet
UUID=5ca1ab1e-0000-4000-8000-000000000001
HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:$UUID
NVME_HOST=hostnqn=$HOSTNQN,hostid=$UUID
NVME_MOUNT=/run/nvme-mount

# nvmet_load MEGABYTES: of the RAM disk.
nvmet_load() {
	modprobe brd rd_nr=1 rd_size=$(($1 * 1024)) && modprobe nvmet-rdma
}

# nvmet_port NUMBER FAMILY ADDRESS
nvmet_port() {
	local dir=$NVMET/ports/$1
	mkdir "$dir" || return
	echo rdma >"$dir/addr_trtype" || return
	echo "$2" >"$dir/addr_adrfam" || return
	echo "$3" >"$dir/addr_traddr" || return
	echo 4420 >"$dir/addr_trsvcid"
}

# nvmet_on PORT: the subsystem "t" can be reached there.
nvmet_on() {
	ln -s "$NVMET/subsystems/t" "$NVMET/ports/$1/subsystems/t"
}

nvmet_off() {
	rm "$NVMET/ports/$1/subsystems/t"
}

# nvmet_target ADDRESS: the RAM disk as subsystem "t", at port 1.
nvmet_target() {
	local dir=$NVMET/subsystems/t
	mkdir "$dir" || return
	echo 1 >"$dir/attr_allow_any_host" || return
	mkdir "$dir/namespaces/1" || return
	echo /dev/ram0 >"$dir/namespaces/1/device_path" || return
	echo 1 >"$dir/namespaces/1/enable" || return
	nvmet_port 1 ipv4 "$1" && nvmet_on 1 || return
	wait_for 20 cm_id_in LISTEN "$1:4420" || fail "no listener" || return
	# Named by the module that has it.
	cm_id_in LISTEN "nvmet_rdma" || fail "not shown as nvmet_rdma's"
}

nvmet_remove() {
	nvmet_off 1 && rmdir "$NVMET/ports/1" || return
	echo 0 >"$NVMET/subsystems/t/namespaces/1/enable" || return
	rmdir "$NVMET/subsystems/t/namespaces/1" "$NVMET/subsystems/t"
}

nvme_load() {
	modprobe nvme-rdma && wait_for 5 test -e /dev/nvme-fabrics
}

# nvme_create ADDRESS SUBSYSTEM [OPTION...]: prints the controller's number.
nvme_create() {
	local opts=transport=rdma,traddr=$1,trsvcid=4420,nqn=$2,$NVME_HOST
	shift 2
	[[ " $* " == *" nr_io_queues="* ]] || opts+=,nr_io_queues=2
	opts+=,keep_alive_tmo=30,reconnect_delay=1,ctrl_loss_tmo=120
	[ $# -eq 0 ] || opts+=,$(IFS=,; echo "$*")
	exec 7<>/dev/nvme-fabrics
	echo -n "$opts" >&7 || {
		exec 7>&-
		return 1
	}
	sed -n 's/^instance=\([0-9]*\).*/\1/p' <&7
	exec 7>&-
}

# nvme_delete CONTROLLER: disconnects it.
nvme_delete() {
	echo 1 >"/sys/class/nvme/nvme$1/delete_controller" || return
	wait_for 30 test ! -e "/sys/class/nvme/nvme$1"
}

# nvme_all_are STATE CONTROLLER...
nvme_all_are() {
	nvme_all_within 100 "$@"
}

# nvme_all_within SECONDS STATE CONTROLLER...: for each of them.
nvme_all_within() {
	local n seconds=$1 state=$2
	shift 2
	for n; do
		wait_for "$seconds" nvme_is "$n" "$state" || fail "controller $n: $(nvme_state "$n")" || return
	done
}

# nvme_discover ADDRESS: with nvme-cli, as what follows.
nvme_discover() {
	nvme discover -t rdma -a "$1" -s 4420 --hostnqn="$HOSTNQN" --hostid="$UUID" |
		grep '^subnqn: *t$' >/dev/null || fail "not found"
}

# nvme_connect ADDRESS [OPTION...]
nvme_connect() {
	nvme connect -t rdma -a "$1" -s 4420 -n t -i 2 --hostid="$UUID" --hostnqn="$HOSTNQN" "${@:2}" ||
		fail "not connected" || return
	wait_for 60 nvme_disk "$(nvme_numbers | head -n 1)" || fail "no disk"
}

# From all controllers.
nvme_disconnect() {
	nvme disconnect -n t && wait_for 40 eval '[ -z "$(nvme_numbers)" ]'
}

# The numbers of all controllers, a line each.
nvme_numbers() {
	local dir
	for dir in /sys/class/nvme/nvme*; do
		[ ! -e "$dir" ] || echo "${dir##*/nvme}"
	done
}

nvme_state() {
	cat "/sys/class/nvme/nvme$1/state"
}

nvme_is() {
	[ "$(nvme_state "$1")" = "$2" ]
}

# The disk of a controller, by whichever number multipath gave it.
nvme_disk() {
	local dir
	for dir in /sys/class/nvme/nvme"$1"/nvme*n1 /sys/class/nvme-subsystem/*/nvme*n1; do
		[ ! -e "/dev/${dir##*/}" ] || [ ! -b "/dev/${dir##*/}" ] || {
			echo "/dev/${dir##*/}"
			return
		}
	done
	return 1
}

# A file system on the only disk.
nvme_mount() {
	local disk
	disk=$(nvme_disk "$(nvme_numbers | head -n 1)") || return
	mkdir -p "$NVME_MOUNT" && mkfs.ext4 -q "$disk" && mount "$disk" "$NVME_MOUNT"
}

# The longest time that it may take.
FIO_SECONDS=${FIO_SECONDS:-200}

# nvme_fio MEGABYTES [OPTION...]: in it, written and verified.
nvme_fio() {
	timeout $((FIO_SECONDS * PATIENCE)) fio --name=data --directory="$NVME_MOUNT" --size="${1}M" \
		--rw=randwrite --bs=64k --ioengine=libaio --iodepth=16 --direct=1 --thread \
		--verify=crc32c --verify_fatal=1 --verify_state_save=0 "${@:2}" >"$TMP/fio" 2>&1 || { cat "$TMP/fio"; return 1; }
}
