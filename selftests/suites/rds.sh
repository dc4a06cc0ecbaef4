#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Reliable Datagram Sockets over RDMA: rds_rdma connects two addresses of rxe0, and each to itself. The
# sockets are Python's: Debian has no package of rds-ping and rds-stress. In a guest of its own, because
# nothing unloads rds_rdma: it leaves buffers in its caches and work that runs when its code is
# gone, with the C modules as well, and the kernel dies of that:
#
#	tools/guest -- selftests/suites/rds.sh
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"

# Another address of the device.
SECOND=10.0.0.3

needs rds_rdma

# RDS destroys an identifier with a semaphore held that its callbacks take: none of those of that
# identifier, but lockdep knows them only as a class (upstream-bugs.rst). It would report that, over C as well, and look
# at nothing any more.
[ ! -e /proc/sys/kernel/prove_locking ] || echo 0 >/proc/sys/kernel/prove_locking

load() {
	ip addr add "$SECOND/24" dev v0 || return
	modprobe rds_rdma || return
	await_listener "rds_rdma.*:18634"
}
check "the module loads and listens" load || finish

# rds MODE ADDRESS ADDRESS: from one to the other.
rds() {
	timeout $((100 * PATIENCE)) "$SELFTESTS/lib/rds.py" "$@"
}

pinged() {
	rds ping "$1" "$2" || return
	cm_id_in CONNECT "rds_rdma" || fail "$(cm_ids)"
}
check "ping" pinged "$A4" "$SECOND"
check "ping, the other way" pinged "$SECOND" "$A4"
check "ping, itself" pinged "$A4" "$A4"
check "stress" rds stress "$A4" "$SECOND"
check "the connection manager is in use" in_use

device() {
	unplug || return
	wait_for 60 eval '! cm_ids | grep rxe0' || fail "left: $(cm_ids)" || return
	plug || return
	await_listener "rds_rdma.*:18634" || return
	rds ping "$A4" "$SECOND"
}
check "the device goes, and comes back" device
check "the kernel log has no report" kernel-log-clean
[ ! -e /proc/lockdep_stats ] || skip "the order of locks" "RDS has one of its own, over C as well (upstream-bugs.rst)"
finish
