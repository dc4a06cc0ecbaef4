# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The functions that the suites of kernel consumers share, besides lib.sh. To be sourced.

# shellcheck source=selftests/lib/image.sh
. "$SELFTESTS/lib/image.sh"

# Many queues that are connected one after the other keep who asked for them waiting for longer than the
# 10 s after which a kernel with all the checks calls it hung: as long as the stock kernel's, then.
[ "$PATIENCE" -eq 1 ] || hung_after 60

# Over which device: rxe0, or with OVER=iwarp (siw) or OVER=ib (softib) one that is made for it.
case ${OVER:-rxe} in
rxe)
	DEVICE=rxe0 DEVICE_TYPE=rxe NETDEV=v0
	;;
iwarp)
	DEVICE=siw0 DEVICE_TYPE=siw NETDEV=w0 A4=$C4 A6=$C6
	has_siw || {
		skip "all of it" "this kernel has no siw, and there is no siw.ko (tools/siw)"
		finish
	}
	check "siw0" siw0 || finish
	;;
ib)
	# shellcheck source=selftests/lib/softib.sh
	. "$SELFTESTS/lib/softib.sh"
	DEVICE=ib_a DEVICE_TYPE=softib NETDEV=m0 A4=$I4 A6=$I6
	has_softib || {
		skip "all of it" "there is no softib.ko (tools/softib)"
		finish
	}
	check "two ports, IPoIB, a subnet administrator" softib_up || finish
	;;
esac

# The module that kernel consumers use, and that cannot be unloaded then.
case $CM in
rust) CONSUMED=rust_rdma_cm ;;
*) CONSUMED=rdma_cm ;;
esac

# needs MODULE...: ends the suite where the kernel has not got them.
needs() {
	local module
	for module; do
		modinfo "$module" >/dev/null 2>&1 || {
			skip "all of it" "the kernel has no $module"
			finish
		}
	done
}

# use_storage [IMAGE]: the programs of tools/storage from here on.
use_storage() {
	use_image "${1:-storage.sqfs}"
}

# in_use: the connection manager cannot be unloaded.
in_use() {
	! rmmod "$CONSUMED" 2>/dev/null || fail "$CONSUMED was unloaded"
}

# unloaded MODULE...: they can be, and then nobody uses the connection manager.
unloaded() {
	local module
	for module; do
		wait_for 60 rmmod "$module" || fail "$module is in use: $(lsmod | grep "^$module")" || return
	done
	wait_for 60 no_cm_ids || fail "$(cm_ids)" || return
	wait_for 60 eval "[ \"\$(</sys/module/$CONSUMED/refcnt)\" -le $HOLDERS ]" ||
		fail "references on $CONSUMED: $(<"/sys/module/$CONSUMED/refcnt")"
}
# C's rdma_ucm holds rdma_cm.
HOLDERS=$(<"/sys/module/$CONSUMED/refcnt")

# tree DIRECTORY: checksums of the files below.
tree() {
	(cd "$1" && find . -type f -print0 | sort -z | xargs -0 sha256sum)
}

# ram_disk_verify DISK MEGABYTES [KB]: what is written to a disk that a target makes of /dev/ram0 is read, at either end, so
# many KB (256) at a time.
ram_disk_verify() {
	local size=${3:-256} count
	count=$(($2 * 1024 / size))
	head -c "${2}M" /dev/urandom >"$TMP/data"
	timeout $((60 * PATIENCE)) dd if="$TMP/data" of="$1" bs="${size}k" oflag=direct status=none || return
	timeout $((60 * PATIENCE)) dd if="$1" bs="${size}k" count="$count" iflag=direct status=none |
		cmp - "$TMP/data" || fail "read something else" || return
	# Not from this end's cache, which knows nothing of what the target writes.
	dd if=/dev/ram0 bs="${size}k" count="$count" iflag=direct status=none |
		cmp - "$TMP/data" || fail "it is not in the target"
}

# The device goes once all that is stored there has been answered or given up.
UNPLUG_SECONDS=100

# plug: it comes back.
plug() {
	[ "$DEVICE_TYPE" != softib ] || {
		softib_a_again
		return
	}
	rdma link add "$DEVICE" type "$DEVICE_TYPE" netdev "$NETDEV" || return
	[ "$DEVICE_TYPE" != rxe ] ||
		wait_for 10 grep -q ffff "/sys/class/infiniband/$DEVICE/ports/1/gids/1" || fail "no address"
}

# made_for_it_goes: what was made for this suite.
made_for_it_goes() {
	case $DEVICE_TYPE in
	siw) check "siw0 goes" no_siw0 ;;
	softib) check "the ports go" softib_down ;;
	esac
}
