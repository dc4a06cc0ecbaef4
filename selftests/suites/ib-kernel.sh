#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Parts of the kernel that speak of messages (ib_cm) over ports with an InfiniBand link layer: IPoIB in
# connected mode, and ib_srp, which logs in to ib_srpt by GID, service and a path that it asks the subnet
# administrator for.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
OVER=ib . "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/lio.sh
. "$SELFTESTS/targets/lio.sh"
# shellcheck source=selftests/targets/srpt.sh
. "$SELFTESTS/targets/srpt.sh"

# counted GROUP MESSAGE: of both ports.
counted() {
	local device sum=0
	for device in ib_a ib_b; do
		sum=$((sum + $(<"/sys/class/infiniband/$device/ports/1/$1/$2")))
	done
	echo "$sum"
}

# IPoIB

# Both interfaces are in this mode, and packets of several pages pass.
connected() {
	local before
	before=$(counted cm_rx_msgs rtu)
	ipoib_mode connected || return
	$PEER ip link set "$(ipoib_of ib_b "$PEER")" mtu 65520 && ip link set "$(ipoib_of ib_a)" mtu 65520 || return
	softib_pings || fail "no ping" || return
	wait_for 20 ping -c 1 -W 2 -s 40000 "$J4" || fail "no large ping" || return
	ping -c 5 -i 0.2 -W 2 -s 60000 "$J4" && ping -c 5 -i 0.2 -W 2 -s 60000 "$J6" || return
	[ "$(counted cm_rx_msgs rtu)" -ge $((before + 2)) ] || fail "$(counted cm_rx_msgs rtu) RTUs, before $before"
}
check "IPoIB: connected mode, large packets" connected

# data SERVER-PREFIX CLIENT-PREFIX ADDRESS: 16 MB through a socket.
data() {
	local server
	head -c 16M /dev/urandom >"$TMP/sent"
	$1 timeout $((60 * PATIENCE)) python3 -c '
import socket, sys
with socket.create_server((sys.argv[1], 7777), family=socket.AF_INET) as s:
    s.settimeout(50)
    c = s.accept()[0]
    with open(sys.argv[2], "wb") as file:
        while part := c.recv(1 << 20):
            file.write(part)' "$3" "$TMP/received" & server=$!
	wait_for 10 $1 sh -c "ss -Hltn sport = :7777 | grep -q ." || fail "nobody listens" || return
	$2 timeout $((60 * PATIENCE)) python3 -c '
import socket, sys
with socket.create_connection((sys.argv[1], 7777)) as c, open(sys.argv[2], "rb") as file:
    c.sendfile(file)' "$3" "$TMP/sent" || return
	ends_within 60 "$server" || return
	cmp "$TMP/sent" "$TMP/received"
}
check "IPoIB: 16 MB through a socket" data "" "$PEER" "$I4"
check "IPoIB: 16 MB the other way" data "$PEER" "" "$J4"
check "IPoIB: a connection of a program besides" exchange "$PEER" "" "$J4" "$J4"

# bounced DEVICE IPV6-ADDRESS [PREFIX]: the interface takes its connections of both directions with it, and
# makes new ones.
bounced() {
	local before name prefix=${3-}
	before=$(counted cm_tx_msgs req)
	name=$(ipoib_of "$1" "$prefix") || return
	$prefix ip link set "$name" down || return
	$prefix ip link set "$name" up && $prefix ip addr add "$2/64" dev "$name" nodad || return
	wait_for 60 ping -c 1 -W 2 -s 40000 "$J4" || fail "no large ping" || return
	[ "$(counted cm_tx_msgs req)" -gt "$before" ] || fail "no new connection"
}
check "IPoIB: the interface goes down and up" bounced ib_a "$I6"
check "IPoIB: the other interface goes down and up" bounced ib_b "$J6" "$PEER"

datagrams() {
	ipoib_mode datagram || return
	softib_pings || fail "no ping" || return
	ping -c 3 -i 0.2 -W 2 -s 1500 "$J4"
}
check "IPoIB: back to datagrams" datagrams

# One of the two alone: it accepts, and does not ask.
check "IPoIB: one end connected, one not" eval 'ipoib_mode connected &&
	$PEER sh -c "mount -t sysfs sysfs /sys && echo datagram >/sys/class/net/$(ipoib_of ib_b "$PEER")/mode" &&
	softib_pings && ping -c 3 -i 0.2 -W 2 -s 1500 "$J4"'

