#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A whole kernel source over NFS over RDMA, as the suite nfs mounts it: the server is restarted while it is
# unpacked. Needs linux.tar as the guest's disk, storage.sqfs in the current directory, and 8 GB. Takes hours where
# the guest is emulated; another linux.tar may have less, and FILES= say when the server is restarted.
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/nfsd.sh
. "$SELFTESTS/targets/nfsd.sh"

FILES=${FILES:-20000}

needs rpcrdma nfsd nfsv4
if ! use_storage || [ ! -e /run/disk ]; then
	skip "a kernel source over NFS" "there is no storage.sqfs (tools/storage), or no linux.tar"
	finish
fi

served() {
	nfsd_serve 10.0.0.0/24 && mount -o remount,size=3G,nr_inodes=1M "$EXPORT"
}
check "lists of what is in linux.tar" linux_tar_lists || finish
check "a server listens" served || finish
check "a client mounts" nfs_mount "$A4" "" nsenter --net=/run/netns/peer || finish

files() {
	df --output=iused "$EXPORT" | tail -n 1
}

unpacked() {
	local client start=$SECONDS
	linux_tar_x "$MOUNT" & client=$!
	wait_for 8000 eval "pause 2; [ \$(files) -ge $FILES ]" || fail "$(files) files" || return
	nfsd_stop || return
	runs "$client" || fail "the client did not wait" || return
	nfsd_start || return
	ends_within 16000 "$client" || fail "the client: $?" || return
	echo "# unpacked in $((SECONDS - start)) s" >&3
}
exec 3>&1
check "unpack $(linux_tar -t | wc -l) files, the server restarts meanwhile" unpacked

read_again() {
	local start=$SECONDS
	echo 3 >/proc/sys/vm/drop_caches
	nfs_same "$MOUNT" || return
	echo "# read in $((SECONDS - start)) s" >&3
}
check "the client reads all of them" read_again

check "unmount" nfs_umount
# When no client has a delegation any more.
check "the server has all of them" nfs_same "$EXPORT"

gone() {
	nfsd_end && unloaded rpcrdma
}
check "the server stops, the module unloads" gone
finish
