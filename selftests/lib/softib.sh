# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two ports with an InfiniBand link layer, for the suites that need them. To be sourced after
# lib.sh. ib_a, here, has LID 1, at which sa.py answers; ib_b, over an interface in the namespace
# "peer", has LID 2. With IPoIB: I4 and I6 here, J4 and J6 in the namespace.

# With OVER=opa, or with this in the environment of any suite, the ports are those of Omni-Path, whose LIDs have this
# upper half.
: "${SOFTIB_OPA:=}"
[ "${OVER:-}" != opa ] || SOFTIB_OPA=1

# With this each port has several LIDs, this power of two: the first of ib_a is 2, where it is 1.
: "${SOFTIB_LMC:=}"

# shellcheck disable=SC2034
I4=10.78.0.1 I6=fd78::1		# of ib_a, here
# shellcheck disable=SC2034
J4=10.78.0.2 J6=fd78::2		# of ib_b, in the namespace "peer"
SA_CONTROL=/run/sa.control	# what is to become of requests to the subnet administrator (sa.py)
SA_LOG=/run/sa.log		# those that came

has_softib() {
	[ -e softib.ko ]
}

# gid_of DEVICE: as the kernel writes it, in full.
gid_of() {
	cat "/sys/class/infiniband/$1/ports/1/gids/0"
}

# gid_address DEVICE: as librdmacm's programs take it.
gid_address() {
	python3 -c 'import ipaddress, sys; print(ipaddress.ip_address(sys.argv[1]))' "$(gid_of "$1")"
}

# ipoib_of DEVICE [PREFIX]: the name of its IPoIB interface.
ipoib_of() {
	local gid
	gid=$(gid_of "$1" 2>/dev/null | tr -d : | sed 's/../:&/g') || return
	[ "$gid" ] || return
	# shellcheck disable=SC2086
	${2-} ip -o link show | awk -v gid="$gid" \
		'index($0, gid " brd") { sub("[:@].*", "", $2); print $2; found = 1 } END { exit !found }'
}

# softib_ipoib DEVICE ADDRESS4 ADDRESS6 [NAMESPACE]: its interface comes, and gets these.
softib_ipoib() {
	local device=$1 v4=$2 v6=$3 namespace=${4-} name
	wait_for 20 ipoib_of "$device" || fail "$device has no IPoIB interface" || return
	name=$(ipoib_of "$device")
	[ -z "$namespace" ] || ip link set "$name" netns "$namespace" || return
	set -- ip ${namespace:+-n "$namespace"}
	"$@" addr add "$v4/24" dev "$name" && "$@" addr add "$v6/64" dev "$name" nodad &&
		"$@" link set "$name" up
}

# lid_again ADDRESS INTERFACE [COMMAND...]: the port above an interface is told its LID once more, as it would be by a
# subnet manager. The kernel asks for the class port info only then, and for no path over Omni-Path before.
lid_again() {
	[ -z "$SOFTIB_OPA" ] || { "${@:3}" ip addr del "$1/16" dev "$2" && "${@:3}" ip addr add "$1/16" dev "$2"; }
}

# softib_b: the device in the namespace, with IPoIB.
softib_b() {
	# shellcheck disable=SC2086
	$PEER rdma link add ib_b type softib netdev m1 && lid_again 10.77.0.2 m1 $PEER &&
		softib_ipoib ib_b "$J4" "$J6" peer || return
	# Others have an address of a device that was there before, with another queue pair.
	ip neigh flush dev "$(ipoib_of ib_a)"
}

# softib_c: m2, for a third device that is here and that nobody makes (LID 3).
softib_c() {
	ip -n peer link add link m1 name m2 address 52:54:00:72:6d:03 netns 1 type macvlan mode bridge &&
		echo 1 >/proc/sys/net/ipv4/conf/m0/accept_local &&
		echo 1 >/proc/sys/net/ipv4/conf/m2/accept_local &&
		ip addr add 10.77.0.3/16 dev m2 noprefixroute && ip link set m2 up &&
		ip route add 10.77.0.0/16 dev m2 metric 5000
}

