#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Modules (of consumer/) that call every function of <rdma/ib_cm.h> and of <rdma/rdma_cm.h>, in
# every state. Needs ibcm.ko and cmid.ko in the current directory; the latter once more over iWARP,
# where there is siw, and both over an InfiniBand link layer, where there is softib, and ibcm over one whose ports have
# two LIDs each. Arguments choose parts: ibcm, beside, cmid, own, shares, device, iwarp, ib, lids.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/softib.sh
. "$SELFTESTS/lib/softib.sh"
# shellcheck source=selftests/lib/consumer.sh
. "$SELFTESTS/lib/consumer.sh"

parts=" ${*:-ibcm beside cmid own shares device iwarp ib lids} "
wanted() {
	[[ $parts == *" $1 "* ]]
}

# The callbacks of the last consumer may still be returning.
unloaded_after_consumer() {
	insmod cmid.ko own=1 && rmmod cmid && cm-use none || return
	sleep 3
	cm-use "$CM"
}

! wanted ibcm || tests ibcm <<<"$IBCM_TESTS
$IBCM_RIVALS"

# The first request of an identifier is bounded by the port that it leaves from.
if ! wanted ibcm; then
	:
elif [ "$(cm-use)" != c ]; then
	port_setting cm_deadline_ms 500 rxe0
	tests ibcm bounded=1 <<<"a first request that the port bounds"
	port_setting cm_deadline_ms 0 rxe0
else
	skip "a first request that the port bounds" "C has no such setting"
fi

# Somebody in the kernel has the service of a TCP port, and nobody else gets it.
beside() {
	local status=0
	insmod ibcm.ko service=$((0x1060000 + 7490)) || return
	"$SELFTESTS/suites/abi.sh" 'beside.*' || status=$?
	rmmod ibcm && return "$status"
}
if ! wanted beside; then
	:
elif [ -e ibcm.ko ]; then
	check "listeners beside a service" beside
else
	skip "listeners beside a service" "there is no ibcm.ko"
fi

# The error of calls when the device goes. C has another word for it, which NFS does not try again
# after.
gone=103
[ "$(cm-use)" != c ] || gone=22

# An address of nobody that does not have to be looked for.
if wanted cmid; then
	ip neigh replace 10.0.0.98 lladdr 02:00:00:00:00:98 dev v0 nud permanent
	tests cmid claims_end="$CLAIMS_END" <<<"$CMID_TESTS
a neighbour that comes and goes
nobody answers"
	ip neigh del 10.0.0.98 dev v0
fi

if wanted own && [ "$(cm-use)" = c ]; then
	skip "destroyed in its own callback" "C waits for ever for the callback to end (differences.rst)"
elif wanted own; then
	tests cmid own=1 <<<"destroyed in its own callback"
	if [ -e cmid.ko ]; then
		check "the connection manager goes right after its last consumer" unloaded_after_consumer
	else
		skip "the connection manager goes right after its last consumer" "there is no cmid.ko"
	fi
fi

# Listeners of the kernel share an address if the port says so. Requests are not sent again within hours.
if ! wanted shares; then
	:
elif [ "$(cm-use)" = c ]; then
	skip "listeners that share an address" "C has no such setting"
else
	port_setting cm_reuseport 1 rxe0
	port_setting cm_response_timeout 31 rxe0
	port_setting cm_early_retry_ms 0 rxe0
	tests cmid shares=1 <<'END'
a request of a listener that goes
a question to a listener that goes
END
	port_setting cm_early_retry_ms 20 rxe0
	port_setting cm_response_timeout 20 rxe0
	port_setting cm_reuseport 0 rxe0
fi

# taken_away DEVICE [PATTERN]: as soon as an id has a route, one like that. $TMP/gone has the milliseconds that it
# takes.
taken_away() {
	local start
	rm -f "$TMP/gone"
	wait_for 60 cm_id_in ROUTE_RESOLVED "${@:2}" || return
	start=$(date +%s%N)
	timeout 60 rdma link del "$1" && echo $((($(date +%s%N) - start) / 1000000)) >"$TMP/gone"
}

# stayed: the removal waited for the module, which destroys its identifiers 2 s after it was told.
stayed() {
	[ "$(cat "$TMP/gone")" -ge 1900 ] || fail "it was gone after $(cat "$TMP/gone") ms"
}