# The device goes with connections of its interface.
unplugged_b() {
	ipoib_mode connected && softib_pings || fail "no ping" || return
	ping -c 2 -i 0.2 -W 2 -s 1500 "$J4" || return
	timeout $((60 * PATIENCE)) $PEER rdma link del ib_b || fail "rdma link del: $?" || return
	softib_b && softib_pings || fail "no ping afterwards" || return
	ipoib_mode datagram && softib_pings
}
check "IPoIB: the device goes and comes back" unplugged_b

# SRP

# raw_gid DEVICE: as ib_srp takes it. guid_of DEVICE: of its port.
raw_gid() {
	gid_of "$1" | tr -d :
}
guid_of() {
	local gid
	gid=$(gid_of "$1")
	echo "${gid#*:*:*:*:}"
}

load() {
	lio_disk 32 && modprobe -a ib_srpt ib_srp
}
if modinfo ib_srp ib_srpt target_core_mod >/dev/null 2>&1; then
	check "SRP: the modules load" load || finish
	check "SRP: a target at the other port" srpt_target ib_b "$(guid_of ib_a)" || finish
else
	skip "SRP" "the kernel has no ib_srp"
	made_for_it_goes
	finish
fi

# native [SERVICE]: logs in to the other port, without rdma_cm.
native() {
	local guid
	guid=$(srpt_guid)
	timeout $((120 * PATIENCE)) sh -c "echo id_ext=$guid,ioc_guid=$guid,dgid=$(raw_gid ib_b),pkey=ffff,service_id=${1:-$guid},queue_size=32,max_cmd_per_lun=32 \
		>/sys/class/infiniband_srp/srp-ib_a-1/add_target"
}

logged_in() {
	local before
	before=$(counted cm_rx_msgs rep)
	native || fail "no login" || return
	wait_for 60 has_disk || fail "no disk" || return
	! cm_id_in CONNECT || fail "$(cm_ids)" || return
	[ "$(counted cm_rx_msgs rep)" -gt "$before" ] || fail "no REP"
	grep -q "path get.* $(gid_address ib_b): " "$SA_LOG" || { cat "$SA_LOG"; fail "the path was not asked for"; }
}
check "SRP: an initiator logs in by GID and service" logged_in || finish

written() {
	lio_verify "$(lio_disks)" 8
}
check "SRP: what is written is read" written

refused() {
	! native || fail "logged in twice" || return
	! native 00000000deadbeef || fail "logged in to nobody" || return
	sa path refuse
	! native 00000000deadbeee || fail "logged in without a path" || return
	sa
}
check "SRP: twice, to nobody, without a path" refused
sa

reconnected() {
	srpt_switch 0 && srpt_switch 1 && srp_is_back
}
check "SRP: the target is switched off and on" reconnected

# Longer than the queue pairs try again.
cable() {
	$PEER ip link set m1 down || return
	lio_verify "$(lio_disks)" 1 & sleep 3
	$PEER ip link set m1 up || return
	softib_pings || fail "no ping" || return
	wait_for 100 grep -q running /sys/class/srp_remote_ports/port-*/state || fail "not back" || return
	ends_within 120 $! || fail "what was written is not read: $?" || return
	lio_verify "$(lio_disks)" 1
}
check "SRP: the cable of the target is pulled out for a while" cable
check "SRP: the initiator logs out" srp_logout

initiator_goes() {
	wait_for 20 native || fail "no login" || return
	wait_for 60 has_disk || fail "no disk" || return
	timeout $((100 * PATIENCE)) rdma link del ib_a || fail "rdma link del: $?" || return
	wait_for 40 eval '! has_disk' || fail "the disk is still there" || return
	softib_a_again
}
check "SRP: the initiator's device goes and comes back" initiator_goes

# The target's port goes with its device. The initiator gives up when it is told to; not before its timer
# has fired, or the one finds freed what the other has.
target_goes() {
	wait_for 20 native || fail "no login" || return
	wait_for 60 has_disk || fail "no disk" || return
	timeout $((100 * PATIENCE)) $PEER rdma link del ib_b || fail "rdma link del: $?" || return
	wait_for 100 grep -q fail-fast /sys/class/srp_remote_ports/port-*/state || fail "not noticed" || return
	softib_b && softib_pings || fail "no ping" || return
	srp_logout
}
check "SRP: the target's device goes and comes back" target_goes

unload() {
	srpt_remove || return
	unloaded ib_srp ib_srpt || return
	lio_end
}
check "SRP: the modules unload" unload
made_for_it_goes
finish
