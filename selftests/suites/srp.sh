#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# SCSI RDMA Protocol: ib_srp logs in to ib_srpt over rxe0, or with OVER over another device
# (storage.sh), both of this kernel and both consumers of the connection manager; ib_srpt also is one
# of ib_cm, which it listens with.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/lio.sh
. "$SELFTESTS/targets/lio.sh"
# shellcheck source=selftests/targets/srpt.sh
. "$SELFTESTS/targets/srpt.sh"

needs ib_srp ib_srpt target_core_mod

load() {
	lio_disk 32 || return
	modprobe -a ib_srpt ib_srp
}
check "the modules load" load || finish
check "a target listens" srpt_target "$DEVICE" "$A4" || finish

# login PORT
login() {
	srp_login "$(srpt_guid)" "$A4" "$1" "$DEVICE"
}

connected() {
	login "$SRPT_PORT" || fail "no login" || return
	srp_attached || return
	cm_id_in CONNECT ib_srpt || fail "$(cm_ids)"
}
check "an initiator logs in" connected || finish
check "the connection manager is in use" in_use

written() {
	lio_verify "$(lio_disks)" 8
}
check "what is written is read" written

again() {
	! login "$SRPT_PORT" || fail "logged in twice" || return
	! timeout $((100 * PATIENCE)) bash -c \
		"$(declare -f srp_login); srp_login $(srpt_guid) $A4 5556 $DEVICE" || fail "logged in to nobody"
}
check "twice, and to nobody" again

reconnected() {
	srpt_switch 0 && srpt_switch 1 && srp_is_back
}
check "the target is switched off and on" reconnected
check "the initiator logs out" srp_logout

unplugged() {
	# A session that was logged out is not forgotten at once: "File exists".
	wait_for 20 login "$SRPT_PORT" || fail "no login" || return
	srp_attached || return
	unplug || return
	wait_for 40 eval '! has_disk' || fail "the disk is still there" || return
	! cm_id_in CONNECT || fail "$(cm_ids)" || return
	plug
}
check "the device goes and comes back" unplugged

unload() {
	srpt_remove || return
	unloaded ib_srp ib_srpt || return
	lio_end
}
check "the modules unload" unload
made_for_it_goes
finish
