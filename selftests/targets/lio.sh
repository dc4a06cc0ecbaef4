# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernel's SCSI target (LIO), for the suites that reach it by RDMA. To be sourced, after
# storage.sh.

LIO=/sys/kernel/config/target
DISK=$LIO/core/rd_mcp_0/disk

# A RAM disk of so many megabytes.
lio_disk() {
	modprobe -a target_core_mod sd_mod || return
	mkdir -p "$DISK" || return
	echo "rd_pages=$(($1 * 256))" >"$DISK/control" && echo 1 >"$DISK/enable"
}

# lio_lun TPG [ACL]: the disk in a portal group, and for an initiator that is not everybody.
lio_lun() {
	mkdir "$1/lun/lun_0" && ln -s "$DISK" "$1/lun/lun_0/disk" || return
	[ $# -eq 1 ] || {
		mkdir "$1/acls/$2" "$1/acls/$2/lun_0" &&
			ln -s "$1/lun/lun_0" "$1/acls/$2/lun_0/lun"
	}
}

# lio_remove DIR: a target and all that is in it.
lio_remove() {
	local link dir
	echo 0 >"$1"/*/enable 2>/dev/null
	while read -r link; do
		rm "$link" || return
	done < <(find "$1" -type l)
	# Everything that can be made can be removed, from the inside; the rest goes with what it is in.
	while read -r dir; do
		rmdir "$dir" 2>/dev/null
	done < <(find "$1" -depth -type d)
	[ ! -e "$1" ] || fail "$1 cannot be removed"
}

lio_end() {
	echo 0 >"$DISK/enable" 2>/dev/null
	rmdir "$DISK" "$LIO/core/rd_mcp_0"
}

# The disks that the initiator sees of the target, by their names.
lio_disks() {
	local dir
	for dir in /sys/block/sd*; do
		[ ! -e "$dir" ] || ! grep -q LIO-ORG "$dir/device/vendor" || echo "/dev/${dir##*/}"
	done
}

has_disk() {
	[ -n "$(lio_disks)" ]
}

# lio_verify DISK MEGABYTES [KB]: what is written is read, so many KB (256) at a time.
lio_verify() {
	local size=${3:-256}
	head -c "${2}M" /dev/urandom >"$TMP/data"
	timeout $((100 * PATIENCE)) dd if="$TMP/data" of="$1" bs="${size}k" oflag=direct status=none ||
		return
	timeout $((100 * PATIENCE)) dd if="$1" bs="${size}k" count=$(($2 * 1024 / size)) iflag=direct \
		status=none | cmp - "$TMP/data" || fail "read something else"
}
