# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Programs that the guest's system lacks. To be sourced.

# use_image IMAGE: the programs of this file system from here on, as if they were installed. Fails where there is no such
# file. A guest uses one.
use_image() {
	local image=$1 root=/run/image modules
	[ ! -e "$root/usr" ] || return 0
	[ -e "$image" ] || return
	modules=/usr/lib/modules/$(uname -r)
	modprobe -a loop squashfs overlay
	mkdir -p "$root/modules" /run/modules && mount -o loop,ro "$image" "$root" || return
	# With what cm-use has put there.
	mount --rbind "$modules" /run/modules || return
	mount -t overlay -o "lowerdir=/usr:$root/usr" image /usr || return
	mount --rbind /run/modules "$modules" && umount -R /run/modules || return
	cp -an "$root/etc/." /etc/ && cp -an "$root/var/lib/." /var/lib/
}
