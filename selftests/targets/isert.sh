# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# iSCSI extensions for RDMA: LIO's ib_isert, and open-iscsi with ib_iser, which logs in to it. To be
# sourced, after lio.sh; the initiator needs the programs of tools/storage.

IQN=iqn.2026-01.example.target:disk
ISERT=$LIO/iscsi/$IQN

# isert_portal ADDRESS: it also listens for TCP.
isert_portal() {
	local portal=$ISERT/tpgt_1/np/$1:3260
	mkdir "$portal" && echo 1 >"$portal/iser" || return
	wait_for 20 cm_id_in LISTEN "ib_isert" || fail "no listener: $(cm_ids)"
}

# isert_target ADDRESS: every initiator gets the disk.
isert_target() {
	local tpg=$ISERT/tpgt_1
	[ -d "$LIO/iscsi" ] || mkdir "$LIO/iscsi" || return
	mkdir "$ISERT" "$tpg" && lio_lun "$tpg" || return
	echo 0 >"$tpg/attrib/authentication" && echo 1 >"$tpg/attrib/generate_node_acls" &&
		echo 0 >"$tpg/attrib/demo_mode_write_protect" || return
	isert_portal "$1" && isert_switch 1
}

# isert_switch 0|1: off and on.
isert_switch() {
	echo "$1" >"$ISERT/tpgt_1/enable" || return
	[ "$1" = 1 ] || wait_for 60 eval '! cm_id_in CONNECT ib_isert' || fail "$(cm_ids)"
}

# Once ib_isert has gone.
isert_end() {
	[ ! -d "$LIO/iscsi" ] || rmdir "$LIO/iscsi"
}

iser_start() {
	mkdir -p /run/lock/iscsi /etc/iscsi
	echo "InitiatorName=iqn.2026-01.example.initiator:host" >/etc/iscsi/initiatorname.iscsi
	setsid iscsid >/run/iscsid.log 2>&1
	wait_for 20 pidof iscsid || fail "no iscsid: $(cat /run/iscsid.log)"
}

# iser_admin ADDRESS ARGUMENT...: of the target at this address.
iser_admin() {
	timeout $((100 * PATIENCE)) iscsiadm -m node -T "$IQN" -p "$1:3260" -I iser "${@:2}"
}

# iser_discover ADDRESS: what is found there is remembered.
iser_discover() {
	timeout $((100 * PATIENCE)) iscsiadm -m discovery -t sendtargets -p "$1:3260" -I iser >"$TMP/found" ||
		fail "no discovery" || return
	grep "$IQN" "$TMP/found" || fail "not found: $(<"$TMP/found")"
}

# iser_login ADDRESS
iser_login() {
	iser_admin "$1" --login || return
	wait_for 60 has_disk || fail "no disk" || return
	iscsiadm -m session | grep "^iser:.*$IQN" || fail "$(iscsiadm -m session)" || return
	# Named by the module that has it.
	cm_id_in CONNECT 'ib_iser\b' || fail "$(cm_ids)"
}

# The session is as old as the disk; below it there is another connection.
iser_is_back() {
	wait_for 100 eval "iscsiadm -m session -P 1 | grep -q 'iSCSI Connection State: LOGGED IN'" ||
		fail "$(iscsiadm -m session -P 1)" || return
	lio_verify "$(lio_disks)" 1
}

# iser_logout ADDRESS
iser_logout() {
	iser_admin "$1" --logout || return
	wait_for 100 eval '! has_disk' || fail "the disk is still there" || return
	wait_for 100 eval '! cm_id_in CONNECT' || fail "$(cm_ids)" || return
	iser_admin "$1" -o delete
}

iser_stop() {
	end "$(pidof -s iscsid)"
	killall -q iscsid
	! pidof iscsid || fail "iscsid is still there"
}
