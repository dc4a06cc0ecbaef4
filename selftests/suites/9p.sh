#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# 9P over RDMA: the kernel's client, a kernel consumer of the connection manager, mounts over rxe0 what
# is served in the namespace "peer". Needs p9rdma and storage.sqfs in the current directory.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/diod.sh
. "$SELFTESTS/targets/diod.sh"

MEGABYTES=${MEGABYTES:-8}

needs 9pnet_rdma
if [ ! -x ./p9rdma ]; then
	skip "9P over RDMA" "there is no p9rdma"
	finish
fi
if ! use_storage; then
	skip "9P over RDMA" "there is no storage.sqfs (tools/storage)"
	finish
fi

check "the module loads" modprobe 9pnet_rdma || finish
# shellcheck disable=SC2086 # $PEER is several words
check "a server listens" p9_serve "$B4" $PEER || finish

check "a client mounts" p9_mount "$B4" || finish

unpacked() {
	p9_unpack "$1" && p9_has "$1" && p9_reads "$1"
}
check "files are unpacked, and read" unpacked one

large() {
	head -c "${MEGABYTES}M" /dev/urandom >"$TMP/large"
	timeout $((200 * PATIENCE)) dd if="$TMP/large" of="$P9_MOUNT/large" bs=64k status=none &&
		cmp "$TMP/large" "$P9_EXPORT/large" && cmp "$TMP/large" "$P9_MOUNT/large" || return
	rm "$P9_MOUNT/large" "$TMP/large"
}
check "a file of $MEGABYTES MB" large
check "the connection manager is in use" in_use

check "unmounted" p9_umount

# The client takes no notice: its device waits until it is unmounted.
device_goes() {
	local going
	p9_mount "$B4" || return
	rdma link del "$DEVICE" & going=$!
	sleep 1
	runs "$going" || fail "the device did not wait" || return
	p9_umount || return
	ends_within 60 "$going" || fail "rdma link del: $?" || return
	plug && p9_mount "$B4" && unpacked two
}
check "the client's device goes and comes back" device_goes

# The client's state is lost, and it can be unmounted.
peer_goes() {
	DEVICE=rxe1 AT=$PEER UNPLUG_SECONDS=100 unplug || return
	! timeout $((60 * PATIENCE)) ls "$P9_MOUNT" || fail "the client reads" || return
	timeout $((60 * PATIENCE)) umount "$P9_MOUNT" || fail "umount: $?" || return
	$PEER rdma link add rxe1 type rxe netdev v1
}
check "the server's device goes" peer_goes

p9_end
check "the module unloads" unloaded 9pnet_rdma
finish
