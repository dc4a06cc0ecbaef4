# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two hosts in one kernel, and a cable between them that can be pulled out: for consumers in the
# kernel, who all live in the first namespace. Each host is an interface, h0 and t0, with a soft-RoCE
# device on it, rxeh and rxet. A bridge in a namespace of its own joins them, and the addresses are
# looked for beyond the interface, not in this kernel. To be sourced.

HOST_ADDRESS=10.91.0.1 TARGET_ADDRESS=10.91.0.2

# lay_cable: makes it all.
lay_cable() {
	local interface
	ip netns add switch || return
	ip link add h0 type veth peer name h1 netns switch &&
		ip link add t0 type veth peer name t1 netns switch || return
	ip -n switch -batch - <<-EOF || return
		link add br0 type bridge
		link set h1 master br0 up
		link set t1 master br0 up
		link set br0 up
	EOF
	for interface in h0 t0; do
		# Each is asked only for its own address, by somebody who has the address of the other.
		sysctl -q "net.ipv4.conf.$interface.accept_local=1" "net.ipv4.conf.$interface.arp_ignore=1" || return
	done
	# Incoming packets are for this kernel; what goes out is not.
	ip -batch - <<-EOF || return
		addr add $HOST_ADDRESS/24 dev h0
		addr add $TARGET_ADDRESS/24 dev t0
		link set h0 up
		link set t0 up
		rule add pref 1 iif h0 lookup local
		rule add pref 2 iif t0 lookup local
		rule add pref 3 to $HOST_ADDRESS/30 lookup 100
		rule add pref 4 lookup local
		rule del pref 0
		route add $TARGET_ADDRESS dev h0 src $HOST_ADDRESS table 100
		route add $HOST_ADDRESS dev t0 src $TARGET_ADDRESS table 100
	EOF
	rdma link add rxeh type rxe netdev h0 && rdma link add rxet type rxe netdev t0
}

# cable off|on: of the host.
cable() {
	local carrier=0 state=down
	[ "$1" = off ] || carrier=1 state=up
	ip -n switch link set h1 "$state" || return
	wait_for 20 eval "[ \"\$(</sys/class/net/h0/carrier)\" = $carrier ]"
}

# remove_cable: and all that came with it.
remove_cable() {
	ip link del h0 && ip link del t0 && ip netns del switch || return
	ip -batch - <<-EOF
		rule add pref 0 lookup local
		rule del pref 1
		rule del pref 2
		rule del pref 3
		rule del pref 4
	EOF
}
