#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Users and peers who mean harm to others. A case for each row of Documentation/security.rst: what happens with C is
# what its cases expect with C, so that each shows the harm that this module prevents.
#
# With LONG=N the forged claims name one of N of all queue pairs that there can be, and a million / N messages of other
# kinds are forged.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/softib.sh
. "$SELFTESTS/lib/softib.sh"
# shellcheck source=selftests/lib/hostile.sh
. "$SELFTESTS/lib/hostile.sh"

# 14: ids of others
oracle() {
	local told others
	act oracle || return
	[ "$others" -gt 0 ] || fail "nobody has ids" || return
	[ "$told" -eq "$(with "$others" 0)" ] || fail "told of $told numbers" || return
	nothing_left
}

EPERM=1
# 2: queue pair numbers of others
steal() {
	local error ended
	act steal "$1" || return
	[ "$error" -eq "$(with 0 $EPERM)" ] || fail "error $error" || return
	[ "$ended" -eq "$(with 1 0)" ] || fail "the connection of the owner: ended $ended" || return
	nothing_left
}

# A user may claim its own queue pairs.
steal_owner() {
	local error ended
	act steal owner || return
	[ "$error" -eq 0 ] || fail "error $error" || return
	nothing_left
}

steal_passed() {
	local error
	act steal_passed || return
	[ "$error" -eq "$(with 0 $EPERM)" ] || fail "error $error"
}

dropped() {
	local error
	act dropped || return
	[ "$error" -eq 0 ] || fail "error $error"
}

squat() {
	local connected ended
	act squat "$1" || return
	[ "$connected" -eq "$(with 0 1)" ] || fail "the owner's connection: $connected" || return
	[ "$CM" = c ] || [ "$ended" -eq 1 ] || fail "the other connection is still there" || return
	nothing_left
}

squat_answered() {
	local late
	act squat answered || return
	[ "$late" -eq "$(with 0 $EPERM)" ] || fail "error $late" || return
	nothing_left
}

EAGAIN=11 EACCES=13 EMFILE=24
# With C no more than 128 requests are under way at a port, and what comes then waits.
LIMIT=16
# limited RESOURCE COMMAND...: while a user may have LIMIT of the resource.
limited() {
	local sysctl=/proc/sys/net/rdma_ucm/max_user_$1 before status=0
	shift
	if [ "$CM" = c ]; then
		"$@"
		return
	fi
	before=$(cat "$sysctl") && echo "$LIMIT" >"$sysctl" || return
	"$@" || status=$?
	echo "$before" >"$sysctl" && return "$status"
}

# 13: RESOURCE ERROR WAY: a user has no more than the limit, whatever it is made with
limit() {
	local tried made error other shown left
	limited "$1" act limit "$1" "$3" "$LIMIT" || return
	[ "$made" -eq "$(with "$tried" "$LIMIT")" ] || fail "$made of $tried" || return
	[ "$error" -eq "$(with 0 "$2")" ] || fail "error $error" || return
	[ "$other" -eq 1 ] || fail "another user gets none" || return
	[ "$CM" = c ] || [ "$shown $left" = "$LIMIT 0" ] || fail "shown: $shown, in the end $left" || return
	nothing_left
}

# 13: who pays is visible, as far as the reader knows the users
seen() {
	local inside_user inside_owner outside_user outside_owner
	act seen || return
	[ "$inside_user $inside_owner $outside_user $outside_owner" = "$(with "-1 -1 -1 -1" "1 0 100000 65534")" ]
}

# 13: requests from the wire, of connections or of datagrams, which are refused with this status
requests() {
	local tried requests refused reason shown other again left
	limited requests act requests "$1" "$LIMIT" || return
	[ "$requests" -eq "$(with "$tried" "$LIMIT")" ] || fail "$requests of $tried" || return
	[ "$refused" -eq $((tried - requests)) ] || fail "$refused are refused" || return
	[ "$refused" -eq 0 ] || [ "$reason" -eq "$2" ] || fail "reason $reason" || return
	[ "$other $again" = "1 1" ] || fail "another user $other, again $again" || return
	[ "$CM" = c ] || [ "$shown $left" = "$LIMIT 0" ] || fail "shown: $shown, in the end $left" || return
	nothing_left
}

