#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# modprobe on a system where this package is installed: what "make modules_install
# INSTALL_MOD_PATH=installed" left in the shared directory (INSTALLED), beside the
# distribution's modules.
# seconds: 200
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"

release=$(uname -r)
installed=${INSTALLED:-/mnt/share/installed}/lib/modules/$release
if [ "$CM" != rust ] || [ ! -d "$installed" ]; then
	skip "an installed package" "no $installed, or not for C"
	finish
fi

cm-use none || exit
rm -f /etc/modprobe.d/cm-use.conf

# Only what these tests load, because depmod reads every module there is.
tree=$TMP/tree
new=$tree/lib/modules/$release
mkdir -p "$new"
cp /lib/modules/"$release"/modules.{order,builtin,builtin.modinfo} "$new"
modprobe -a -D rdma_ucm rdma_rxe ib_uverbs configfs ib_umad |
	sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u |
	while read -r file; do
		install -D -m 644 "$file" "$new/${file#/lib/modules/"$release"/}"
	done
cp -r "$installed"/updates "$new"
mount --bind "$tree/lib/modules" /lib/modules || exit
# What modprobe -r found unused has to be there again.
trap 'cm-use none; umount /lib/modules; modprobe ib_uverbs; cm-use "$CM"; rm -rf "$TMP"' EXIT

loaded() {
	[ -d "/sys/module/$1" ]
}

unload() {
	modprobe -r "$@" || return
	! loaded rust_rdma_cm && ! loaded rdma_ucm || fail "still loaded"
}

pings() {
	local server
	$PEER rping -s -a "$B4" -C 3 &
	server=$!
	# Its first call waits for the module.
	wait_for 60 test -c /dev/infiniband/rdma_cm || fail "no device" || return
	await_listener "comm rping" || return
	timeout 30 rping -c -a "$B4" -C 3 || return
	ends_within 10 "$server"
}

check "depmod" depmod "$release"

by_name() {
	modprobe rdma_ucm || return
	loaded rust_rdma_cm || fail "rust_rdma_cm is not loaded" || return
	! loaded rdma_cm && ! loaded ib_cm || fail "a C module is loaded" || return
	pings && wait_for 10 no_cm_ids
}
check "modprobe rdma_ucm loads this module" by_name

stays() {
	! rmmod rust_rdma_cm || fail "unloaded below the module that needs it" || return
	unload rdma_ucm
}
check "modprobe -r rdma_ucm unloads it" stays

# librdmacm asks ib_core for the device, and ib_core asks for a module by an alias.
on_demand() {
	! loaded rust_rdma_cm || fail "already loaded" || return
	pings || return
	loaded rust_rdma_cm || fail "rust_rdma_cm is not loaded" || return
	! loaded rdma_cm && ! loaded ib_cm || fail "a C module is loaded" || return
	wait_for 10 no_cm_ids && unload rust_rdma_cm
}
check "the first program that needs it loads it" on_demand

# As if the package were removed.
removed() {
	rm -r "$new/updates" && depmod "$release" && modprobe rdma_ucm || return
	loaded rdma_cm || fail "C's module is not loaded" || return
	! loaded rust_rdma_cm || fail "rust_rdma_cm is loaded" || return
	pings
	modprobe -r rdma_ucm
}
check "without the package C's modules are back" removed
finish
