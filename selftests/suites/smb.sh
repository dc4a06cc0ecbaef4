#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# SMB Direct: cifs mounts a share of ksmbd over rxe0, or with OVER over another device (storage.sh). Their transport,
# smbdirect, listens at one port for the devices of InfiniBand and RoCE, and at another one for those of iWARP; ksmbd
# has it listen at IPv4 only.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"

[ -e smb/cifs.ko ] || {
	skip "all of it" "there is no SMB with SMB Direct (tools/smb)"
	finish
}
use_storage || {
	skip "all of it" "there is no storage.sqfs (tools/storage)"
	finish
}

PORT=445
[ "$DEVICE_TYPE" != siw ] || PORT=5445
SHARED=$TMP/shared
MOUNTED=$TMP/mounted

# load_file FILE: a module, and the modules that it needs.
load_file() {
	local module
	for module in $(modinfo -F depends "$1" | tr ',' ' '); do
		[ -d "/sys/module/$module" ] || modprobe "$module" || return
	done
	insmod "$1"
}

load() {
	load_file smb/smbdirect.ko && load_file smb/ksmbd.ko && load_file smb/cifs.ko
}
check "the modules load" load || finish

# serve: the server starts.
serve() {
	ksmbd.mountd -C "$TMP/ksmbd.conf" -P "$TMP/users" || return
	wait_for 30 cm_id_in LISTEN "smbdirect.*:$PORT" || fail "no listener: $(cm_ids)"
}

# stop: the server stops.
stop() {
	ksmbd.control -s || return
	wait_for 60 eval "! cm_id_in LISTEN 'smbdirect.*:$PORT'" || fail "$(cm_ids)"
}

served() {
	mkdir "$SHARED" "$MOUNTED" && : >"$TMP/users" || return
	cat >"$TMP/ksmbd.conf" <<-END
		[global]
		server multi channel support = yes
		[share]
		path = $SHARED
		read only = no
	END
	ksmbd.adduser -C "$TMP/ksmbd.conf" -P "$TMP/users" -a -p secret root && serve
}
check "a server listens" served || finish

# mounting [ADDRESS [PASSWORD]]: the share is mounted over RDMA.
mounting() {
	timeout $((120 * PATIENCE)) mount -t cifs "//${1:-$A4}/share" "$MOUNTED" \
		-o "rdma,vers=3.1.1,soft,username=root,password=${2:-secret}"
}

mounted() {
	mounting "$@" || fail "not mounted" || return
	cm_id_in CONNECT "smbdirect.*dst-addr ${1:-$A4}:$PORT" || fail "$(cm_ids)"
}
check "a client mounts the share" mounted || finish
check "the connection manager is in use" in_use

# copied DIRECTORY MEGABYTES: files, of which the large one is read and written by RDMA of the server, are there.
copied() {
	local from=$TMP/from to=$MOUNTED/$1 i
	rm -rf "$from" && mkdir "$from" "$to" || return
	for ((i = 0; i < 20; i++)); do
		head -c $((i * 331)) /dev/urandom >"$from/$i"
	done
	head -c "${2}M" /dev/urandom >"$from/large"
	timeout $((120 * PATIENCE)) cp "$from"/* "$to" || return
	diff <(tree "$from") <(tree "$SHARED/$1") || fail "the server has something else" || return
	echo 3 >/proc/sys/vm/drop_caches
	timeout $((120 * PATIENCE)) diff <(tree "$from") <(tree "$to") || fail "read something else"
}
check "what is written is read" copied a 8

refused() {
	local before
	umount "$MOUNTED" || return
	wait_for 60 eval '! cm_id_in CONNECT' || fail "$(cm_ids)" || return
	before=$(cm_ids | wc -l)
	! mounting "$A4" wrong || fail "mounted with a wrong password" || return
	! mounting 192.0.2.1 || fail "mounted from nowhere" || return
	wait_for 60 eval "[ \"\$(cm_ids | wc -l)\" -eq $before ]" || fail "$(cm_ids)" || return
	stop || return
	! mounting || fail "mounted from nobody" || return
	wait_for 60 no_cm_ids || fail "$(cm_ids)" || return
	serve && mounted && copied b 1
}
check "a wrong password, nowhere and nobody" refused

# usable: the client has found its way back.
usable() {
	timeout $((20 * PATIENCE)) cat "$MOUNTED/a/1" | cmp - "$SHARED/a/1"
}

restarted() {
	stop || return
	wait_for 60 eval '! cm_id_in CONNECT' || fail "$(cm_ids)" || return
	serve && wait_for 100 usable || fail "the client is not back: $(cm_ids)" || return
	copied c 1
}
check "the server is stopped and started" restarted

unplugged() {
	unplug || return
	wait_for 60 eval '! cm_id_in CONNECT' || fail "$(cm_ids)" || return
	plug || return
	wait_for 60 cm_id_in LISTEN "smbdirect.*:$PORT" || fail "no listener: $(cm_ids)" || return
	wait_for 100 usable || fail "the client is not back: $(cm_ids)" || return
	copied d 1
}
check "the device goes and comes back" unplugged

unload() {
	umount "$MOUNTED" && stop || return
	unloaded cifs ksmbd smbdirect
}
check "the modules unload" unload
made_for_it_goes
finish
