#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The situations of Documentation/troubleshooting.rst, each of which is made here. The suite runs the commands that the page
# tells its reader to run, and they have to print what the page quotes.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/reader.sh
. "$SELFTESTS/lib/reader.sh"
# shellcheck source=selftests/lib/softib.sh
. "$SELFTESTS/lib/softib.sh"

if [ "$CM" != rust ] || [ ! -x /mnt/share/rdma-cm ]; then
	skip "the page about trouble" "it is about this module, or there is no rdma-cm"
	finish
fi

# impatient COMMAND...: meanwhile nobody on a waits longer than some seconds.
impatient() {
	rdma-cm tune set rxe0 deadline-ms=$((10000 * PATIENCE)) || return
	"$@"
	rdma-cm tune set rxe0 deadline-ms=0
}

# deaf HOST COMMAND...: meanwhile no message for RDMA over UDP comes in there.
deaf() {
	host "$1" nft -f - <<-END || return
		table inet guard {
			chain input {
				type filter hook input priority filter; policy accept;
				udp dport 4791 drop
			}
		}
	END
	"${@:2}"
	host "$1" nft flush ruleset
}

# --- refused ---

nobody_listens() {
	watch a
	at a "rping -c -a $B4 -p 7331 -C 1"
	at b "rdma-cm show listeners"
	saw refused
}
situation nobody-listens nobody_listens

other_address() {
	serve 7332
	at a "rping -c -a $B6 -p 7332 -C 1"
	at b "rdma-cm show listeners"
}
situation other-address other_address

# The server has the request, and ends.
given_up() {
	serve 7333 && kill -STOP "$SERVER" && watch a || return
	disown "$SERVER"
	# At the same time as the reader's program.
	(
		soon b '.unread == 1' listeners
		kill -9 "$SERVER"
	) &
	at a "rping -c -a $B4 -p 7333 -C 1"
	saw refused
}
situation consumer-defined given_up

too_many_requests() {
	local before
	before=$(</proc/sys/net/rdma_ucm/max_user_requests)
	# shellcheck disable=SC2086 # words
	serve 7334 $AS_USER && kill -STOP "$SERVER" || return
	echo 1 >/proc/sys/net/rdma_ucm/max_user_requests
	dial 7334
	soon b '.unread == 1' listeners
	at a "rping -c -a $B4 -p 7334 -C 1"
	at b "rdma-cm show limits | grep -E 'UID|^ *1000'"
	at b "rdma-cm show listeners"
	echo "$before" >/proc/sys/net/rdma_ucm/max_user_requests
}
situation no-resources too_many_requests

# The client's host loses its network, and the client dies meanwhile: the server's end is not told. Another client then
# names the same queue pair.
stale() {
	local server
	$PEER cmstorm server -p 7335 >/dev/null & server=$!
	await_listener "comm cmstorm" || return
	[ -p "$TMP/hold" ] || mkfifo "$TMP/hold"
	cmstorm client -a "$B4" -p 7335 -n 1 --qpn=100 --hold <>"$TMP/hold" >/dev/null & client=$!
	soon b '."cm-state" == "established"' connections
	deaf b eval 'kill -9 $client; wait $client; wait_for 20 no_client'
	watch a
	at b "rdma-cm show connections"
	at a "cmstorm client -a $B4 -p 7335 -n 1 --qpn=100 >/dev/null"
	saw refused
	at a "sleep 3; cmstorm client -a $B4 -p 7335 -n 1 --qpn=100 >/dev/null && echo connected"
	end "$server"
	VARIES='s/(established) AGE [0-9]+ (AGE|-)/\1 AGE N RTT/'
}
no_client() {
	[ "$(count a true connections)" -eq 0 ]
}
situation stale-conn stale

# --- no answer ---

no_such_host() {
	watch a
	at a "rping -c -a 10.0.0.77 -p 7330 -C 1"
	at a "ip neigh show 10.0.0.77"
	saw "gave up"
}
situation no-such-host no_such_host

