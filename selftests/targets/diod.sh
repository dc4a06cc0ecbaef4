# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# 9P over RDMA: a server of one directory, and the kernel's client of it. Debian has no server of 9P that
# speaks RDMA: p9rdma, a program on librdmacm, stands before diod. To be sourced, after storage.sh; needs
# p9rdma in the current directory, and the programs of tools/storage.

P9_EXPORT=/run/9p P9_MOUNT=/mnt/9p P9RDMA=$PWD/p9rdma
SOURCE=${SOURCE:-/usr/include/linux/netfilter}

# stays NAME COMMAND...: a server, which is no job of the test that starts it.
stays() {
	local name=$1
	shift
	(
		"$@" >"$TMP/$name" 2>&1 &
		echo $! >"$TMP/$name.pid"
	)
}

# p9_serve ADDRESS [COMMAND...]: by a command that runs another.
p9_serve() {
	mkdir -p "$P9_EXPORT" && "${@:2}" ip link set lo up || return
	stays diod "${@:2}" diod -f -n -N -l 127.0.0.1:5641 -e "$P9_EXPORT"
	wait_for 20 eval "${*:2} ss -ltn | grep -q :5641" || fail "$(<"$TMP/diod")" || return
	stays p9rdma "${@:2}" "$P9RDMA" "$1" 5640 5641
	await_listener "comm p9rdma"
}

p9_end() {
	kill -9 "$(<"$TMP/p9rdma.pid")" "$(<"$TMP/diod.pid")" 2>/dev/null
}

# p9_mount ADDRESS [SIZE]: with messages of up to SIZE bytes.
p9_mount() {
	mkdir -p "$P9_MOUNT"
	timeout $((60 * PATIENCE)) mount -t 9p \
		-o "trans=rdma,port=5640,version=9p2000.L,msize=${2:-65536},access=any" \
		-o "uname=root,aname=$P9_EXPORT" \
		"$1" "$P9_MOUNT" || return
	cm_id_in CONNECT "$1:5640" || fail "$(cm_ids)"
}

p9_umount() {
	timeout $((60 * PATIENCE)) umount "$P9_MOUNT" || fail "umount: $?" || return
	wait_for 60 eval '! cm_ids | grep 5640.*CONNECT'
}

# p9_unpack DIRECTORY
p9_unpack() {
	mkdir "$P9_MOUNT/$1" && tar -c -C "$SOURCE" . |
		timeout $((200 * PATIENCE)) tar -x --no-same-owner -C "$P9_MOUNT/$1"
}

# p9_has DIRECTORY: the server has what was unpacked.
p9_has() {
	tree "$P9_EXPORT/$1" | diff <(tree "$SOURCE") - || fail "the server has something else"
}

# p9_reads DIRECTORY: the client reads it.
p9_reads() {
	tree "$P9_MOUNT/$1" | diff <(tree "$SOURCE") - || fail "the client reads something else"
}
