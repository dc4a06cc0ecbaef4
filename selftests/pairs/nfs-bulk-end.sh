#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nfs-bulk-end.sh NUMBER CM CM: what each of the guests of "two-guests.sh --end nfs-bulk" does, for hours where
# they are emulated: one serves NFS, the other unpacks linux.tar there, a whole kernel source or any other
# archive, and reads it, and the server restarts meanwhile; then the reverse.
# seconds: 40000
# guest: --mem 5G
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck disable=SC2034 # meet.sh
HEARING=20000
# shellcheck source=selftests/pairs/storage-pair.sh
. "$SELFTESTS/pairs/storage-pair.sh"
# shellcheck source=selftests/targets/nfsd.sh
. "$SELFTESTS/targets/nfsd.sh"
# shellcheck source=selftests/pairs/nfs-pair.sh
. "$SELFTESTS/pairs/nfs-pair.sh"

needs rpcrdma nfsd nfsv4
if ! use_storage programs.sqfs || [ ! -e /run/disk ]; then
	skip "much NFS between two guests" "there is no image of programs (tools/storage), or no linux.tar"
	finish
fi

meet
both "jumbo frames" jumbo || give_up
both "lists of what is in linux.tar" linux_tar_lists || give_up
for server in 1 2; do
	pair "$server" nfs_mount "nfs: mount" || give_up
	pair "$server" nfs_source "nfs: the server restarts while a kernel source is unpacked" || give_up
	pair "$server" nfs_umount "nfs: unmount, and the server has all of it" nfs_same "$EXPORT" || give_up
done
both "the connection manager unloads" cm-use none || give_up
finish
