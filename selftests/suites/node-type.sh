#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The effects of rdma_restrict_node_type(): identifiers of the kernel that are confined to one kind
# of device, or to none, on the wildcard and on an address, where the devices are there before and
# where they come later. Seen from outside: the devices at which "rdma resource" shows them, who is
# refused by the listener and who by nobody, and who gets the TCP port.
# Needs cmid.ko (consumer/) in the current directory, and siw.
#
# shellcheck disable=SC2317,SC2329 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

PORT=7480
ANY=7 IB_CA=1 RNIC=4	# RDMA_NODE_UNSPECIFIED and others (rdma_netlink.h)

if [ ! -e cmid.ko ] || ! has_siw; then
	skip "kinds of devices" "there is no cmid.ko, or no siw (consumer/, tools/siw)"
	finish
fi

# resident TYPE ADDRESS [PARAMETER...]: an identifier that stays.
resident() {
	insmod cmid.ko resident="$PORT" node_type="$1" ipv4="$2" "${@:3}"
}

gone() {
	rmmod cmid && wait_for 10 no_cm_ids
}

# case_of NAME FUNCTION...: that, and then the devices are there again and no identifier is.
case_of() {
	local device
	check "$@"
	for device in cmid ibcm; do
		[ ! -d "/sys/module/$device" ] || rmmod "$device"
	done
	has_device rxe0 || rxe0_comes
	if [ -d /sys/class/net/w0 ]; then
		has_device siw0 || siw0_comes
	else
		has_device siwv || siw_comes
	fi
}

has_device() {
	[ -d "/sys/class/infiniband/$1" ]
}

# fails_with TEXT TYPE ADDRESS: there is none, for that reason, and nothing is left of it.
fails_with() {
	local said
	said=$(resident "$2" "$3" 2>&1) && { gone; fail "it is there"; return; }
	[[ $said == *"$1"* ]] || fail "$said" || return
	no_cm_ids || fail "an id is left" || return
	tcp_is_free || fail "the TCP port is taken"
}

# shown STATE: the devices where an identifier is shown, in the order of their names.
shown() {
	cm_ids | sed -n "s,^link \([a-z0-9]*\)/.*state $1 .*:$PORT\b.*,\1,p" | sort | xargs
}

is_shown() {
	[ "$(shown "$1")" = "$2" ]
}

# Returns true if a TCP server can have the port. (Not for a wildcard beside one that is told to be
# shared.)
tcp_is_free() {
	python3 -c "
import socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('0.0.0.0', $PORT))
s.listen(1)"
} 2>/dev/null

# Prints the events of a client of ADDRESS: by whom it is refused.
says() {
	timeout $((20 * PATIENCE)) "${@:2}" rping -c -a "$1" -p "$PORT" -C 1 2>&1 |
		sed -n 's/.*EVENT_REJECTED, error \(-*[0-9]*\).*/\1/p; s/.*onnection refused.*/refused/p' | head -n 1
}

# hears "DEVICE...": those have the listener, and no others.
hears() {
	local devices=$1 roce=8 iwarp=refused
	[[ $devices != *rxe0* ]] || roce=28	# it listens, and refuses
	[[ $devices != *siw0* ]] || iwarp=-104
	wait_for 10 is_shown LISTEN "$devices" ||
		fail "shown at '$(shown LISTEN)', not '$devices'" || return
	if has_device rxe0; then
		is "over RoCE" "$roce" "$(says "$A4" ip netns exec peer)" || return
	fi
	if has_device siw0; then
		is "over iWARP" "$iwarp" "$(says "$C4" env)" || return
	fi
	if [[ $devices == *siw* ]]; then
		! tcp_is_free || fail "TCP has the port, too"
	else
		tcp_is_free || fail "the TCP port is taken"
	fi
}

is() {
	[ "$2" = "$3" ] || fail "$1: '$3', not '$2'"
}

rxe0_comes() {
	rdma link add rxe0 type rxe netdev v0
}

rxe0_goes() {
	rdma link del rxe0
}

siw0_comes() {
	rdma link add siw0 type siw netdev w0
}

# Returns true if a TCP server is there.
has_server() {
	[ -n "$(ss -Hltn "sport = :$PORT")" ]
}

# wildcard TYPE DEVICES: with the devices there.
wildcard() {
	resident "$1" 0.0.0.0 && hears "$2" && gone
}

# The devices come when it listens.
wildcard_before() {
	rxe0_goes && rdma link del siw0 || return
	resident "$1" 0.0.0.0 || return
	# The client of the RoCE device has somebody to ask when that is there.
	rxe0_comes && siw0_comes && hears "$2" && gone
}