no_route() {
	at a "rping -c -a 192.0.2.1 -p 7330 -C 1"
	at a "ip route get 192.0.2.1"
}
situation no-route no_route

# new_devices: whose counters are 0.
new_devices() {
	rdma link del rxe0 && rdma link add rxe0 type rxe netdev v0 && $PEER rdma link del rxe1 &&
		$PEER rdma link add rxe1 type rxe netdev v1
}

# While the client waits.
behind_firewall() {
	watch a
	dial 7336
	soon a '.retries >= 2' connections
	at a "rdma-cm show connections"
	at a "ping -q -c 1 $B4 | grep received"
	at b "rdma-cm stat | grep 'rx-msgs *req'"
	at b "nft list ruleset"
	saw "gave up"
}
filtered() {
	new_devices && serve 7336 || return
	VARIES='s/(req-sent) AGE [0-9]+ (AGE|-)/\1 AGE N RTT/; s/again: [0-9]+/again: N/; s/, time .*//'
	impatient deaf b behind_firewall
}
situation firewall filtered

answers_do_not_come() {
	dial 7337
	soon b '."cm-state" == "rep-sent" and .retries >= 2' connections
	soon a '."cm-state" == "req-sent" and .retries >= 2' connections
	at a "rdma-cm show connections"
	at b "rdma-cm show connections"
	at b "rdma-cm stat | grep 'rx-duplicates *req'"
}
one_way() {
	serve 7337 || return
	VARIES='s/(-sent) AGE [0-9]+ (AGE|-)/\1 AGE N RTT/; s/(rx-duplicates req) [0-9]+/\1 N/'
	deaf a answers_do_not_come
}
situation one-way one_way

packets_are_lost() {
	local retries=/sys/class/infiniband/rxe0/ports/1/cm_tx_retries/req before
	before=$(<"$retries")
	serve 7338 && $PEER tc qdisc add dev v1 root netem loss 100% || return
	dial 7338
	more() {
		[ "$(<"$retries")" -gt "$before" ]
	}
	wait_for 20 more
	$PEER tc qdisc del dev v1 root
	soon a '."cm-state" == "established"' connections
	at a "rdma-cm stat | grep -E 'retries.* req '"
	at b "rdma-cm stat | grep 'rx-duplicates *req'"
	at a "rdma-cm show peers"
	VARIES='s/ req [0-9]+$/ req N/; s/^ *1 (AGE|-) (AGE|-) 0 (AGE|-) (AGE|-) /1 TIMES /'
}
situation lost packets_are_lost