# softib_a: the device here, with the subnet administrator, and IPoIB where that is loaded. Options are those
# of sa.py.
softib_a() {
	rdma link add ib_a type softib netdev m0 && start_sa "$@" && lid_again 10.77.0.1 m0 || return
	[ ! -d /sys/module/ib_ipoib ] || softib_ipoib ib_a "$I4" "$I6"
}

# softib_a_again: after that has gone. The other port learns of it as it would from a subnet manager.
softib_a_again() {
	stop_sa
	softib_a "$@" || return
	# Without a LID for a moment. Not the interface: with it the other one would be down, on which soft-RoCE's
	# datagram queue pairs fail for good when they send.
	ip -n peer addr del 10.77.0.2/16 dev m1 && ip -n peer addr add 10.77.0.2/16 dev m1 || return
	softib_pings || {
		cat "$SA_LOG"
		ip addr
		$PEER ip addr
		fail "no ping"
	}
}

# ipoib_mode connected|datagram: of both interfaces.
ipoib_mode() {
	local name
	name=$(ipoib_of ib_a)
	echo "$1" >"/sys/class/net/$name/mode" || return
	name=$(ipoib_of ib_b "$PEER")
	$PEER sh -c "mount -t sysfs sysfs /sys && echo $1 >/sys/class/net/$name/mode"
}

softib_pings() {
	wait_for 40 ping -c 1 -W 1 "$J4" && wait_for 40 ping -c 1 -W 1 "$J6"
}

# start_sa [OPTION...]: of sa.py.
start_sa() {
	: >"$SA_CONTROL"
	: >"$SA_LOG"
	setsid "$SELFTESTS/lib/sa.py" --control "$SA_CONTROL" --log "$SA_LOG" "$@" ib_a \
		>/run/sa.out 2>&1 </dev/null &
	echo $! >/run/sa.pid
	disown
	wait_for 60 grep -q ready /run/sa.out || { cat /run/sa.out && fail "sa.py is not ready"; }
}

stop_sa() {
	[ ! -e /run/sa.pid ] || kill "$(</run/sa.pid)" 2>/dev/null
	rm -f /run/sa.pid
}

# sa KIND ACTION: from now on (sa.py); "sa" alone: everything is answered.
sa() {
	if [ $# -gt 0 ]; then
		echo "$*" >"$SA_CONTROL"
	else
		: >"$SA_CONTROL"
	fi
}

# softib_up [OPTION...]: of sa.py.
softib_up() {
	modprobe ib_umad || return
	[ -d /sys/module/softib ] || insmod softib.ko ${SOFTIB_OPA:+"opa=$SOFTIB_OPA"} \
		${SOFTIB_LMC:+"lmc=$SOFTIB_LMC"} || return
	ip link add m0 address 52:54:00:72:6d:01 mtu 9000 type veth \
		peer name m1 address 52:54:00:72:6d:02 mtu 9000 netns peer &&
		ip addr add 10.77.0.1/16 dev m0 && ip link set m0 up &&
		ip -n peer addr add 10.77.0.2/16 dev m1 && ip -n peer link set m1 up || return
	softib_a "$@" && modprobe ib_ipoib || return
	softib_ipoib ib_a "$I4" "$I6" && softib_b || return
	softib_pings || {
		cat "$SA_LOG"
		ip addr
		$PEER ip addr
		fail "no ping"
	}
}

softib_down() {
	local device before
	# It frees all pages that its interfaces receive into, with the lock of all network interfaces. On a kernel with all the
	# checks that takes longer than the 10 s after which those who wait for the lock count as hung there.
	before=$(</proc/sys/kernel/hung_task_timeout_secs)
	[ "$PATIENCE" -eq 1 ] || hung_after 60
	rmmod ib_ipoib || return
	hung_after "$before"
	# With lockdep each queue pair's socket holds the driver, the one for a device's management messages, too.
	# They go while there is somebody to answer: who leaves a group waits for that, or for 12 s.
	if [ -e /proc/lockdep_stats ]; then
		$PEER rdma link del ib_b || return
		for device in ib_c ib_a; do
			! rdma link show "$device/1" >/dev/null 2>&1 || rdma link del "$device" || return
		done
	fi
	stop_sa
	# A program that was just told to end may still have a device open.
	wait_for 10 rmmod softib || fail "$(lsmod | grep softib)" || return
	ip link del m0
}