check "siw0" siw0
name_of=([ANY]=any [IB_CA]=IB_CA [RNIC]=RNIC)
# There is rxe1, too, in another namespace.
heard=([ANY]="rxe0 rxe1 siw0" [IB_CA]="rxe0 rxe1" [RNIC]=siw0)
for type in $ANY $IB_CA $RNIC; do
	name="${name_of[type]}, wildcard"
	case_of "$name: devices that are there" wildcard "$type" "${heard[type]}"
	case_of "$name: devices that come" wildcard_before "$type" "${heard[type]}"
done

# A TCP server that nobody of iWARP is in the way of.
beside_tcp() {
	python3 -c "
import socket, time
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind(('0.0.0.0', $PORT))
s.listen(5)
time.sleep(100)" &
	wait_for 10 has_server || fail "no TCP server" || return
	resident "$IB_CA" 0.0.0.0 || return
	is "at" "rxe0 rxe1" "$(shown LISTEN)" && gone || return
	for type in $ANY $RNIC; do
		! resident "$type" 0.0.0.0 2>"$TMP/said" || { gone; fail "$type: it listens"; return; }
		grep -q "Address already in use" "$TMP/said" || { cat "$TMP/said"; return 1; }
		no_cm_ids || fail "an id is left" || return
	done
}
case_of "wildcard beside a TCP server" beside_tcp

# Somebody has the service of the port at the RoCE device, by the InfiniBand CM.
beside_service() {
	local service=$((0x1060000 + PORT)) type
	insmod ibcm.ko service="$service" || return
	for type in $ANY $IB_CA; do
		! resident "$type" 0.0.0.0 2>"$TMP/said" || { gone; fail "$type: it listens"; return; }
		grep -q "Invalid parameters" "$TMP/said" || { cat "$TMP/said"; return 1; }
	done
	resident "$RNIC" 0.0.0.0 && hears_only_iwarp && gone && rmmod ibcm || return
	# The other way round.
	resident "$RNIC" 0.0.0.0 && insmod ibcm.ko service="$service" && hears_only_iwarp &&
		rmmod ibcm && gone || return
	resident "$IB_CA" 0.0.0.0 || return
	! insmod ibcm.ko service="$service" 2>"$TMP/said" || fail "both listen" || return
	grep -q "Device or resource busy" "$TMP/said" || { cat "$TMP/said"; return 1; }
	gone
}

# Over RoCE a client meets the one who has the service.
hears_only_iwarp() {
	is "at" siw0 "$(shown LISTEN)" && is "over iWARP" -104 "$(says "$C4" env)"
}
if [ -e ibcm.ko ]; then
	case_of "wildcard beside a service" beside_service
else
	skip "wildcard beside a service" "there is no ibcm.ko"
fi
check "siw0 goes" no_siw0

# From here on both kinds are over one interface, and have one address.
siw_comes() {
	load_siw && rdma link add siwv type siw netdev v0
}

siw_goes() {
	rdma link del siwv
}

# address TYPE DEVICE: at the one of the two that is of the type.
address() {
	resident "$1" "$A4" && hears "$2" && gone
}

# resolution TYPE DEVICE: the way to one's own address leads through the one of the type.
resolution() {
	resident "$1" "$A4" resolves=1 || return
	wait_for 10 is_shown ADDR_RESOLVED "$2" || { cm_ids; gone; fail "not at $2"; return; }
	gone
}

# resolution_fails TYPE: and there is no such one.
resolution_fails() {
	resident "$1" "$A4" resolves=1 || return
	sleep 1
	is_shown ADDR_RESOLVED "" || { cm_ids; gone; fail "there is a way"; return; }
	gone
}

# None of the kind is there at first; the other that comes changes nothing.
address_before() {
	case $1 in
	"$IB_CA") rxe0_goes ;;
	"$RNIC") siw_goes ;;
	esac || return
	fails_with "No such device" "$1" "$A4" && resolution_fails "$1" || return
	case $1 in
	"$IB_CA") rxe0_comes && siw_goes && resident "$1" "$A4" && siw_comes ;;
	"$RNIC") siw_comes && rxe0_goes && resident "$1" "$A4" && rxe0_comes ;;
	esac || return
	hears "$2" && gone
}

check "siw over the interface of rxe0" siw_comes
for type in $ANY $IB_CA $RNIC; do
	device=rxe0
	[ "$type" -ne $RNIC ] || device=siwv
	case_of "${name_of[type]}, address: devices that are there" address "$type" "$device"
	case_of "${name_of[type]}, address: resolution" resolution "$type" "$device"
	[ "$type" -ne $ANY ] || continue
	case_of "${name_of[type]}, address: devices that come" address_before "$type" "$device"
done
check "siw goes" siw_goes
finish
