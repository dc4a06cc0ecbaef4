#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# modprobe on a system where this package is installed: a Debian package ("make deb") or what "make
# modules_install INSTALL_MOD_PATH=installed" left, in the shared directory, beside the
# distribution's modules.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

release=$(uname -r)
installed=${INSTALLED:-/mnt/share/installed}/lib/modules/$release
package=$(echo /mnt/share/rust-rdma-cm*.deb)
if [ "$CM" != rust ] || { [ ! -d "$installed" ] && [ ! -e "$package" ]; }; then
	skip "an installed package" "no $package and no $installed, or not for C"
	finish
fi

cm-use none || exit
rm -f /etc/modprobe.d/cm-use.conf

# Only what these tests load, because depmod reads every module there is.
tree=$TMP/tree
new=$tree/lib/modules/$release
mkdir -p "$new"
cp /lib/modules/"$release"/modules.{order,builtin,builtin.modinfo} "$new"
modprobe -a -D rdma_ucm rdma_rxe ib_uverbs configfs ib_umad nvme-rdma ib_srp |
	sed -n 's/^insmod \([^ ]*\).*/\1/p' | sort -u |
	while read -r file; do
		install -D -m 644 "$file" "$new/${file#/lib/modules/"$release"/}"
	done
mount --bind "$tree/lib/modules" /lib/modules || exit
# Modules that modprobe -r found unused have to be there again.
trap 'cm-use none; umount /lib/modules; modprobe ib_uverbs; cm-use "$CM"; rm -rf "$TMP"' EXIT

loaded() {
	[ -d "/sys/module/$1" ]
}

unload() {
	modprobe -r "$@" || return
	! loaded rust_rdma_cm && ! loaded rdma_ucm || fail "still loaded"
}

unload_all() {
	local module
	for module in rdma_ucm rdma_cm ib_cm rust_rdma_cm; do
		! loaded "$module" || rmmod "$module" || return
	done
}

pings() {
	local server
	$PEER rping -s -a "$B4" -C 3 &
	server=$!
	# Its first call waits for the module.
	wait_for 60 test -c /dev/infiniband/rdma_cm || fail "no device" || return
	await_listener "comm rping" || return
	timeout $((30 * PATIENCE)) rping -c -a "$B4" -C 3 || return
	ends_within 10 "$server"
}

install_it() {
	if [ -e "$package" ]; then
		# The guest has a kernel, but no package of one.
		dpkg --force-depends -i "$package"
	else
		cp -r "$installed"/updates "$new" && depmod "$release"
	fi
}
check "installation" install_it

remove_it() {
	if [ -e "$package" ]; then
		dpkg --force-depends -r "$(dpkg-deb -f "$package" Package)" || return
		[ ! -e "$new/updates" ] || fail "something is left"
	else
		rm -r "$new/updates" && depmod "$release"
	fi
}

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

# The modules of the kernel's own consumers that it has got.
consumers=()
for module in nvme-rdma ib_srp; do
	! modinfo "$module" >/dev/null 2>&1 || consumers+=("$module")
done

# Prints the modules that need a connection manager by the names of its functions, or by that of a C
# module.
for_the_kernel() {
	local module
	for module in "${consumers[@]}" rdma_cm ib_cm; do
		! loaded rust_rdma_cm || fail "already loaded" || return
		modprobe "$module" || return
		loaded rust_rdma_cm || fail "$module: rust_rdma_cm is not loaded" || return
		[ ! -d /sys/module/rdma_ucm ] || fail "$module: rdma_ucm is loaded" || return
		case $module in
		nvme-rdma | ib_srp)
			! loaded rdma_cm && ! loaded ib_cm ||
				fail "$module: a stand-in is loaded" || return
			! rmmod rust_rdma_cm || fail "unloaded below $module" || return
			;;
		esac
		modprobe -r "$module" || return
		unload_all || return
	done
}
check "modprobe ${consumers[*]} rdma_cm ib_cm, each loads it" for_the_kernel

# The tool of an administrator.
tool=/mnt/repo/tools/cm
[ ! -e "$package" ] || tool=rdma-cm

swapping() {
	local user=$BASHPID
	[ "$($tool)" = none ] || fail "not none" || return
	$tool rust || return
	[ "$($tool)" = rust ] || fail "not rust" || return
	$tool c || return
	[ "$($tool)" = c ] && loaded rdma_ucm || fail "not c" || return
	exec 7<>/dev/infiniband/rdma_cm
	! $tool rust 7>&- || fail "swapped below a process" || return
	$tool 7>&- | grep -q "^used by processes: $user " || fail "$($tool)" || return
	exec 7>&-
	$tool rust && unload_all
}
check "tools/cm swaps what nobody uses" swapping

swapping_below() {
	modprobe nvme-rdma || return
	! $tool c || fail "swapped below a module" || return
	$tool | grep -q '^used by modules: nvme_rdma' || fail "$($tool)" || return
	[ "$($tool | head -n 1)" = rust ] || fail "not rust any more" || return
	modprobe -r nvme-rdma && unload_all
}
if [ ${#consumers[@]} -gt 0 ]; then
	check "tools/cm swaps nothing below a module" swapping_below
else
	skip "tools/cm swaps nothing below a module" "the kernel has no nvme-rdma"
fi

# Without the package.
removed() {
	remove_it && modprobe rdma_ucm || return
	loaded rdma_cm || fail "C's module is not loaded" || return
	! loaded rust_rdma_cm || fail "rust_rdma_cm is loaded" || return
	pings || return
	modprobe -r rdma_ucm || return
	[ ${#consumers[@]} -gt 0 ] || return 0
	modprobe nvme-rdma || return
	loaded rdma_cm || fail "nvme-rdma: C's module is not loaded" || return
	! loaded rust_rdma_cm || fail "nvme-rdma: rust_rdma_cm is loaded" || return
	modprobe -r nvme-rdma
}
check "without the package C's modules are back" removed
finish