# 13: address handles, without which a message takes longer, and no more
handles() {
	local tried asked shown beyond left sent=/sys/class/infiniband/rxe0/ports/1/cm_tx_msgs/req before status=0
	before=$(cat "$sent")
	ip route add 10.99.0.0/16 via "$B4" || return
	limited address_handles act handles "$LIMIT" || status=$?
	ip route del 10.99.0.0/16 && [ "$status" -eq 0 ] || return
	[ "$asked $beyond" = "$tried 1" ] || fail "$asked of $tried, beyond $beyond" || return
	sent=$(($(cat "$sent") - before))
	[ "$sent" -gt "$tried" ] || fail "$sent requests are sent" || return
	[ "$CM" = c ] || [ "$left" -eq 0 ] && [ "$shown" -le "$LIMIT" ] || fail "shown: $shown, in the end $left" || return
	nothing_left
}

# 7: requests that nobody answers hold as many address handles as their listener's user may have
forged_handles() {
	local tried requests shown again left
	limited address_handles act forged_handles "$LIMIT" || return
	[ "$requests $again" = "$tried 1" ] || fail "$requests of $tried, then $again" || return
	[ "$CM" = c ] || [ "$left" -eq 0 ] && [ "$shown" -le "$LIMIT" ] || fail "shown: $shown, in the end $left" || return
	nothing_left
}

# 17: what was made is charged to who made it, wherever it goes
passed() {
	local write moved maker owner again left
	limited ids act passed "$LIMIT" || return
	[ "$write" -eq "$EACCES" ] || fail "a write to another's file: $write" || return
	[ "$moved" -eq "$LIMIT" ] || fail "moved $moved" || return
	[ "$again" -eq "$(with 1 0)" ] || fail "the maker gets another: $again" || return
	[ "$CM" = c ] || [ "$maker $owner $left" = "$LIMIT 0 0" ] ||
		fail "maker $maker, owner $owner, in the end $left" || return
	nothing_left
}

# over NAME ADDRESS CASE...: the same over another device or family.
over() {
	export HOSTILE_DEVICE=$1 HOSTILE_ADDRESS=$2
	shift 2
	"$@"
}

take_iwarp() {
	local error taken status=0
	siw0 || return
	over siw0 "$C4" act take || status=$?
	nothing_left && no_siw0 && [ "$status" -eq 0 ] || return
	[ "$error $taken" = "$(with "0 1" "$EPERM 0")" ] || fail "error $error, taken: $taken"
}

# kernel_qp: the number of a queue pair of ib_ipoib.
kernel_qp() {
	rdma resource show qp link ib_a/1 | sed -nE 's/.* lqpn ([0-9]+) .*comm \[ib_ipoib\].*/\1/p' | head -n 1
}

steal_kernel() {
	local error number user status=0
	softib_up || return
	number=$(kernel_qp)
	[ "$number" ] || fail "IPoIB has no queue pair: $(rdma resource show qp)" || status=$?
	for user in 65534 0; do
		[ "$status" -eq 0 ] || break
		over ib_a "$I4" act name "$number" "$user" || status=$?
		[ "$error" -eq "$(with 0 $EPERM)" ] || fail "user $user: error $error" || status=$?
	done
	softib_down && return "$status"
}

# The size of the endpoint and the connection of a request and of its place in the channel, which are most of the
# request, in bytes.
objects() {
	local slab=/sys/kernel/slab
	if [ -e "$slab/rdma_cm_endpoint" ]; then
		echo $(($(<"$slab/rdma_cm_endpoint/object_size") + $(<"$slab/rdma_cm_connection/object_size") +
			$(<"$slab/rdma_ucm_place/object_size")))
	else
		echo 2000
	fi
}

