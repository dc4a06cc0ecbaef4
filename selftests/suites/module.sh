#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Loading and unloading of the module.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/reader.sh
. "$SELFTESTS/lib/reader.sh"

ko=/run/guest/package/updates/rust_rdma_cm.ko

refused_while_open() {
	local status
	exec 7<>/dev/infiniband/rdma_cm
	rmmod "$CM_MODULE"
	status=$?
	exec 7>&-
	[ "$status" -ne 0 ] || fail "unloaded below an open file" || return
	[ -d "/sys/module/$CM_MODULE" ] || fail "it is gone"
}
check "rmmod is refused while the device is open" refused_while_open

refused_while_connected() {
	local server client status
	$PEER rping -s -a "$B4" >/dev/null 2>&1 &
	server=$!
	await_listener "comm rping" || return
	rping -c -a "$B4" >/dev/null 2>&1 &
	client=$!
	wait_for 10 cm_id_in CONNECT "comm rping" || fail "no connection" || return
	rmmod "$CM_MODULE"
	status=$?
	kill -9 "$server" "$client"
	nothing_left || return
	[ "$status" -ne 0 ] || fail "unloaded below a connection"
}
check "rmmod is refused while connected" refused_while_connected

# The largest size of each object of which a connection has one at each end, or at one (the port), in bytes.
small_objects() {
	local name most size
	while read -r name most; do
		size=$(<"/sys/kernel/slab/$name/object_size")
		[ "$size" -le "$most" ] || fail "$name: $size bytes" || return
	done <<-'END'
		rdma_cm_endpoint 1256
		rdma_cm_connection 256
		rdma_cm_port 160
		rdma_ucm_place 248
		rdma_ucm_slots 128
	END
}
if [ ! -e /sys/kernel/slab/rdma_cm_endpoint ]; then
	skip "the objects of a connection are small" "they have no slab caches of their own"
elif [ -e /proc/lockdep_stats ]; then
	skip "the objects of a connection are small" "locks are larger where lockdep watches them"
else
	check "the objects of a connection are small" small_objects
fi

cycles() {
	local i
	for i in $(seq 10); do
		cm-use none || return
		[ ! -e /dev/infiniband/rdma_cm ] || fail "the device node is left" || return
		[ ! -e /proc/sys/net/rdma_ucm ] || fail "the sysctl is left" || return
		[ ! -e /sys/class/infiniband/rxe0/ports/1/cm_tx_msgs ] ||
			fail "the counters are left" || return
		cm-use "$CM" || return
		[ -c /dev/infiniband/rdma_cm ] || fail "no device node" || return
	done
}
check "unload and load, ten times" cycles

use_then_unload() {
	local server
	$PEER rping -s -a "$B4" -C 3 &
	server=$!
	await_listener "comm rping" || return
	timeout $((30 * PATIENCE)) rping -c -a "$B4" -C 3 || return
	ends_within 10 "$server" || return
	# At once: connections are still in timewait.
	cm-use none || return
	cm-use "$CM"
}
check "unload right after a connection" use_then_unload

# A client that is gone before its request is to be sent again, after 4 s.
timer_then_unload() {
	local client status=0
	early_retry 0 && ip neigh replace 10.0.0.97 lladdr 02:00:00:00:00:97 dev v0 nud permanent || return
	rping -c -a 10.0.0.97 >/dev/null 2>&1 & client=$!
	wait_for 5 cm_id_in CONNECT "comm rping" || status=1
	kill -9 "$client"
	cm-use none || return
	sleep 5
	cm-use "$CM" || return
	ip neigh del 10.0.0.97 dev v0
	[ "$status" -eq 0 ] || fail "no request"
}
check "unload while a request waits to be sent again" timer_then_unload

# A client whose neighbour is asked, and that ends as soon as it has the answer: nobody listens there.
query_then_unload() {
	ip neigh flush dev v0
	! timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7999 || fail "somebody listens" || return
	cm-use none || return
	sleep 3
	cm-use "$CM"
}
check "unload while an address query ends" query_then_unload

