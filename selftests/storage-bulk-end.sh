#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# storage-bulk-end.sh NUMBER CM CM: what each of the guests of "two-guests.sh --end storage-bulk" does, for
# hours where they are emulated: what storage-pair-end.sh does with little. One serves 16 NVMe controllers at
# once, a gigabyte, and a whole kernel source (linux.tar) over NFS, the other uses them; then the reverse.
# seconds: 40000
# guest: --mem 5G
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck disable=SC2034 # meet.sh
HEARING=20000
# shellcheck source=selftests/meet.sh
. "$SELFTESTS/meet.sh"
# shellcheck source=selftests/storage.sh
. "$SELFTESTS/storage.sh"
# shellcheck source=selftests/nvmet.sh
. "$SELFTESTS/nvmet.sh"
# shellcheck source=selftests/nvme-pair.sh
. "$SELFTESTS/nvme-pair.sh"
# shellcheck source=selftests/nfsd.sh
. "$SELFTESTS/nfsd.sh"
# shellcheck source=selftests/nfs-pair.sh
. "$SELFTESTS/nfs-pair.sh"

needs nvme-rdma nvmet-rdma brd rpcrdma nfsd nfsv4
if ! use_storage programs.sqfs || [ ! -e linux.tar ]; then
	skip "bulk storage between two guests" "there is no image of programs (tools/storage), or no linux.tar"
	finish
fi

# What waits for a link that is down, or for a server, is not hung.
echo 300 >/proc/sys/kernel/hung_task_timeout_secs
meet
both "jumbo frames" jumbo || give_up
for server in 1 2; do
	nvme_rounds "$server" "nvme, 16 controllers" 16 4 --nr-write-queues=2 || give_up
	# shellcheck disable=SC2034 # nvme-pair.sh
	MEGABYTES=1024
	nvme_rounds "$server" nvme 1 2 || give_up
	MEGABYTES=4
done
for server in 1 2; do
	pair "$server" nfs_mount "nfs: mount" || give_up
	pair "$server" nfs_source "nfs: the server restarts while a kernel source is unpacked" || give_up
	pair "$server" nfs_umount "nfs: unmount, and the server has all of it" nfs_same "$EXPORT" || give_up
done
both "the connection manager unloads" cm-use none || give_up
finish
