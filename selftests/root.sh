#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/root.sh DIR: on the host, a guest whose root file system is a disk of another guest over NVMe/RDMA. It boots
# with an initramfs that initramfs-tools or dracut made on a host with the packages in DIR (tools/deb), where C's modules
# are the dependencies of nvme-rdma. This module takes their place, and where the kernel demands signatures it does not.
#
# A script of this test in the initramfs brings the network up and asks for the disk: Debian has none for NVMe.
#
# shellcheck disable=SC2317 # functions that "check" runs
set -uo pipefail

# shellcheck source=selftests/lib/debian-host.sh
. "$(dirname "$0")/lib/debian-host.sh" root "$@"

mkdir -p "$modules/kernel" "$work/share"
mount --bind "$HOST_SYSROOT/root/lib/modules/$release/kernel" "$modules/kernel" || exit

# Programs of the sysroot, with their libraries.
borrow() {
	"$TOOLS/buildroot" ldd "$1" | grep -o '/[^ ]*' | while read -r file; do
		[ -e "$root$file" ] || install -D "$HOST_SYSROOT/root$file" "$root$file" || return
	done
	install -D "$HOST_SYSROOT/root$1" "$root$1"
}

# The drivers that lead to the root file system.
drivers=(virtio_pci virtio_net virtio_console squashfs rdma_rxe nvme-rdma)
# Other hosts ask for their disks the same way, by nvme-cli.
find_disk='modprobe -a virtio_net rdma_rxe nvme-rdma
	busybox ip addr add 10.0.1.2/24 dev eth0 && busybox ip link set eth0 up
	rdma link add rxe2 type rxe netdev eth0
	for try in $(busybox seq 60); do
		! echo transport=rdma,traddr=10.0.1.1,trsvcid=4420,nqn=t,nr_io_queues=2 >/dev/nvme-fabrics || break
		sleep 1
	done'

install_host() {
	in_root dpkg -i --force-depends "$debs"/rdma-cm_*.deb "$debs"/rust-rdma-cm-modules-*.deb && borrow /usr/bin/rdma
}
check "a host with the packages" install_host

with_initramfs_tools() {
	local tools=$root/etc/initramfs-tools
	printf '%s\n' MODULES=list BUSYBOX=y >"$tools/conf.d/test"
	printf '%s\n' "${drivers[@]}" >"$tools/modules"
	cat >"$tools/hooks/rdma" <<-'EOF'
		#!/bin/sh
		[ "$1" != prereqs ] || exit 0
		. /usr/share/initramfs-tools/hook-functions
		copy_exec /usr/bin/rdma
	EOF
	printf '#!/bin/sh\n[ "$1" != prereqs ] || exit 0\n%s\n' "$find_disk" >"$tools/scripts/local-top/rdma"
	chmod +x "$tools/hooks/rdma" "$tools/scripts/local-top/rdma"
	in_root mkinitramfs -o "$work/initramfs-tools" "$release"
}
check "an initramfs of initramfs-tools" with_initramfs_tools

# dracut runs what waits for a device again and again.
with_dracut() {
	local module=$root/usr/lib/dracut/modules.d/99rdma-root
	mkdir -p "$module"
	cat >"$module/module-setup.sh" <<-'EOF'
		install() {
			inst_multiple rdma busybox
			inst_hook initqueue/settled 10 "$moddir/rdma-root.sh"
		}
	EOF
	printf '[ -e /run/asked ] || {\n: >/run/asked\n%s\n}\n' "$find_disk" >"$module/rdma-root.sh"
	in_root dracut --force --no-hostonly --no-hostonly-cmdline --drivers virtio --add-drivers "${drivers[*]}" \
		--modules 'base udev-rules kernel-modules rootfs-block fs-lib rdma-root' "$work/dracut" "$release"
}
check "an initramfs of dracut" with_dracut

# The guest finds busybox there, the tool, and data to read.
make_root() {
	local dir=$work/rootfs
	mkdir -p "$dir"/{bin,sbin,dev,proc,sys,run,etc,tmp,root,data}
	cp "$HOST_SYSROOT/root/usr/bin/busybox" "$dir/bin/busybox" && cp "$root/usr/bin/rdma-cm" "$dir/sbin" || return
	head -c 16M /dev/urandom >"$dir/data/random" && (cd "$dir" && sha256sum data/random >data/sums) || return
	cat >"$dir/sbin/init" <<-'EOF'
		#!/bin/busybox sh
		/bin/busybox mkdir -p /tmp/bin
		export PATH=/bin
		alias b=/bin/busybox
		b mount -t proc proc /proc
		b mount -t sysfs sys /sys
		for dir in /sys/class/virtio-ports/*; do
			case $(b cat "$dir/name") in out) out=/dev/${dir##*/} ;; ctl) ctl=/dev/${dir##*/} ;; esac
		done
		{
			echo "root: $(b awk '$2 == "/" { print $1, $3 }' /proc/mounts | b tail -n 1)"
			echo "status: $(/sbin/rdma-cm status | b head -n 1)"
			/sbin/rdma-cm status
			echo 3 >/proc/sys/vm/drop_caches
			cd / && b sha256sum -c data/sums
			b cat /sys/class/nvme/nvme*/transport
		} >$out 2>&1
		echo "exit 0" >$ctl
		b poweroff -f
	EOF
	chmod +x "$dir/sbin/init"
	BUILDROOT_BIND=$work "$TOOLS/buildroot" mksquashfs "$dir" "$work/share/root.img" -comp lz4 -all-root -no-progress
}
check "a root file system" make_root

# boots MAKER MANAGER OPTION...: the guest comes up with that root by that maker's initramfs, and that connection manager.
boots() {
	local maker=$1 want=$2
	shift 2
	"$TOOLS/guest" --cm none --link "$work/link:2" --initramfs "$work/$maker" --share "$work/share" --timeout 400 \
		--log "$work/log-$want" --append "root=/dev/nvme0n1 rootfstype=squashfs ro rootdelay=60 $*" -- true >"$work/out" 2>&1
	local status=$?
	cat "$work/out"
	[ "$status" -eq 0 ] && grep -qx 'root: /dev/nvme0n1 squashfs' "$work/out" && grep -qx 'data/random: OK' "$work/out" &&
		grep -qx rdma "$work/out" && grep -qx "status: $want" "$work/out" && return
	tail -n 30 "$work/log-$want"
	return 1
}

"$TOOLS/guest" --cm c --link "$work/link:1" --share "$work/share" --timeout 1400 -- \
	/mnt/repo/selftests/pairs/root-target.sh >"$work/target" 2>&1 &
check "root over NVMe/RDMA, and this module has connected it" boots initramfs-tools rust
check "the same where the kernel demands signatures: C's modules have" boots initramfs-tools c module.sig_enforce=1
check "the same with dracut, and this module has" boots dracut rust rd.shell=0
check "with dracut where the kernel demands signatures: C's modules have" boots dracut c rd.shell=0 module.sig_enforce=1
: >"$work/share/root-done"
served() {
	wait
	cat "$work/target"
	grep -q '^ok ' "$work/target" && ! grep -q '^not ok' "$work/target"
}
check "the target" served
echo "1..$n"
exit "$failed"
