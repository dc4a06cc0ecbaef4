# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# NFS over RDMA between two guests: the parts of the server (..._server) and of its client (..._client), with
# the commands of an administrator, for "pair" (meet.sh). To be sourced, after storage-pair.sh and nfsd.sh.

nfs_mount_server() {
	nfsd_serve 10.0.1.0/24 || return
	say ready
	hear mounted || return
	# The files are compared with those that are unpacked there.
	nfs_archive && in_use
}

nfs_mount_client() {
	hear ready || return
	timed "mount -t nfs with its modules, $CM client" nfs_mount "$far4" || return
	say mounted
	in_use
}

nfs_unpack_server() {
	nfs_archive || return
	hear unpacked || return
	nfsd_has one
}

nfs_unpack_client() {
	nfs_archive && nfs_unpack one || return
	say unpacked
	nfs_reads one
}

# The first half is unpacked, with a file open, when the server stops; the second while there is none.
nfs_restart_server() {
	nfs_archive || return
	hear half || return
	wait_for 60 eval "[ -n \"\$(find $EXPORT/two -type f)\" ]" || fail "nothing is unpacked" || return
	nfsd_stop || return
	say stopped
	pause 2
	nfsd_start || return
	say started
	hear unpacked || return
	nfsd_has two
}

nfs_restart_client() {
	nfs_archive && halves stopped | nfs_unpack two - || return
	say unpacked
	nfs_reads two
}

# halves WORD: the second half of the archive when the server has said it.
halves() {
	local half=$(($(stat -c %s "$TMP/tar") / 2))
	head -c "$half" "$TMP/tar"
	say half
	hear "$1" >&2
	tail -c +$((half + 1)) "$TMP/tar"
}

# The first half is unpacked when the server's device goes; the second has to wait for it.
nfs_unplug_server() {
	nfs_archive && hear half || return
	unplug_server cm_id_in LISTEN 20049 || return
	nfsd_has three
}

nfs_unplug_client() {
	local client
	nfs_archive || return
	halves gone | nfs_unpack three - & client=$!
	unplug_client NFS ends_within 400 "$client" && nfs_reads three
}

nfs_umount_server() { # [COMMAND...], when no client has a delegation any more
	hear gone || return
	deserted rpcrdma && "$@" || return
	nfsd_end && unloaded rpcrdma
}

nfs_umount_client() {
	nfs_umount && unloaded rpcrdma || return
	say gone
}

# Unpacks linux.tar (linux_tar_lists), a whole kernel source, without a limit on the time.
nfs_source_server() {
	local files
	mount -o remount,size=3G,nr_inodes=1M "$EXPORT" || return
	hear unpacking || return
	files=$(linux_tar -t | wc -l)
	wait_for 10000 eval "pause 2; [ \$(df --output=iused '$EXPORT' | tail -n 1) -ge $((files / 5)) ]" ||
		fail "too little is unpacked" || return
	nfsd_stop || return
	! said unpacked || fail "the client did not wait" || return
	nfsd_start || return
	note "the server was away after $((files / 5)) of $files files"
	hear "read"
}

nfs_source_client() {
	say unpacking
	timed "unpacked, $CM client" linux_tar_x "$MOUNT" || return
	say unpacked
	echo 3 >/proc/sys/vm/drop_caches
	timed "read, $CM client" nfs_same "$MOUNT" || return
	say "read"
}