# 5: memory that nobody pays for
unread() {
	local arrived own none
	act unread || return
	if [ "$CM" = c ]; then
		[ "$own" -le 500 ] || fail "the owner pays $own bytes for each" || return
	else
		[ "$arrived" -ge 512 ] || fail "$arrived of 512 have arrived" || return
		# The kernel counts whole pages, of which each processor keeps some: 3 % for 512 requests.
		[ $((own * 100)) -ge $(($(objects) * 97)) ] || fail "the owner pays only $own bytes for each, of $(objects)" || return
		[ "$none" -lt 2000 ] || fail "nobody pays for $none bytes of each" || return
	fi
	nothing_left
}

# 5: the requests of a listener that is killed go to another one at the address, of another group, which pays for what it makes of
# them: a place and the parameters of an event. The endpoints, which are more than a half, stay with the group that had them.
inherited() {
	local own left slab=/sys/kernel/slab new
	act inherited || return
	new=$(($(<"$slab/rdma_ucm_place/object_size") + $(<"$slab/rdma_ucm_event_param/object_size")))
	[ $((own * 100)) -ge $((new * 97)) ] || fail "the other owner pays only $own bytes for each, of $new" || return
	[ $((left * 100)) -ge $(($(<"$slab/rdma_cm_endpoint/object_size") * 97)) ] || fail "$left bytes are left" || return
	nothing_left
}

# 5: memory beside the group of a user who fills it. The address handles of the driver, which no group pays for, are
# limited.
contained() {
	local made killed most paid log=$TMP/kernel-log status=0
	cp "$log" "$log.before" && limited address_handles act contained "$1" || status=$?
	# The kernel writes that it ends the user of a full group, whatever the group is full of.
	mv "$log.before" "$log" && [ "$status" -eq 0 ] || return
	if [ "$CM" = c ]; then
		[ "$most" -gt 16384 ] || fail "only $most kB are beside the group" || return
	else
		[ "$paid" -ge 32768 ] || fail "$made are $paid kB" || return
		[ "$most" -le 4096 ] || fail "$most kB are beside the group" || return
	fi
	nothing_left 60
}

# check_memory CASE COMMAND...: where the kernel's own checks do not hide what the module allocates.
check_memory() {
	if [ "$PATIENCE" -gt 1 ]; then
		skip "$1" "KASAN keeps what was freed, and allocates more with each object"
	else
		check "$@"
	fi
}

check "CONNECT with the queue pair of another user" steal connect
check "CONNECT with the queue pair of another user, IPv6" over rxe0 "$A6" steal connect
if has_siw; then
	check "CONNECT over iWARP with the queue pair of another user" take_iwarp
else
	skip "CONNECT over iWARP with the queue pair of another user" "there is no siw"
fi
if has_softib; then
	check "CONNECT over InfiniBand with a queue pair of the kernel" steal_kernel
else
	skip "CONNECT over InfiniBand with a queue pair of the kernel" "there is no softib"
fi
check "CONNECT of root with the queue pair of another user" steal root
check "CONNECT with it from a user namespace" steal userns
check "CONNECT with it by who has the descriptor of its device" steal_passed
check "ACCEPT with the queue pair of another user" steal accept
check "CONNECT with the queue pair of another process of the user" steal_owner
check "CONNECT of a process that has dropped its privileges" dropped
check "a connection gives way to the queue pair that gets its number" squat established
check "a request gives way to the queue pair that gets its number" squat requested
check "ESTABLISH with a number that another user has got" squat_answered
shown
skip "shared XRC targets" "soft-RoCE has none"
check_memory "the owner of a listener pays for requests that it does not read" unread
if [ "$CM" = c ]; then
	skip "the owner of a listener pays for requests that come from another one" "C has no REUSEPORT"
else
	check "the owner of a listener pays for requests that come from another one" inherited
fi
for what in ids connects datagrams; do
	check_memory "memory beside a group that is filled with $what" contained $what
