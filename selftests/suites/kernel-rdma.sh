#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of tools/testing/selftests/rdma of the kernel source, unmodified. The
# directory (with kselftest beside it) is given as KERNEL_SELFTESTS, or is
# kernel-selftests in the shared directory. They want names of devices that the
# guest has already, and unload the driver: use a guest for these alone.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

tests=${KERNEL_SELFTESTS:-/mnt/share/kernel-selftests}
names=(rxe_rping_between_netns rxe_ipv6 rxe_socket_with_netns rxe_test_NETDEV_UNREGISTER
	rxe_sent_rcvd_bytes)

rdma link del rxe0
$PEER rdma link del rxe1

one() {
	local status=0
	# One test unloads it, and without udev nothing loads it again.
	modprobe tun
	timeout $((60 * PATIENCE)) bash "$tests/rdma/$1.sh" || status=$?
	[ "$status" -ne 0 ] || nothing_left
	return "$status"
}

for name in "${names[@]}"; do
	if [ -e "$tests/rdma/$name.sh" ]; then
		check "$name" one "$name"
	else
		skip "$name" "no kernel source"
	fi
done
finish
