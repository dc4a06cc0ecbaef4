#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NFS over RDMA: the kernel's client, in the namespace "peer" over rxe1, mounts what the kernel's
# server exports over rxe0, or with OVER=ib over ib_b and ib_a; both are rpcrdma, a kernel consumer of
# the connection manager.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/nfsd.sh
. "$SELFTESTS/targets/nfsd.sh"

# The size of the large file.
MEGABYTES=${MEGABYTES:-8}

needs rpcrdma nfsd nfsv4
if ! use_storage; then
	skip "NFS over RDMA" "there is no storage.sqfs (tools/storage)"
	finish
fi

check "a server listens" nfsd_serve "${A4%.*}.0/24" || finish

# In a namespace a network that is gone is an error at once, unless one says otherwise.
check "a client mounts" nfs_mount "$A4" fatal_neterrors=none nsenter --net=/run/netns/peer || finish

# same DIRECTORY: it is what was unpacked, in the server and for the client.
same() {
	nfsd_has "$1" && nfs_reads "$1"
}

unpacked() {
	nfs_unpack one || return
	same one
}
nfs_archive
check "unpack $(wc -l <"$TMP/tree") files, $(du -k "$TMP/tar" | cut -f 1) KB" unpacked

large() {
	head -c "${MEGABYTES}M" /dev/urandom >"$TMP/large"
	timeout $((200 * PATIENCE)) dd if="$TMP/large" of="$MOUNT/large" bs=1M oflag=direct status=none ||
		return
	cmp "$TMP/large" "$EXPORT/large" || return
	timeout $((200 * PATIENCE)) dd if="$MOUNT/large" bs=1M iflag=direct status=none |
		cmp - "$TMP/large" || return
	rm "$MOUNT/large" "$TMP/large"
}
check "a file of $MEGABYTES MB, past the caches" large
check "the connection manager is in use" in_use

files_in() {
	find "$1" -type f | wc -l
}

restarted() {
	local client
	nfs_unpack two & client=$!
	wait_for 60 eval "[ \$(files_in $EXPORT/two) -ge 20 ]" || fail "nothing is unpacked" || return
	nfsd_stop || return
	runs "$client" || fail "the client did not wait" || return
	nfsd_start || return
	ends_within 200 "$client" || fail "the client: $?" || return
	same two
}
check "the server restarts while files are unpacked" restarted

# goes DEVICE COMMAND...: while files are unpacked; COMMAND brings it back.
goes() {
	local client device=$1 dir=$1
	shift
	nfs_unpack "$dir" & client=$!
	wait_for 60 eval "[ \$(files_in $EXPORT/$dir) -ge 20 ]" || fail "nothing is unpacked" || return
	timeout $((100 * PATIENCE)) rdma link del "$device" || fail "rdma link del: $?" || return
	"$@" || return
	ends_within 200 "$client" || fail "the client: $?" || return
	same "$dir"
}

peer_plugged() {
	case $DEVICE_TYPE in
	rxe) $PEER rdma link add rxe1 type rxe netdev v1 ;;
	softib) softib_b && softib_pings ;;
	esac
}

# With the last of its devices in a namespace, and before that device, rxe's sockets go: no DREP
# would come any more, and the client, which waits for one, would be free after the 16 DREQs of 78
# s, with any sender. So there is another device.
spared() {
	$PEER ip link add spare type dummy && $PEER ip link set spare up &&
		$PEER rdma link add rxe9 type rxe netdev spare
}
PEER_DEVICE=ib_b
if [ "$DEVICE_TYPE" = rxe ]; then
	PEER_DEVICE=rxe1
	check "another device in the client's namespace" spared
fi
if [ "$(cm-use)" = c ]; then
	skip "the client's device goes and comes back" "C may say EINVAL, which whoever writes then gets"
else
	check "the client's device goes and comes back" goes "$PEER_DEVICE" peer_plugged
fi
check "the server's device goes and comes back" goes "$DEVICE" plug

unmounted() {
	nfs_umount && nfsd_end || return
	[ "$DEVICE_TYPE" != rxe ] || { rdma link del rxe9 && $PEER ip link del spare; }
}
check "unmounted and stopped" unmounted
check "the module unloads" unloaded rpcrdma
made_for_it_goes
finish
