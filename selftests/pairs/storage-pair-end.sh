#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# storage-pair-end.sh NUMBER CM CM: what each of the guests of "two-guests.sh --end storage-pair"
# does: one serves NVMe, NFS, 9P, SRP and iSER over RDMA, the other uses them, with the commands of
# an administrator; then the reverse. The cases show that connections survive failures. Last come
# sockets of RDS, whose module nothing unloads (rds.sh).
# seconds: 2400
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/pairs/storage-pair.sh
. "$SELFTESTS/pairs/storage-pair.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"
# shellcheck source=selftests/pairs/nvme-pair.sh
. "$SELFTESTS/pairs/nvme-pair.sh"
# shellcheck source=selftests/targets/nfsd.sh
. "$SELFTESTS/targets/nfsd.sh"
# shellcheck source=selftests/pairs/nfs-pair.sh
. "$SELFTESTS/pairs/nfs-pair.sh"
# shellcheck source=selftests/targets/diod.sh
. "$SELFTESTS/targets/diod.sh"
# shellcheck source=selftests/targets/lio.sh
. "$SELFTESTS/targets/lio.sh"
# shellcheck source=selftests/targets/srpt.sh
. "$SELFTESTS/targets/srpt.sh"
# shellcheck source=selftests/targets/isert.sh
. "$SELFTESTS/targets/isert.sh"

needs nvme-rdma nvmet-rdma brd rpcrdma nfsd nfsv4 9pnet_rdma ib_srp ib_srpt ib_iser ib_isert \
	iscsi_target_mod rds_rdma
needs_programs "storage"

# switch_server SWITCH, switch_client MODULE: the target goes, and comes back once the initiator has
# noticed.
switch_server() {
	"$1" 0 || return
	say off
	hear noticed || return
	"$1" 1 || return
	say on
	hear back
}

switch_client() {
	hear off || return
	wait_for 160 eval "! cm_id_in CONNECT '$1\b'" || fail "still connected: $(cm_ids)" || return
	say noticed
	hear on
}

# --- 9P ---

# The kernel's client asks for no retries: a packet that is lost, or 2 s late, ends its connection. So there
# are few packets.
P9_SOURCE=/usr/include/linux/can P9_SIZE=16384

p9_server() {
	local SOURCE=$P9_SOURCE
	p9_serve "$own4" || return
	say ready
	hear unpacked || return
	p9_has one || return
	hear unmounted || return
	p9_end
}

# The client's state is lost with the device; it mounts anew.
p9_unplug_server() {
	local SOURCE=$P9_SOURCE
	p9_serve "$own4" || return
	say ready
	unplug_server p9_again || return
	p9_has one && p9_end
}

p9_again() {
	p9_end
	p9_serve "$own4"
}

p9_client() {
	local SOURCE=$P9_SOURCE
	modprobe 9pnet_rdma && hear ready || return
	timed "mount -t 9p with its modules, $CM client" p9_mount "$far4" "$P9_SIZE" || return
	p9_unpack one || return
	say unpacked
	p9_reads one && in_use && p9_umount && unloaded 9pnet_rdma || return
	say unmounted
}

p9_unplug_client() {
	local SOURCE=$P9_SOURCE
	modprobe 9pnet_rdma && hear ready || return
	p9_mount "$far4" "$P9_SIZE" || return
	{ hear gone && timeout $((60 * PATIENCE)) ls "$P9_MOUNT"; } &
	unplug_client 9P p9_mounts_again && unloaded 9pnet_rdma
}

p9_mounts_again() {
	timeout $((60 * PATIENCE)) umount "$P9_MOUNT" || fail "umount: $?" || return
	p9_mount "$far4" "$P9_SIZE" && p9_reads one && p9_umount
}

# --- SRP ---

srp_login_server() {
	lio_disk 32 && modprobe ib_srpt && srpt_target rxe2 "$own4" || return
	say ready "$(srpt_guid)"
	hear verified || return
	cm_id_in CONNECT ib_srpt || fail "$(cm_ids)" || return
	in_use
}

srp_login_client() {
	modprobe sd_mod && modprobe ib_srp && hear ready || return
	timed "SRP login, $CM initiator" srp_login "$(told ready)" "$far4" "$SRPT_PORT" rxe2 || return
	srp_attached && lio_verify "$(lio_disks)" "$MEGABYTES" 32 || return
	say verified
	in_use
}

srp_switch_server() {
	switch_server srpt_switch
}

srp_switch_client() {
	switch_client ib_srp || return
	timed "SRP again after the target came back, $CM initiator" srp_is_back || return
	say back
}

srp_unplug_server() {
	unplug_server srpt_again
}

srpt_again() {
	srpt_remove && srpt_target rxe2 "$own4"
}

