#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# iSCSI extensions for RDMA: the initiator of open-iscsi and ib_iser logs in to LIO's ib_isert over
# rxe0, or with OVER over another device (storage.sh), both consumers of the connection manager.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/lio.sh
. "$SELFTESTS/targets/lio.sh"
# shellcheck source=selftests/targets/isert.sh
. "$SELFTESTS/targets/isert.sh"

needs ib_iser ib_isert iscsi_target_mod
if ! use_storage; then
	skip "iSER" "there is no storage.sqfs (tools/storage)"
	finish
fi

load() {
	lio_disk 32 || return
	modprobe iscsi_target_mod && modprobe -a ib_isert ib_iser
}
check "the modules load" load || finish
check "a target listens" isert_target "$A4" || finish

login() {
	iser_start && iser_admin "$A4" -o new && iser_login "$A4" || return
	cm_id_in CONNECT ib_isert || fail "$(cm_ids)"
}
check "an initiator logs in" login || finish
check "the connection manager is in use" in_use

written() {
	lio_verify "$(lio_disks)" 8
}
check "what is written is read" written

switched() {
	isert_switch 0 && isert_switch 1 && iser_is_back
}
check "the target is switched off and on" switched

unplugged() {
	unplug || return
	plug || return
	# The portal lost its listener with the device.
	rmdir "$ISERT/tpgt_1/np/$A4:3260" && isert_portal "$A4" || return
	iser_is_back
}
check "the device goes and comes back" unplugged
check "the initiator logs out" iser_logout "$A4"

unload() {
	iser_stop && lio_remove "$ISERT" || return
	unloaded ib_iser ib_isert || return
	isert_end && lio_end
}
check "the modules unload" unload
made_for_it_goes
finish
