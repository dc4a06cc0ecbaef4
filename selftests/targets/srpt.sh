# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# SCSI RDMA Protocol: LIO's ib_srpt, reached through rdma_cm, and ib_srp, which logs in to it. To be
# sourced, after lio.sh.

SRPT_PORT=5555

# srpt_target DEVICE ADDRESS: every initiator at this address of the device gets the disk.
srpt_target() {
	local gid guid tpg
	gid=$(<"/sys/class/infiniband/$1/ports/1/gids/0") && guid=${gid#*:*:*:*:} || return
	mkdir "$LIO/srpt" || return
	tpg=$LIO/srpt/$guid/$guid
	mkdir "${tpg%/*}" "$tpg" && lio_lun "$tpg" "$2" || return
	srpt_switch 1 || return
	echo "$SRPT_PORT" >"$LIO/srpt/discovery_auth/rdma_cm_port" || return
	wait_for 20 cm_id_in LISTEN "$SRPT_PORT.*|ib_srpt" || fail "no listener: $(cm_ids)"
}

# The target's portal group.
srpt_tpg() {
	echo "$LIO"/srpt/*:*/*:*
}

# srpt_switch 0|1: off and on.
srpt_switch() {
	echo "$1" >"$(srpt_tpg)/enable" || return
	[ "$1" = 1 ] || wait_for 60 eval '! cm_id_in CONNECT ib_srpt' || fail "$(cm_ids)"
}

srpt_remove() {
	local tpg
	tpg=$(srpt_tpg)
	echo 0 >"$LIO/srpt/discovery_auth/rdma_cm_port"
	lio_remove "${tpg%/*}" && rmdir "$LIO/srpt"
}

# Prints the GUID of the target, which initiators need.
srpt_guid() {
	local guid
	guid=$(</sys/module/ib_srpt/parameters/srpt_service_guid) && echo "${guid#0x}"
}

# srp_login GUID ADDRESS PORT DEVICE
srp_login() {
	echo "id_ext=$1,ioc_guid=$1,dest=$2:$3,queue_size=32,max_cmd_per_lun=32" \
		>"/sys/class/infiniband_srp/srp-$4-1/add_target"
}

srp_attached() {
	wait_for 60 has_disk || fail "no disk" || return
	# Named by the module that has it.
	cm_id_in CONNECT 'ib_srp\b' || fail "$(cm_ids)"
}

# After the target was switched off and on: the initiator notices that its connections have ended,
# and connects again.
srp_is_back() {
	local port
	port=$(echo /sys/class/srp_remote_ports/port-*)
	wait_for 100 grep -q running "$port/state" || fail "$(<"$port/state")" || return
	wait_for 60 has_disk && lio_verify "$(lio_disks)" 1
}

srp_logout() {
	local port
	for port in /sys/class/srp_remote_ports/port-*; do
		echo 1 >"$port/delete" || return
	done
	wait_for 100 eval '! has_disk' || fail "the disk is still there" || return
	wait_for 100 eval '! cm_id_in CONNECT' || fail "$(cm_ids)"
}
