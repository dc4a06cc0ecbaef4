# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# NFS over RDMA: the kernel's server with one file system in memory, and a client of it. To be
# sourced, after storage.sh; all of it needs the programs of tools/storage.

EXPORT=/run/nfs-export MOUNT=/run/nfs-mount
# The files that are unpacked: little by default, for the sake of emulated guests. /usr/include has
# 2,600 files.
SOURCE=${SOURCE:-/usr/include/linux/netfilter}

nfsd_start() {
	rpc.nfsd --no-nfs-version 3 --rdma=20049 4 || return
	wait_for 20 cm_id_in LISTEN 20049 || fail "no listener: $(cm_ids)"
}

nfsd_stop() {
	rpc.nfsd 0 || return
	wait_for 100 eval '! cm_id_in LISTEN 20049' || fail "still listening: $(cm_ids)"
}

# nfsd_serve NETWORK: to those in it.
nfsd_serve() {
	modprobe rpcrdma && modprobe nfsd || return
	mkdir -p "$EXPORT" /var/lib/nfs/rpc_pipefs /var/lib/nfs/nfsdcld || return
	mount -t tmpfs export "$EXPORT" && mount -t nfsd nfsd /proc/fs/nfsd &&
		mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs || return
	# The time that a restarted server waits for clients that do not come back.
	echo 10 >/proc/fs/nfsd/nfsv4leasetime && echo 10 >/proc/fs/nfsd/nfsv4gracetime || return
	echo "$EXPORT $1(rw,no_root_squash,fsid=0,no_subtree_check)" >/etc/exports
	touch /var/lib/nfs/etab /var/lib/nfs/rmtab
	# The clients that may reclaim their state, and may mount.
	setsid nfsdcld >/run/nfsdcld.log 2>&1
	setsid rpc.mountd --no-nfs-version 3 --no-udp --no-tcp >/run/mountd.log 2>&1
	exportfs -ra || return
	nfsd_start
}

nfsd_end() {
	nfsd_stop || return
	exportfs -ua
	end "$(pidof rpc.mountd)" "$(pidof nfsdcld)"
	umount /var/lib/nfs/rpc_pipefs /proc/fs/nfsd "$EXPORT"
}

# nfs_mount ADDRESS [OPTION [COMMAND...]]: with one more option, by a command that runs another.
nfs_mount() {
	modprobe rpcrdma && modprobe -a nfs nfsv4 && mkdir -p "$MOUNT" || return
	"${@:3}" timeout $((100 * PATIENCE)) \
		mount -t nfs -o "vers=4.2,proto=rdma,port=20049${2:+,$2}" "$1:/" "$MOUNT" || return
	grep "$MOUNT" /proc/mounts | grep proto=rdma >/dev/null ||
		fail "$(grep "$MOUNT" /proc/mounts)" || return
	# Named by the module that has it.
	cm_id_in CONNECT rpcrdma || fail "$(cm_ids)"
}

nfs_umount() {
	timeout $((100 * PATIENCE)) umount "$MOUNT" || return
	wait_for 100 eval '! cm_id_in CONNECT' || fail "$(cm_ids)"
}

# The archive that is unpacked, and what is in it.
nfs_archive() {
	tar -c -C "$SOURCE" -f "$TMP/tar" . && tree "$SOURCE" >"$TMP/tree"
}

# nfs_unpack DIRECTORY [ARCHIVE]
nfs_unpack() {
	mkdir "$MOUNT/$1" && timeout $((200 * PATIENCE)) tar -x -C "$MOUNT/$1" -f "${2:-$TMP/tar}"
}

# nfsd_has DIRECTORY: the server has what was unpacked.
nfsd_has() {
	diff "$TMP/tree" <(tree "$EXPORT/$1") >/dev/null || fail "the server has something else"
}

# nfs_reads DIRECTORY: the client reads it, and not what it remembers.
nfs_reads() {
	echo 3 >/proc/sys/vm/drop_caches
	diff "$TMP/tree" <(timeout $((200 * PATIENCE)) bash -c "$(declare -f tree); tree $MOUNT/$1") \
		>/dev/null || fail "the client reads something else"
}

# linux_tar OPTION...: with linux.tar, which is the guest's disk: of the share tar reads a page at a time, in
# milliseconds each.
linux_tar() {
	tar --no-same-owner -f /run/disk "$@"
}

# linux_tar_lists: of what is in each fourth of it.
linux_tar_lists() {
	linux_tar -t | cut -d/ -f1-3 | grep -v '/$' | uniq -c | sort -rn |
		awk -v to="$TMP/list." '{ print $2 >(to NR % 4) }'
	[ -s "$TMP/list.1" ] || fail "nothing is in linux.tar"
}

# in_parts COMMAND...: four at once, each with "-T" and one of the lists. A process that does one
# thing after the other waits most of the time.
in_parts() {
	local list pid pids=() status=0
	for list in "$TMP"/list.?; do
		"$@" -T "$list" & pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || status=$?
	done
	return "$status"
}

# linux_tar_x DIRECTORY: unpacks it there.
linux_tar_x() {
	in_parts linux_tar -x -C "$1"
}

# nfs_same DIRECTORY: it has what is in linux.tar, contents and modes.
nfs_same() {
	in_parts linux_tar_d -C "$1" >"$TMP/differs"
	[ ! -s "$TMP/differs" ] || fail "$(head -n 20 "$TMP/differs")"
}

# Files that a client wrote and the server forgot are written again, after their time was set.
linux_tar_d() {
	linux_tar -d "$@" 2>&1 | grep -v ': \([UG]id\|Mod time\) differs$'
}