# second_address PORT: a has another address, and a server runs on b.
second_address() {
	ip addr add 10.9.0.1/32 dev v0 && wait_for 20 grep -q ':0a09:0001$' /sys/class/infiniband/rxe0/ports/1/gids/* && serve "$1"
}

asymmetric() {
	second_address 7339 && watch b || return
	at a "rping -c -I 10.9.0.1 -a $B4 -p 7339 -C 1"
	at b "ip route get 10.9.0.1"
	saw refused
	ip addr del 10.9.0.1/32 dev v0
}
situation asymmetric asymmetric

# There is a route, and nobody says where the sender is.
unreached() {
	watch b
	at a "rping -c -I 10.9.0.1 -a $B4 -p 7360 -C 1"
	at b "ping -q -c 1 -W 2 10.9.0.1 | grep -o '[0-9]* received'"
	at b "rdma-cm stat | grep unreachable"
	saw refused
}
no_neighbour() {
	second_address 7360 && $PEER ip route add 10.9.0.0/24 dev v1 && sysctl -qw net.ipv4.conf.v0.arp_ignore=8 &&
		$PEER ip neigh flush dev v1 to 10.9.0.1 &&
		ip neigh replace "$B4" lladdr "$($PEER cat /sys/class/net/v1/address)" dev v0 nud permanent || return
	VARIES='s/(unreachable) [0-9]+$/\1 N/'
	impatient unreached
	sysctl -qw net.ipv4.conf.v0.arp_ignore=0
	$PEER ip route del 10.9.0.0/24
	ip neigh del "$B4" dev v0
	ip addr del 10.9.0.1/32 dev v0
}
situation no-neighbour no_neighbour

# The server's process has stopped.
hangs() {
	serve 7340 && kill -STOP "$SERVER" || return
	at a "rdma-cm tune set rxe0 deadline-ms=3000"
	at a "rping -c -a $B4 -p 7340 -C 1"
	at b "rdma-cm show listeners"
	rdma-cm tune set rxe0 deadline-ms=0
}
situation hangs hangs

# --- slow ---

full_backlog() {
	local i
	serve 7341 && kill -STOP "$SERVER" || return
	for i in 1 2 3 4 5; do
		dial 7341
	done
	soon b '.unread == 5' listeners
	at b "rdma-cm show listeners"
	rdma-cm tune set rxe1 backlog-parking=0
	watch b
	dial 7341
	saw refused
	at b "rdma-cm show listeners"
	rdma-cm tune set rxe1 backlog-parking=1024
	VARIES='s/ 5 2 [1-9][0-9]* / 5 2 N /'
}
situation backlog full_backlog

slow_accept() {
	local server
	$PEER cmstorm server -p 7342 --accept-delay=10000000 >/dev/null & server=$!
	await_listener "comm cmstorm" && dial 7342 || return
	soon b '."cm-state" == "mra-req-sent"' connections
	soon a '."cm-state" == "mra-req-rcvd"' connections
	at a "rdma-cm show connections"
	at b "rdma-cm show connections"
	end "$server"
	VARIES='s/(mra-req-[a-z]+) AGE [0-9]+ (AGE|-)/\1 AGE N RTT/'
}
situation slow-accept slow_accept

# A client whose packets may be on their way for long, and that has disconnected.
time_wait() {
	local server client
	$PEER cmstorm server -p 7343 >/dev/null & server=$!
	await_listener "comm cmstorm" || return
	PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$SELFTESTS/examples python3 - "$B4" <<-'END' & client=$!
		from options import *
		POINTERS.update(rdma_establish="p", rdma_disconnect="p")
		channel = rdmacm.rdma_create_event_channel()
		made = ctypes.c_void_p()
		call("rdma_create_id", channel, ctypes.byref(made), None, RDMA_PS_TCP)
		client = made.value
		# RDMA_OPTION_ID_ACK_TIMEOUT
		call("rdma_set_option", client, 0, 3, ctypes.byref(ctypes.c_uint8(23)), ctypes.c_size_t(1))
		to = struct.pack("=H", socket.AF_INET) + struct.pack("!H", 7343) + socket.inet_aton(sys.argv[1]) + bytes(8)
		call("rdma_resolve_addr", client, None, to, 2000)
		next_event(channel)
		call("rdma_resolve_route", client, 2000)
		next_event(channel)
		call("rdma_connect", client, ctypes.byref(ConnParam(qp_num=0x123459)))
		next_event(channel)
		call("rdma_establish", client)
		call("rdma_disconnect", client)
		time.sleep(100)
	END
	soon a '."cm-state" == "timewait"' connections
	at a "rdma-cm show connections"
	end "$client" "$server"
	VARIES='s/(timewait) AGE [0-9]+ (AGE|-)/\1 AGE N RTT/'
}
situation time-wait time_wait

# --- connections that end, or do not ---

# idle_client HOST ADDRESS PORT: a connection of that host that is not used, by CLIENT.
idle_client() {
	local prefix=''
	[ "$1" = a ] || prefix=$PEER
	[ -p "$TMP/hold" ] || mkfifo "$TMP/hold"
	# shellcheck disable=SC2086 # words
	$prefix cmstorm client -a "$2" -p "$3" -n 1 --hold <>"$TMP/hold" >/dev/null & CLIENT=$!
	soon "$1" '."cm-state" == "established"' connections
}

# server_on HOST ADDRESS PORT: a server whose reader sees what it prints: "server_says" shows that.
server_on() {
	local prefix=''
	[ "$1" = a ] || prefix=$PEER
	# shellcheck disable=SC2086 # words
	$prefix stdbuf -oL rping -s -P -a "$2" -p "$3" >"$TMP/server" 2>&1 & SERVER=$!
	await_listener "comm rping"
}

server_says() {
	typed "$1" "rping -s -P -a $2 -p $3"
	wait_for 30 grep -q DISCONNECT "$TMP/server"
	grep -m 1 DISCONNECT "$TMP/server" >>"$QUOTE"
}

# The cable is pulled at b.
dead_link() {
	at a "rdma-cm tune set rxe0 dead-link-ms=1000"
	server_on a "$A4" 7361 && idle_client b "$A4" 7361 || return
	$PEER ip link set v1 down
	server_says a "$A4" 7361
	at a "rdma link show rxe0/1"
	at a "ip -br link show v0"
	end "$CLIENT" "$SERVER"
	rdma-cm tune set rxe0 dead-link-ms=0
	$PEER ip link set v1 up && $PEER ip addr add "$B6/64" dev v1 nodad && new_devices
}
situation dead-link dead_link

# forgotten PORT: a server on b, and its client, whose host loses its network before it dies: nobody tells the server.
forgotten() {
	server_on b "$B4" "$1" && idle_client a "$B4" "$1" || return
	# shellcheck disable=SC2016 # later
	deaf b eval 'kill -9 $CLIENT; wait $CLIENT; wait_for 20 no_client'
}

forgotten_peer() {
	rdma-cm tune set rxe0 timewait=3
	forgotten 7362 || return
	at a "rdma-cm show connections"
	at b "rdma-cm show connections"
	end "$SERVER"
	at b "rdma-cm tune set rxe1 keepalive-s=2"
	forgotten 7363 || return
	server_says b "$B4" 7363
	end "$SERVER"
	rdma-cm tune set rxe1 keepalive-s=0
	rdma-cm tune set rxe0 timewait=22
	VARIES='s/(established) AGE [0-9]+ (AGE|-)/\1 AGE N RTT/'
}
situation keepalive forgotten_peer

# --- calls that fail ---

taken() {
	serve 7344 || return
	at b "rping -s -a $B4 -p 7344"
	at b "rdma-cm show listeners"
}
situation port-taken taken

privileged() {
	at 'b$' "rping -s -a $B4 -p 700"
}
situation privileged-port privileged

not_own() {
	at b "rping -s -a 10.0.0.9 -p 7345"
	at b "ip -o addr show to 10.0.0.9"
}
situation not-own-address not_own

# An interface without an RDMA device.
plain_interface() {
	ip link add plain0 type dummy && ip addr add 192.0.2.1/24 dev plain0 && ip link set plain0 up || return
	at a "rping -s -a 192.0.2.1 -p 7346"
	at a "ip -br addr show to 192.0.2.1"
	at a "rdma link | grep netdev"
	ip link del plain0
}
situation no-device plain_interface

# The device belongs to another network namespace.
other_namespace() {
	ip netns add third && ip link add w0 type veth peer name w1 netns third && ip addr add 10.0.5.1/24 dev w0 &&
		ip link set w0 up && ip -n third addr add 10.0.5.2/24 dev w1 && ip -n third link set w1 up || return
	at a "ip netns exec third rping -c -a 10.0.5.1 -p 7347 -C 1"
	at a "ip netns exec third rdma link show rxe0/1"
	at a "rdma link show rxe0/1"
	at a "rdma system"
	ip link del w0
	ip netns del third
}
situation namespace other_namespace

link_local() {
	local address
	address=$($PEER ip -o -6 addr show dev v1 scope link | sed -E 's/.*inet6 ([^/]*).*/\1/')
	at b "rping -s -P -a $address -p 7348"
	at b "ip -br addr show to $address"
	$PEER rping -s -P -a "$address%v1" -p 7348 >/dev/null 2>&1 &
	typed b "rping -s -P -a $address%v1 -p 7348 &"
	await_listener "comm rping"
	at a "rping -c -a $address%v0 -p 7348 -C 1 >/dev/null 2>&1 && echo connected"
}
situation link-local link_local

