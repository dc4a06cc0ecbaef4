#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# 9P over RDMA: the kernel's client, a kernel consumer of the connection manager, mounts over rxe0 what
# diod serves in the namespace "peer". Debian has no server of 9P that speaks RDMA: p9rdma, a program
# on librdmacm, stands before diod. Needs p9rdma and storage.sqfs in the current directory.
# seconds: 400
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=selftests/storage.sh
. "$SELFTESTS/storage.sh"

SOURCE=${SOURCE:-/usr/include/linux/netfilter}
MEGABYTES=${MEGABYTES:-8}
EXPORT=/run/9p MOUNT=/mnt/9p

needs 9pnet_rdma
if [ ! -x ./p9rdma ]; then
	skip "9P over RDMA" "there is no p9rdma"
	finish
fi
if ! use_storage; then
	skip "9P over RDMA" "there is no storage.sqfs (tools/storage)"
	finish
fi
P9RDMA=$PWD/p9rdma

# stays NAME COMMAND...: a server in the namespace "peer", which is no job of the test that starts it.
stays() {
	local name=$1
	shift
	(
		$PEER "$@" >"$TMP/$name" 2>&1 &
		echo $! >"$TMP/$name.pid"
	)
}

serve() {
	mkdir -p "$EXPORT" "$MOUNT" && $PEER ip link set lo up || return
	stays diod diod -f -n -N -l 127.0.0.1:5641 -e "$EXPORT"
	wait_for 20 eval "$PEER ss -ltn | grep -q :5641" || fail "$(<"$TMP/diod")" || return
	stays p9rdma "$P9RDMA" "$B4" 5640 5641
	await_listener "comm p9rdma"
}
check "the module loads" load_consumer 9pnet_rdma || finish
check "a server listens" serve || finish

mounted() {
	timeout $((60 * PATIENCE)) mount -t 9p \
		-o trans=rdma,port=5640,version=9p2000.L,msize=65536,access=any,uname=root,aname=$EXPORT \
		"$B4" "$MOUNT" || return
	cm_id_in CONNECT "$B4:5640" || fail "$(cm_ids)"
}
check "a client mounts" mounted || finish

unpacked() {
	tree "$SOURCE" >"$TMP/tree"
	mkdir "$MOUNT/$1" && tar -c -C "$SOURCE" . |
		timeout $((200 * PATIENCE)) tar -x --no-same-owner -C "$MOUNT/$1" || return
	tree "$EXPORT/$1" | diff "$TMP/tree" - || fail "the server has something else" || return
	tree "$MOUNT/$1" | diff "$TMP/tree" - || fail "the client reads something else"
}
check "files are unpacked, and read" unpacked one

large() {
	head -c "${MEGABYTES}M" /dev/urandom >"$TMP/large"
	timeout $((200 * PATIENCE)) dd if="$TMP/large" of="$MOUNT/large" bs=64k status=none &&
		cmp "$TMP/large" "$EXPORT/large" && cmp "$TMP/large" "$MOUNT/large" || return
	rm "$MOUNT/large" "$TMP/large"
}
check "a file of $MEGABYTES MB" large
check "the connection manager is in use" in_use

unmounted() {
	timeout $((60 * PATIENCE)) umount "$MOUNT" || fail "umount: $?" || return
	wait_for 60 eval '! cm_ids | grep 5640.*CONNECT'
}
check "unmounted" unmounted

# The client takes no notice: its device waits until it is unmounted.
device_goes() {
	local going
	mounted || return
	rdma link del "$DEVICE" & going=$!
	sleep 1
	kill -0 "$going" || fail "the device did not wait" || return
	unmounted || return
	ends_within 60 "$going" || fail "rdma link del: $?" || return
	plug && mounted && unpacked two
}
check "the client's device goes and comes back" device_goes

# What the client had is lost, and it can be unmounted.
peer_goes() {
	$PEER timeout $((100 * PATIENCE)) rdma link del rxe1 || fail "rdma link del: $?" || return
	! timeout $((60 * PATIENCE)) ls "$MOUNT" || fail "the client reads" || return
	timeout $((60 * PATIENCE)) umount "$MOUNT" || fail "umount: $?"
}
check "the server's device goes" peer_goes

kill -9 "$(<"$TMP/p9rdma.pid")" "$(<"$TMP/diod.pid")" 2>/dev/null
check "the module unloads" unloaded 9pnet_rdma
finish