# A connection on which nothing is said does not end. Reads may fail meanwhile: SRP waits for 15 s.
srp_unplug_client() {
	{ hear gone && dd if="$(lio_disks)" of=/dev/null bs=32k count=1 iflag=direct; } &
	unplug_client SRP srp_is_back
}

srp_logout_server() {
	hear gone || return
	deserted ib_srpt || return
	srpt_remove && unloaded ib_srpt && lio_end
}

srp_logout_client() {
	srp_logout && unloaded ib_srp || return
	say gone
}

# --- iSER ---

iser_login_server() {
	lio_disk 32 && modprobe iscsi_target_mod && modprobe ib_isert && isert_target "$own4" || return
	say ready
	hear verified || return
	cm_id_in CONNECT ib_isert || fail "$(cm_ids)" || return
	in_use
}

iser_login_client() {
	modprobe sd_mod && modprobe ib_iser && iser_start && hear ready || return
	iser_discover "$far4" || return
	timed "iSER login, $CM initiator" iser_login "$far4" || return
	lio_verify "$(lio_disks)" "$MEGABYTES" 32 || return
	say verified
	in_use
}

iser_switch_server() {
	switch_server isert_switch
}

iser_switch_client() {
	switch_client ib_iser || return
	timed "iSER again after the target came back, $CM initiator" iser_is_back || return
	say back
}

iser_unplug_server() {
	unplug_server isert_again
}

# The portal lost its listener with the device.
isert_again() {
	rmdir "$ISERT/tpgt_1/np/$own4:3260" && isert_portal "$own4"
}

iser_unplug_client() {
	unplug_client iSER iser_is_back
}

iser_logout_server() {
	hear gone || return
	deserted ib_isert || return
	lio_remove "$ISERT" && unloaded ib_isert && isert_end && lio_end
}

iser_logout_client() {
	iser_logout "$far4" && iser_stop && unloaded ib_iser || return
	say gone
}

# --- RDS ---

rds_load() {
	modprobe rds_rdma && await_listener "rds_rdma.*:18634"
}

rds_server() {
	local echo
	rds_load || return
	timeout 400 "$SELFTESTS/lib/rds.py" echo "$own4" >"$TMP/echo" & echo=$!
	wait_for 20 grep -q listening "$TMP/echo" || return
	say ready
	hear talked || return
	ends_within 60 "$echo"
}

rds_client() {
	rds_load && hear ready || return
	timed "RDS connected, $CM client" rds_answers || return
	timeout 300 "$SELFTESTS/lib/rds.py" talk "$own4" "$far4" || return
	cm_id_in CONNECT rds_rdma || fail "$(cm_ids)" || return
	in_use || return
	say talked
}

rds_unplug_server() {
	unplug_server await_listener "rds_rdma.*:18634"
}

rds_unplug_client() {
	{ hear gone && rds_answers; } &
	unplug_client RDS wait_for 160 rds_answers
}

rds_answers() {
	timeout 100 "$SELFTESTS/lib/rds.py" ping "$own4" "$far4"
}

meet
for server in 1 2; do
	nvme_rounds "$server" nvme 1 2 || give_up
	pair "$server" nfs_mount "nfs: mount" || give_up
	pair "$server" nfs_unpack "nfs: unpack" || give_up
	pair "$server" nfs_restart "nfs: the server restarts while files are unpacked" || give_up
	pair "$server" nfs_unplug "nfs: the server's device goes while files are unpacked" || give_up
	pair "$server" nfs_umount "nfs: unmount, and nothing is left" || give_up
	pair "$server" p9 "9p: mount, unpack, unmount, and nothing is left" || give_up
	pair "$server" p9_unplug "9p: the server's device goes, and the client mounts anew" || give_up
	pair "$server" srp_login "srp: log in, write, verify" || give_up
	pair "$server" srp_switch "srp: the target is switched off and on" || give_up
	pair "$server" srp_unplug "srp: the target's device goes and comes back" || give_up
	pair "$server" srp_logout "srp: log out, and nothing is left" || give_up
	pair "$server" iser_login "iser: discover, log in, write, verify" || give_up
	pair "$server" iser_switch "iser: the target is switched off and on" || give_up
	pair "$server" iser_unplug "iser: the target's device goes and comes back" || give_up
	pair "$server" iser_logout "iser: log out, and nothing is left" || give_up
done
both "the connection manager unloads" cm-use none || give_up
both "the connection manager loads" cm-use "$CM" || give_up
for server in 1 2; do
	pair "$server" rds "rds: ping, and messages of up to 100,000 bytes" || give_up
	pair "$server" rds_unplug "rds: the server's device goes and comes back" || give_up
done
finish