too_many_ids() {
	local before
	before=$(</proc/sys/net/rdma_ucm/max_user_ids)
	serve 7349 || return
	# shellcheck disable=SC2086
	$AS_USER rping -c -a "$B4" -p 7349 >/dev/null 2>&1 &
	soon a '."cm-state" == "established"' connections
	echo 1 >/proc/sys/net/rdma_ucm/max_user_ids
	watch a
	at 'a$' "rping -c -a $B4 -p 7349 -C 1"
	at 'a$' "rdma-cm show limits | grep -E 'UID|ids'"
	saw limit
	at a "sysctl net.rdma_ucm.max_user_ids"
	echo "$before" >/proc/sys/net/rdma_ucm/max_user_ids
}
situation ids-limit too_many_ids

# The number of a queue pair of root's, and then of a user's.
other_queue_pair() {
	local number
	serve 7350 && dial 7350 || return
	soon a '."cm-state" == "established"' connections
	number=$(rdma-cm -j show connections | jq '.[0]."qp-num"')
	at 'a$' "cmstorm client -a $B4 -p 7350 -n 1 --qpn=$number >/dev/null"
	at a "rdma resource show qp link rxe0 lqpn $number"
	VARIES='s/(lqpn|rqpn|pid|pdn|sq-psn|rq-psn)[ =][0-9]+/\1 N/g; s/qpn=[0-9]+/qpn=N/'
}
situation other-queue-pair other_queue_pair