done
check "ids of another user cannot be told from none" oracle
shown
for way in processes namespaces nested sub_users; do
	check "ids are limited for a user with many $way" limit ids "$EMFILE" "$way"
done
check "a file shows who pays" seen
check "listeners are limited" limit listeners "$EMFILE" sub_users
check "memberships are limited" limit memberships "$EMFILE" sub_users
check "written events are limited" limit written_events "$EAGAIN" sub_users
check "requests for connections are limited" requests tcp 3
check "requests of datagrams are limited" requests udp 2
check "address handles are limited" handles
check "ids that are moved to another's file stay with who made them" passed
shown

# --- peers ---

# 1: forged messages for an established connection
forged() {
	local lost ended data closed
	act forged "$@" || return
	[ "$lost" -eq 0 ] || fail "$lost messages were not received" || return
	if [ "$CM" = c ]; then
		[ "$ended" -gt 0 ] || fail "the connection is still there" || return
	else
		[ "$ended $data $closed" = "0 1 1" ] || fail "ended $ended, data $data, closed $closed" || return
	fi
	nothing_left
}

# 3: a peer that has restarted. It is asked once, and would be again after a second, with a further request.
restarted() {
	local rejected told late again
	act restarted "$@" || return
	[ "$rejected $told $again" = "10 1 1" ] || fail "REJ $rejected, told $told, again $again" || return
	[ "$CM" = c ] || [ "$late" -lt $((1000 * PATIENCE)) ] || fail "after $late ms" || return
	nothing_left
}

# 4: requests that nobody confirms
unconfirmed() {
	local honest connected
	act unconfirmed "$1" || return
	[ "$connected" -eq "$(with 0 "$honest")" ] || fail "$connected of $honest connect" || return
	nothing_left
}

# 11: answers to a source that has not asked
answers() {
	local one many again unread answered reps
	act answers || return
	[ "$answered" -eq 1 ] || fail "no answers" || return
	if [ "$CM" = c ]; then
		[ "$reps" -gt 4 ] && [ "$many" -gt 4 ] || fail "not more than 4" || return
	else
		[ "$reps" -le 4 ] && [ "$one" -le 4 ] && [ "$many" -le 4 ] && [ "$again" -le 4 ] && [ "$unread" -le 4 ] ||
			fail "more than 4" || return
	fi
	nothing_left
}

# 6: memory for a flood of requests. Unread ones stay, and their owner pays for most of it.
memory() {
	local received most left own
	act memory "$1" || return
	[ "$received" -gt 10000 ] || fail "only $received requests" || return
	if [ "$CM" != c ]; then
		[ "$most" -le 4096 ] || fail "$most kB" || return
		[ "$left" -le $((512 + own / 20)) ] || fail "$left kB are left" || return
	fi
	nothing_left 60
}

# 10: clients whose neighbours are unknown, beside requests from neighbours that are not there
strangers() {
	local family=$1 served ms entries i status=0 address=("10.0.0.%d/24" "fd00::%d/64") nodad=''
	[ "$family" -eq 4 ] || nodad=nodad
	for i in {101..108}; do
		# shellcheck disable=SC2059,SC2086 # the format is an address
		$PEER ip addr add "$(printf "${address[family / 6]}" "$i")" dev v1 $nodad || return
	done
	wait_for 10 gids_of 8 "$family" || fail "no GIDs" || status=$?
	[ "$status" -ne 0 ] || act neighbours "$family" "$2" || status=$?
	for i in {101..108}; do
		# shellcheck disable=SC2059
		$PEER ip addr del "$(printf "${address[family / 6]}" "$i")" dev v1
	done
	[ "$status" -eq 0 ] || return "$status"
	[ "$entries" -le 128 ] || fail "$entries entries" || return
	if [ "$CM" = c ] && [ "$2" = flooded ]; then
		[ "$served" -lt 8 ] || fail "all are served"
		return
	fi
	[ "$served" -eq 8 ] || fail "$served of 8 are served" || return
	nothing_left
}

