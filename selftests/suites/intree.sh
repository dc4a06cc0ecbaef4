#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/suites/intree.sh m|y: a kernel that has this module itself (tools/intree), as a module (m) or built in (y),
# in the place of C's modules.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

as=${1-}
case $as in
m | y) ;;
*) echo "usage: selftests/suites/intree.sh m|y" >&2 && exit 2 ;;
esac
modules=/lib/modules/$(uname -r)

as_configured() {
	local config
	config=$(zcat /proc/config.gz) || return
	grep -x 'CONFIG_INFINIBAND_CM_RUST=y' <<<"$config" && grep -x "CONFIG_INFINIBAND=$as" <<<"$config" || return
	if [ "$as" = m ]; then
		[ -d /sys/module/rust_rdma_cm ] && ! grep rust_rdma_cm "$modules/modules.builtin"
	else
		[ -n "$CM_BUILT_IN" ] && ! grep rust_rdma_cm /proc/modules &&
			awk '$3 == "__rdma_create_kernel_id" && !$4 { found = 1 } END { exit !found }' /proc/kallsyms
	fi
}
check "it is in the kernel as configured" as_configured

without_c() {
	local found
	found=$(grep -hE '/(ib_cm|rdma_cm|rdma_ucm)\.ko' "$modules/modules.builtin" "$modules/modules.dep") ||
		[ -n "$(ls /sys/module/{ib_cm,rdma_cm,rdma_ucm} 2>/dev/null)" ] || return 0
	fail "there: $found"
}
check "C's modules are not there" without_c

shown() {
	[ -c /dev/infiniband/rdma_cm ] && [ -e /proc/sys/net/rdma_ucm/max_backlog ] &&
		[ -d /sys/kernel/config/rdma_cm ] && [ -e /sys/class/infiniband/rxe0/ports/1/cm_tx_msgs/req ] &&
		[ -d /sys/kernel/tracing/events/rdma_cma ]
}
check "what C's modules show is there" shown

# The consumer brings it, by its symbols.
consumer() {
	modprobe nvme_rdma || return
	if [ "$as" = m ]; then
		[ -e /sys/module/rust_rdma_cm/holders/nvme_rdma ] || fail "it does not depend" || return
		! rmmod rust_rdma_cm || fail "unloaded below a consumer" || return
		# Not modprobe -r, which unloads what a module needed, too.
		rmmod nvme_rdma
	else
		grep -q '/nvme-rdma.ko' "$modules/modules.builtin"
	fi
}
check "a consumer in the kernel" consumer

by_name() {
	local name
	for name in ib_cm rdma_cm rdma_ucm; do
		if [ "$as" = m ]; then
			rmmod rust_rdma_cm || return
			[ ! -e /dev/infiniband/rdma_cm ] || fail "the device node is left" || return
		fi
		modprobe "$name" || return
		[ -c /dev/infiniband/rdma_cm ] || fail "$name: no device node" || return
	done
}
check "it is loaded by the names of C's modules" by_name

check "a connection afterwards" exchange "$PEER" "" "$B4" "$B4"
finish