small_mtu() {
	ip link set v0 mtu 280 || return
	at a "rping -c -a $B4 -p 7351 -C 1"
	at a "ip -o link show v0 | grep -o 'mtu [0-9]*'"
	ip link set v0 mtu 1500 && ip addr add "$A6/64" dev v0 nodad
}
situation small-mtu small_mtu

# Packets of a are too long for b.
other_mtu() {
	ip link set v0 mtu 4200 && serve 7352 || return
	at a "timeout 30 rping -c -a $B4 -p 7352 -C 1 -S 4000; echo status \$?"
	at a "ibv_devinfo -d rxe0 | grep active_mtu"
	at b "ibv_devinfo -d rxe1 | grep active_mtu"
	at a "ping -q -c 1 -W 2 -M do -s 4000 $B4 | grep received"
	ip link set v0 mtu 1500
	VARIES='s/ time [0-9]*ms//; s/, time .*//'
}
situation other-mtu other_mtu

gid_index() {
	$PEER ibv_rc_pingpong -d rxe1 -g 1 >/dev/null 2>&1 &
	wait_for 20 $PEER sh -c 'ss -Hltn | grep -q :18515'
	at a "ibv_rc_pingpong -d rxe0 -g 9 $B4"
	at a "ibv_devinfo -v -d rxe0 | grep GID"
	VARIES='s/(QPN|PSN) 0x[0-9a-f]+/\1 N/g'
}
situation gid-index gid_index

roce_version() {
	local dir=/sys/kernel/config/rdma_cm/rxe0
	mkdir "$dir" || return
	at a "echo 'IB/RoCE v1' >$dir/ports/1/default_roce_mode"
	at a "cat $dir/ports/1/default_roce_mode"
	at a "cat /sys/class/infiniband/rxe0/ports/1/gid_attrs/types/1"
	rmdir "$dir"
}
situation roce-version roce_version

# --- devices ---