# gids_of NUMBER FAMILY: as many addresses of the clients are GIDs of their device.
gids_of() {
	local gid=':ffff:0a00:00(6[5-9a-c])$'
	[ "$2" -eq 4 ] || gid='^fd00:.*:010[1-8]$'
	[ "$(cat /sys/class/infiniband/rxe1/ports/1/gids/* 2>/dev/null | grep -cE "$gid")" -ge "$1" ]
}

# 8: clients beside a flood that fills the backlog of their listener, while a forger sends each request that many times
flooded() {
	local times=$1 clients=$2 before known unknown rejected offered accepted fair status=0
	unknown_hosts add && act flooded 10.0.0.1%02d "$clients" "$times" || status=$?
	unknown_hosts del && [ "$status" -eq 0 ] || return
	[ "$before" -eq 10 ] || fail "$before of 10 connect without a flood" || return
	[ "$rejected" -eq 0 ] || fail "$rejected are refused" || return
	if [ "$CM" = c ]; then
		[ "$known" -lt 10 ] || fail "all connect" || return
		nothing_left
		return
	fi
	[ "$known" -eq 10 ] || fail "$known of 10 that are known" || return
	if [ "$times" -eq 1 ]; then
		[ "$unknown" -ge $((clients * 8 / 10)) ] || fail "$unknown of $clients" || return
	else
		# The share that is accepted, less three standard deviations of the number of clients that have it.
		fair=$(awk "BEGIN { p = $accepted / ($offered + $clients); p = p < 1 ? p : 1
			print int($clients * p - 3 * sqrt($clients * p * (1 - p))) }")
		[ "$unknown" -ge "$fair" ] || fail "$unknown of $clients, less than $fair" || return
	fi
	nothing_left
}

# unknown_hosts add|del: addresses of the other host that have confirmed nothing.
unknown_hosts() {
	for n in {100..199}; do echo "addr $1 10.0.0.$n/24 dev v1"; done | $PEER ip -batch -
}

CLAIMS=4096 OTHERS=5040
[ -z "${LONG-}" ] || CLAIMS=$(((1 << 24) / LONG)) OTHERS=$((250000 / LONG))
forgers replace || exit
for family in 4 6; do
	for victim in here there; do
		check "claims to the queue pair of an established connection, IPv$family, $victim" \
			forged $family $victim claims $CLAIMS
		check "other forged messages for an established connection, IPv$family, $victim" \
			forged $family $victim others $OTHERS
	done
	check "a restarted peer, IPv$family" restarted $family quiet
	check "a restarted peer beside a flood, IPv$family" restarted $family flooded
	check "unconfirmed requests, IPv$family" unconfirmed $family
done
for family in 4 6; do
	check "clients that are no neighbours yet, IPv$family" strangers $family quiet
done
skip "forged messages over InfiniBand" "the forger makes no frames of softib"
check "answers to a source that has not asked" answers
check "address handles of forged requests are limited" forged_handles
for listeners in 0 1 40; do
	check_memory "memory for a flood to $listeners listeners" memory $listeners
done
check "clients beside a flood that fills the backlog" flooded 1 10
check "clients beside a flood whose requests come again" flooded 2 300
# The last cases: for minutes C handles nothing but the requests of this flood.
ip route add 10.7.0.0/16 dev v0 || exit
for family in 4 6; do
	case="clients that are no neighbours yet beside requests of nobody, IPv$family"
	if [ "$CM" = c ] && [ $family -eq 6 ]; then
		skip "$case" "C still handles those over IPv4"
	else
		check "$case" strangers $family flooded
	fi
done
ip route del 10.7.0.0/16 || exit
forgers del || exit
# 16: lines in the kernel log, of anybody
if [ "$CM" = c ]; then
	skip "the kernel log stays empty" "C: $(wc -l <"$TMP/kernel-log") lines"
else
	check "the kernel log stays empty" diff /dev/null "$TMP/kernel-log"
fi
shown
finish