# asking COMMAND: a client, and that command while it waits for a neighbour that does not answer.
asking() {
	local client status=0
	rping -c -a 10.0.0.97 >/dev/null 2>&1 & client=$!
	wait_for 5 eval 'ip neigh show 10.0.0.97 dev v0 | grep -q INCOMPLETE' || { fail "nobody is asked"; status=1; }
	pause 0.3
	"$@" || status=1
	wait "$client"
	cm-use none || return
	sleep 3
	cm-use "$CM" || return
	ip neigh del 10.0.0.97 dev v0
	return "$status"
}

neighbour_answers() {
	ip neigh replace 10.0.0.97 lladdr 02:00:00:00:00:97 dev v0 nud permanent
}
check "unload while an address is told" asking eval 'neighbour_answers; pause 0.3; kill -9 "$client"'
# The client, whose end waits for the query, is not there any more when the answer has been seen to.
check "unload while a query is forgotten" asking eval 'kill -9 "$client"; pause 1; neighbour_answers'

counters() {
	local group message
	for group in cm_tx_msgs cm_tx_retries cm_rx_msgs cm_rx_duplicates; do
		for message in req mra rej rep rtu dreq drep sidr_req sidr_rep lap apr; do
			grep -Eqx '[0-9]+' "/sys/class/infiniband/rxe0/ports/1/$group/$message" ||
				fail "no counter $group/$message" || return
		done
	done
}
check "counters of messages" counters

port_capability() {
	# Bit 16: this port has a connection manager.
	local bits
	bits=$(cat /sys/class/infiniband/rxe0/ports/1/cap_mask) || return
	[ $((bits & 0x10000)) -ne 0 ] || fail "capabilities $bits" || return
	cm-use none || return
	bits=$(cat /sys/class/infiniband/rxe0/ports/1/cap_mask)
	cm-use "$CM" || return
	[ $((bits & 0x10000)) -eq 0 ] || fail "capabilities $bits after unloading"
}
check "capability bit of the port" port_capability

# Beside the C modules the kernel itself finds what both export.
beside_c() {
	local loaded=$CM lines mark
	cm-use c || return
	mark=$(dmesg | wc -l)
	insmod "$ko" 2>"$TMP/insmod"
	if [ $? -eq 0 ]; then
		rmmod rust_rdma_cm
		cm-use "$loaded"
		fail "loaded beside the C modules"
		return
	fi
	lines=$(dmesg | tail -n +$((mark + 1)) | grep -v 'module verification failed\|loading out-of-tree')
	cm-use "$loaded" || return
	cat "$TMP/insmod"
	echo "$lines"
	grep -qi "invalid module format" "$TMP/insmod" || fail "not ENOEXEC" || return
	[ "$(echo "$lines" | grep -c .)" -eq 1 ] || fail "want one line in the log" || return
	echo "$lines" | grep -Eq "owned by (rdma|ib)_cm" || fail "it does not name the module"
}
# Only one of the C modules, which is enough to be in the way.
beside_ib_cm() {
	local loaded=$CM mark lines
	cm-use none || return
	rm -f /etc/modprobe.d/cm-use.conf
	modprobe ib_cm || return
	mark=$(dmesg | wc -l)
	if insmod "$ko" 2>"$TMP/insmod"; then
		rmmod rust_rdma_cm
		fail "loaded beside ib_cm"
		return
	fi
	lines=$(dmesg | tail -n +$((mark + 1)) | grep -v 'module verification failed\|loading out-of-tree')
	rmmod ib_cm
	cm-use "$loaded" || return
	grep -qi "invalid module format" "$TMP/insmod" ||
		fail "not ENOEXEC: $(cat "$TMP/insmod")" || return
	[ "$(echo "$lines" | grep -c "owned by ib_cm")" -eq 1 ] ||
		fail "want one line in the log: $lines"
}
if [ -e "$ko" ]; then
	check "refused beside the C modules" beside_c
	check "refused beside ib_cm alone" beside_ib_cm