# The client's device speaks iWARP, the server's RoCE.
mixed() {
	siw0 netns peer || return
	ip -n peer addr add 10.80.0.2/24 dev w1 && ip -n peer link set w1 up && $PEER rdma link add rxe5 type rxe netdev w1 || return
	$PEER rping -s -P -a 10.80.0.2 -p 7353 >/dev/null 2>&1 & SERVER=$!
	await_listener "comm rping" && watch a || return
	at a "timeout 5 rping -c -a 10.80.0.2 -p 7353 -C 1"
	at a "rdma-cm -j tune | jq -c '.[] | select(.\"dev-name\" == \"siw0\").protocol'"
	at b "rdma-cm -j tune | jq -c '.[] | select(.\"dev-name\" == \"rxe5\").protocol'"
	saw refused
	end "$SERVER"
	$PEER rdma link del rxe5
	no_siw0
}
if has_siw; then
	situation iwarp mixed
else
	skip iwarp "there is no siw"
fi

device_goes() {
	local server
	$PEER stdbuf -oL rping -s -P -a "$B4" -p 7354 >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" && dial 7354 || return
	soon b '."cm-state" == "established"' connections
	watch b
	$PEER rdma link del rxe1
	saw gone
	typed b "rping -s -P -a $B4 -p 7354"
	wait_for 20 grep -q removal "$TMP/server"
	grep removal "$TMP/server" >>"$QUOTE"
	at b "rdma link | grep -w rxe1"
	end "$server"
	$PEER rdma link add rxe1 type rxe netdev v1
	VARIES='s/ended: [0-9]+/ended: N/'
}
situation device-gone device_goes

# The interface takes its IPv6 addresses along, and may end the device's queue pair for such messages.
interface_down() {
	ip link set v0 down || return
	at a "rping -c -a $B4 -p 7355 -C 1"
	at a "rdma link show rxe0/1"
	at a "ip -br link show v0"
	ip link set v0 up && ip addr add "$A6/64" dev v0 nodad && rdma link del rxe0 && rdma link add rxe0 type rxe netdev v0
}
situation link-down interface_down

# --- InfiniBand ---

# An interface of a partition that the port is not a member of.
no_member() {
	local name
	name=$(ipoib_of ib_a) && ip link add link "$name" name "$name.8005" type ipoib pkey 0x8005 &&
		ip addr add 10.79.0.1/24 dev "$name.8005" && ip link set "$name.8005" up || return
	at a "rping -c -a 10.79.0.2 -p 7356 -C 1"
	at a "ip -br link show $name.8005"
	at a "ip -d link show $name.8005 | grep -o 'pkey 0x[0-9a-f]*'"
	at a "grep -H . /sys/class/infiniband/ib_a/ports/1/pkeys/* | grep -v 0x0000"
	ip link del "$name.8005"
	VARIES='s/80:00:00:[0-9a-f]+:/80:00:00:N:/'
}

no_administrator() {
	sa path silent
	watch a
	at a "rping -c -a $J4 -p 7357 -C 1"
	at a "cat /sys/class/infiniband/ib_a/ports/1/sm_lid"
	saw "gave up"
	sa
}
if has_softib && check "two ports with an InfiniBand link layer" softib_up; then
	situation pkey no_member
	situation no-administrator no_administrator
	softib_down >/dev/null
else
	skip pkey "there is no softib"
	skip no-administrator "there is no softib"
fi

# --- the module ---

in_use() {
	rping -s -P -a "$A4" -p 7358 >/dev/null 2>&1 &
	await_listener "comm rping" || return
	at a "rdma-cm use c"
	at a "rdma-cm status"
	VARIES='s/[0-9]+ \(rping\)/N (rping)/g; s/^version: .*/version: V/'
}
situation in-use in_use

c_is_loaded() {
	cm-use c || return
	at a "rdma-cm show connections; echo \$?"
	at a "rdma-cm"
	cm-use rust
}
none_is_loaded() {
	cm-use none || return
	at a "rping -c -a $B4 -p 7359 -C 1"
	at a "rdma-cm"
	cm-use rust
}
if [ -z "$CM_BUILT_IN" ]; then
	situation c-is-loaded c_is_loaded
	situation none none_is_loaded
else
	skip c-is-loaded "the module is built in"
	skip none "the module is built in"
fi
finish
