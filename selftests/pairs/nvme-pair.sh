# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# NVMe over RDMA between two guests: the parts of the target (..._server) and of its host (..._client), with
# the commands of an administrator, for "pair" (meet.sh). To be sourced, after storage-pair.sh and nvmet.sh.

# The amount that is written and verified at a time: little, and in small pieces, as emulated guests
# with others beside them are slow to pass packets.
MEGABYTES=${MEGABYTES:-4}

nvme_connect_server() {
	nvmet_load $((MEGABYTES * 4 / 3 + 32)) && nvmet_target "$own4" || return
	say ready
	hear connected || return
	cm_id_in CONNECT nvmet_rdma || fail "$(cm_ids)" || return
	in_use
}

# CONTROLLERS that have QUEUES for data each, as OPTION... says. A host asks every second, and hears
# of a target that has gone after some 10. The data outlast any number of connections.
nvme_connect_client() { # CONTROLLERS QUEUES [OPTION...]
	modprobe nvme-rdma && wait_for 20 test -e /dev/nvme-fabrics || return
	echo 255 >/sys/module/nvme_core/parameters/max_retries || return
	hear ready || return
	nvme_discover "$far4" || return
	timed "nvme connect, $CM host, $1 with $2 queues" nvme_connect_all "$1" "${@:3}" || return
	[ "$(cm_ids | grep -c 'state CONNECT.*nvme_rdma')" -eq $(($1 * ($2 + 1))) ] || fail "$(cm_ids)" || return
	say connected
	in_use
}

nvme_connect_all() {
	local i
	for ((i = 0; i < $1; i++)); do
		nvme_connect "$far4" --duplicate-connect --keep-alive-tmo=10 --reconnect-delay=1 \
			--ctrl-loss-tmo=1000 "${@:2}" || return
	done
}

nvme_files_server() {
	hear verified
}

nvme_files_client() {
	nvme_mount && nvme_fio "$MEGABYTES" --bs=16k --iodepth=4 || return
	say verified
}

# The cable of the end that is named is out until both have noticed; what is written meanwhile is
# there afterwards.
nvme_link_server() { # target|host
	together idle || return
	[ "$1" = host ] || cable off || return
	together out || return
	deserted nvmet_rdma || return
	together noticed || return
	[ "$1" = host ] || cable on || return
	together in || return
	hear verified
}

nvme_link_client() { # target|host
	local numbers writer
	mapfile -t numbers < <(nvme_numbers)
	head -c 1M /dev/urandom >"$TMP/written"
	together idle || return
	[ "$1" = target ] || cable off || return
	together out || return
	nvme_all_within 160 connecting "${numbers[@]}" || return
	timeout $((600 * PATIENCE)) dd if="$TMP/written" of="$NVME_MOUNT/$1" bs=16k oflag=direct \
		status=none & writer=$!
	together noticed || return
	[ "$1" = target ] || cable on || return
	together in || return
	timed "live again after the cable of the $1 was plugged in, $CM host" nvme_all_within 400 live "${numbers[@]}" || return
	ends_within 400 "$writer" || fail "the writer: $?" || return
	echo 3 >/proc/sys/vm/drop_caches
	cmp "$TMP/written" "$NVME_MOUNT/$1" && nvme_fio 1 --bs=16k --iodepth=4 || return
	say verified
}

nvme_unplug_server() {
	# The port lost its listener with the device.
	unplug_server eval "nvmet_off 1 && nvmet_on 1"
}

nvme_unplug_client() {
	local numbers
	mapfile -t numbers < <(nvme_numbers)
	say idle
	hear gone || return
	nvme_all_within 160 connecting "${numbers[@]}" || return
	say noticed
	hear back || return
	timed "live again after the device of the target came back, $CM host" nvme_all_within 400 live "${numbers[@]}" || return
	nvme_fio 1 --bs=16k --iodepth=4 || return
	say verified
}

nvme_disconnect_server() {
	hear disconnected || return
	deserted nvmet_rdma || return
	nvmet_remove && unloaded nvmet-rdma && rmmod brd
}

nvme_disconnect_client() {
	umount "$NVME_MOUNT" && nvme_disconnect && unloaded nvme-rdma || return
	say disconnected
}

# nvme_rounds SERVER OVER CONTROLLERS QUEUES [OPTION...]: all of it, with that guest as the target, and OPTION...
# for "nvme connect".
nvme_rounds() {
	pair "$1" nvme_connect "$2: discover, connect" "${@:3}" || return
	pair "$1" nvme_files "$2: mkfs, fio of $MEGABYTES MB" || return
	pair "$1" nvme_link "$2: the target's cable is out for a while" target || return
	pair "$1" nvme_link "$2: the host's cable is out for a while" host || return
	pair "$1" nvme_unplug "$2: the target's device goes and comes back" || return
	pair "$1" nvme_disconnect "$2: disconnect, and nothing is left"
}