else
	skip "refused beside the C modules" "no rust_rdma_cm.ko"
	skip "refused beside ib_cm alone" "no rust_rdma_cm.ko"
fi

device_after_load() {
	# Devices that were there before the module and such that come later.
	rdma link del rxe0 && cm-use none && cm-use "$CM" &&
		rdma link add rxe0 type rxe netdev v0 || return
	local server
	rping -s -a "$A4" -C 2 & server=$!
	await_listener "comm rping" || return
	$PEER timeout $((30 * PATIENCE)) rping -c -a "$A4" -C 2 || return
	ends_within 10 "$server"
}
check "a device that comes after the module" device_after_load

# core [FILE]: ib_core of this file, or the kernel's, in the place of the one that is loaded, with the devices.
core() {
	if [ -d /sys/module/rdma_rxe ]; then
		rdma link del rxe0
		$PEER rdma link del rxe1
	fi
	cm-use none && modprobe -r rdma_rxe ib_uverbs || return
	[ ! -d /sys/module/ib_core ] || modprobe -r iw_cm || rmmod ib_core || return
	[ ! -d /sys/module/ib_core ] || fail "ib_core is in use: $(cat /sys/module/ib_core/refcnt)" || return
	if [ $# -gt 0 ]; then
		# The modules that it needs, then itself.
		modprobe -D ib_core | sed '$d' | sh
		insmod "$1" || return
	fi
	modprobe -a iw_cm ib_uverbs rdma_rxe && rdma link add rxe0 type rxe netdev v0 &&
		$PEER rdma link add rxe1 type rxe netdev v1 &&
		wait_for 5 grep -q ffff /sys/class/infiniband/rxe0/ports/1/gids/1
}

# An ib_core that says of one member that it is elsewhere, as one from another vendor may have it.
other_core() {
	local status=0 mark lines
	move-member rdma_id_private qp_num 4 "$(modinfo -n ib_core)" "$TMP/ib_core.ko" && core "$TMP/ib_core.ko" || return
	mark=$(dmesg | wc -l)
	insmod "$ko" 2>"$TMP/insmod" && { fail "it is loaded" || status=1; }
	lines=$(dmesg | tail -n +$((mark + 1)) | grep -v 'module verification failed\|loading out-of-tree')
	cat "$TMP/insmod"
	echo "$lines"
	grep -qi "invalid module format" "$TMP/insmod" || fail "not ENOEXEC" || status=1
	[ "$(echo "$lines" | grep -c .)" -eq 1 ] || fail "want one line in the log" || status=1
	[[ $lines == *"the offset of qp_num"*"rdma_id_private"* ]] || fail "it does not name the member" || status=1
	at a "dmesg | tail -n 1"
	VARIES='s/is [0-9]+, not [0-9]+/is N, not N/'
	# The kernel's own connection manager serves.
	cm-use c && pings || status=1
	core && return "$status"
}

pings() {
	local server
	rping -s -a "$A4" -C 2 &
	server=$!
	await_listener "comm rping" && $PEER timeout $((30 * PATIENCE)) rping -c -a "$A4" -C 2 && ends_within 10 "$server"
}

own_core() {
	core && cm-use "$CM" && pings
}
if [ -e "$ko" ] && [ -e /sys/kernel/btf/ib_core ]; then
	check "refused beside another ib_core, with which C's modules serve" reproduce other-ib-core other_core
	printed other-ib-core
	check "loaded beside the kernel's own ib_core" own_core
else
	skip "refused beside another ib_core, with which C's modules serve" "no rust_rdma_cm.ko, or no BTF"
	skip "loaded beside the kernel's own ib_core" "no rust_rdma_cm.ko, or no BTF"
fi
finish
