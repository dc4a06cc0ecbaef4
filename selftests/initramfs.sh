#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/initramfs.sh DIR: on the host, that an initramfs that initramfs-tools or dracut makes has the module of the
# packages in DIR (tools/deb), as it is installed, and the lines for modprobe, if it has C's connection manager for what
# the root file system needs; and that it has C's alone where the module is not installed.
#
# shellcheck disable=SC2317 # functions that "check" runs
set -uo pipefail

# shellcheck source=selftests/lib/debian-host.sh
. "$(dirname "$0")/lib/debian-host.sh" initramfs "$@"

mkdir -p "$modules/kernel"
mount --bind "$HOST_SYSROOT/root/lib/modules/$release/kernel" "$modules/kernel" || exit
image=/boot/initrd.img-$release

# Modules are listed: there is no hardware here that initramfs-tools could look at.
with_initramfs_tools() {
	printf '%s\n' MODULES=list BUSYBOX=y >"$root/etc/initramfs-tools/conf.d/test" || return
	printf '%s\n' "$@" >"$root/etc/initramfs-tools/modules"
	in_root mkinitramfs -o "$image" "$release"
}

with_dracut() {
	in_root dracut --force --no-hostonly --no-hostonly-cmdline --modules 'base kernel-modules' --drivers virtio \
		--add-drivers "$*" "$image" "$release"
}

# unpack: what is in the image.
unpack() {
	unpacked=$work/unpacked
	rm -rf "$unpacked"
	in_root unmkinitramfs "$image" "$unpacked" || return
	[ ! -d "$unpacked/main" ] || unpacked+=/main
}

# has FILE: where it is in the image.
has() {
	find "$unpacked/" -name "$1" | grep .
}

with_module() {
	local module file
	"$@" && unpack && has 'ib_cm.ko*' && has 'rdma_cm.ko*' && file=$(has 'rust_rdma_cm.ko*') || return
	# Bit by bit, and with it the signature.
	cmp "$file" "$modules/updates/${file##*/}" && grep '^install ib_cm .*rust_rdma_cm' "$(has rust-rdma-cm.conf)" || return
	# modprobe finds there the line for C's modules, and all that ours needs.
	for module in "${@:2}"; do
		in_root chroot "$unpacked" modprobe -S "$release" --dry-run --show-depends "$module" >"$work/depends" &&
			grep 'install .*rust_rdma_cm' "$work/depends" || return
	done
	in_root chroot "$unpacked" modprobe -S "$release" --dry-run --show-depends rust_rdma_cm
}

without() {
	"$@" && unpack && ! has 'rust_rdma_cm.ko*'
}

# dpkg knows neither the tool's dependencies here nor the kernel.
check "installation" in_root dpkg -i --force-depends "$debs"/rdma-cm_*.deb "$debs"/rust-rdma-cm-modules-*.deb
consumers=(nvme-rdma rpcrdma ib_iser ib_srp)
for maker in with_initramfs_tools with_dracut; do
	check "$maker ${consumers[*]}: the module is there with C's" with_module "$maker" "${consumers[@]}"
	check "$maker: without them it is not" without "$maker" e1000e
done
remove() {
	in_root dpkg -r "rust-rdma-cm-modules-$release" && with_initramfs_tools nvme-rdma && unpack && has 'ib_cm.ko*' &&
		! has 'rust_rdma_cm.ko*'
}
check "after its removal C's are there alone" remove
echo "1..$n"
exit "$failed"
