#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A whole kernel source over NFS over RDMA, as the suite nfs mounts it: the server is restarted while it is
# unpacked. Needs linux.tar and storage.sqfs in the current directory, and a guest of 8 GB. Takes an hour where
# the guest is emulated.
# seconds: 10000
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/storage.sh
. "$SELFTESTS/storage.sh"
# shellcheck source=selftests/nfsd.sh
. "$SELFTESTS/nfsd.sh"

needs rpcrdma nfsd nfsv4
if ! use_storage || [ ! -e linux.tar ]; then
	skip "a kernel source over NFS" "there is no storage.sqfs (tools/storage), or no linux.tar"
	finish
fi

served() {
	nfsd_serve 10.0.0.0/24 && mount -o remount,size=3G,nr_inodes=0 "$EXPORT"
}
check "a server listens" served || finish
check "a client mounts" nfs_mount "$A4" "" nsenter --net=/run/netns/peer || finish

inodes() {
	find "$EXPORT" | wc -l
}

unpacked() {
	local client start=$SECONDS
	tar -x --no-same-owner -C "$MOUNT" -f linux.tar & client=$!
	wait_for 3000 eval "[ \$(inodes) -ge 20000 ]" || fail "$(inodes) files" || return
	nfsd_stop || return
	kill -0 "$client" || fail "the client did not wait" || return
	nfsd_start || return
	ends_within 6000 "$client" || fail "the client: $?" || return
	echo "# unpacked in $((SECONDS - start)) s" >&3
}
exec 3>&1
check "unpack $(tar -t -f linux.tar | wc -l) files, the server restarts meanwhile" unpacked

# Contents, modes and times.
same() {
	tar -d --no-same-owner -C "$1" -f linux.tar 2>&1 | grep -v ': [UG]id differs$' | head -n 20 >"$TMP/differs"
	[ ! -s "$TMP/differs" ] || fail "$(cat "$TMP/differs")"
}
check "the server has all of them" same "$EXPORT"

read_again() {
	local start=$SECONDS
	echo 3 >/proc/sys/vm/drop_caches
	same "$MOUNT" || return
	echo "# read in $((SECONDS - start)) s" >&3
}
check "the client reads all of them" read_again

gone() {
	nfs_umount && nfsd_end && unloaded rpcrdma
}
check "unmounted and stopped, the module unloads" gone
finish