# taken_away_locked DEVICE: while the module holds the lock of all network interfaces, of which it is told then.
taken_away_locked() {
	local locked=/sys/module/cmid/parameters/locked
	rm -f "$TMP/gone"
	wait_for 60 grep -qsx Y "$locked" && timeout 60 rdma link del "$1" &&
		grep -qx Y "$locked" && : >"$TMP/gone"
	echo 0 >"$locked"
}
# told_of_the_end: the server at the other end of a connection, whose device stays, heard of its end. It ends then.
told_of_the_end() {
	ends_within 10 "$server" || { cat "$TMP/server"; kill "$server"; fail "it waits still"; }
	grep "DISCONNECT EVENT" "$TMP/server" || { cat "$TMP/server"; return 1; }
}
if ! wanted device; then
	:
elif [ -e cmid.ko ]; then
	$PEER rping -s -a "$B4" -p 7174 >"$TMP/server" 2>&1 & server=$!
	check "a server at another device" await_listener "comm rping"
	taken_away rxe0 "dst-addr $A4:" &
	tests cmid removal="$gone" peer="$B4" <<<"the device goes"
	check "and is gone" wait_for 60 test -s "$TMP/gone"
	check "when the last identifier is" stayed
	check "and the peer is told" told_of_the_end
	check "and comes" rdma link add rxe0 type rxe netdev v0

	# C leaves the groups of the device while it takes it away, and waits for the lock.
	if [ "$(cm-use)" != c ]; then
		taken_away_locked rxe0 &
		tests cmid lock=1 <<<"a group's device goes"
		check "and is gone, whoever has the lock of the interfaces" wait_for 60 test -e "$TMP/gone"
		check "and comes once more" rdma link add rxe0 type rxe netdev v0
	else
		skip "a group's device goes" "C waits for the lock of the interfaces then (differences.rst)"
	fi
else
	skip "cmid whose device goes" "there is no cmid.ko"
fi

if ! wanted iwarp; then
	:
elif has_siw; then
	check "siw0" siw0
	tests cmid device=siw0 ipv4="$C4" <<'END'
a connection over iWARP
data at once over iWARP
rejections over iWARP
a wildcard listener over iWARP
identifiers destroyed over iWARP
destroyed in haste over iWARP
END
	# C tells of the connection with the lock of its handler, which who accepts has.
	if [ "$(cm-use)" != c ]; then
		tests cmid device=siw0 ipv4="$C4" stuck=1 <<<"an accept that does not return over iWARP"
	else
		skip "an accept that does not return over iWARP" "all of iWARP waits for it then (differences.rst)"
	fi
	check "siw0 goes" no_siw0
else
	skip "iWARP" "this kernel has no siw, and there is no siw.ko (tools/siw)"
fi

# Connections over InfiniBand have alternate paths. No function sends a LAP: the module makes one.
alternate_paths() {
	tests ibcm device=ib_a other=ib_b proposes=1 <<'END'
an alternate path
an alternate path that is proposed
END
	# C refuses the first, and has references too few after the second. It takes any path in a LAP.
	if [ "$(cm-use)" != c ]; then
		tests ibcm device=ib_a other=ib_b migrates=1 <<'END'
an alternate path to nowhere
queue pairs that migrate
alternate paths that are proposed, and are none
END
	else
		skip "queue pairs that migrate" "C drops references of the GID then (upstream-bugs.rst)"
	fi
}

if ! wanted ib; then
	:
elif has_softib; then
	check "two ports, IPoIB, a subnet administrator" softib_up "${CMID_SUBNET[@]}"
	tests ibcm device=ib_a other=ib_b <<<"$IBCM_TESTS
$IBCM_RIVALS"
	alternate_paths
	cmid_over_ib
	if [ -e cmid.ko ]; then
		taken_away ib_a &
		tests cmid device=ib_a ipv4="$I4" removal="$gone" <<<"the device goes"
		check "and is gone" wait_for 60 test -e "$TMP/gone"
		check "and comes" softib_a_again
	fi
	check "the ports go" softib_down
else
	skip "InfiniBand" "there is no softib.ko (tools/softib)"
fi

# The alternate path is that between the second LIDs of both ports.
if ! wanted lids; then
	:
elif has_softib; then
	SOFTIB_LMC=1
	check "two ports of two LIDs each" softib_up
	check "whose first LID is even" grep -qx 0x2 /sys/class/infiniband/ib_a/ports/1/lid
	alternate_paths
	conformance 'ib.alternate_*'
	check "the ports go" softib_down
else
	skip "InfiniBand" "there is no softib.ko (tools/softib)"
fi
finish
