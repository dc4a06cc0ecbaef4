#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The events of rdma-cm monitor, against what happens to connections: who is told of what, and how often.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/admin.sh
. "$SELFTESTS/lib/admin.sh"

if [ "$CM" = c ]; then
	skip "rdma-cm monitor" "C has no such netlink family (suite admin)"
	finish
fi
MONITORS=()

# listen NAME [PREFIX...]: a monitor whose events go to $TMP/NAME; its number is MONITOR.
listen() {
	local name=$1
	shift
	"$@" "$TOOL" -j monitor >"$TMP/$name" & MONITOR=$!
	MONITORS+=($MONITOR)
	wait_for 20 hears "$MONITOR" "$@" || fail "no monitor: $("$@" cat /proc/net/netlink)"
}

# deaf: the monitors end, as a user ends them.
deaf() {
	local monitor
	for monitor in "${MONITORS[@]}"; do
		kill -INT "$monitor" && wait "$monitor" || fail "a monitor: $?" || return
	done
	MONITORS=()
}

# heard NAME FILTER: is there such an event?
heard() {
	jq -es "map(select($2)) | length > 0" "$TMP/$1" >/dev/null
}

# expect NAME FILTER: there is such an event soon.
expect() {
	wait_for 20 heard "$@" || fail "$1: no $2 in $(cat "$TMP/$1")"
}

# Nobody listens on the port.
refuse() {
	! timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7331 -C 1 >"$TMP/out" 2>&1
}

refused_events() {
	local reason='."reason-name" == "invalid service ID" and .reason == 8'
	ip netns add third && ip -n third link set lo up || return
	# shellcheck disable=SC2086 # words
	listen own && listen peer $PEER && listen third ip netns exec third || return
	refuse || return
	expect own ".event == \"refused\" and .refusal == \"received\" and $reason and .dst == \"$B4:7331\" and
		(.src | startswith(\"$A4:\")) and .\"dev-name\" == \"rxe0\" and .port == 1" || return
	expect peer ".event == \"refused\" and .refusal == \"sent\" and $reason and .src == \"$B4:7331\" and
		(.dst | startswith(\"$A4\")) and .\"dev-name\" == \"rxe1\" and .\"service-id\" == 17177763" || return
	# Each namespace has its own events, once.
	[ "$(jq -s length "$TMP/own")" -eq 1 ] || fail "$(cat "$TMP/own")" || return
	! heard peer '.refusal == "received"' || fail "$(cat "$TMP/peer")" || return
	[ ! -s "$TMP/third" ] || fail "$(cat "$TMP/third")" || return
	deaf && ip netns del third || return
	# As a line.
	"$TOOL" monitor >"$TMP/lines" & MONITORS=($!)
	as_line() {
		refuse && grep -Eq "^[0-9-]+T[0-9:.]+Z rxe0/1 refused $A4:[0-9]+ > $B4:7331: REJ received, invalid service ID \\(8\\)$" \
			"$TMP/lines"
	}
	wait_for 20 as_line || fail "$(cat "$TMP/lines")" || return
	deaf
}
check "monitor: a refusal, at both ends and nowhere else" refused_events

# Datagrams to a port on which nobody listens.
refused_datagrams() {
	local reason='.phase == "sidr-req" and ."reason-name" == "service ID not supported" and .reason == 1'
	# shellcheck disable=SC2086 # words
	listen own && listen peer $PEER || return
	! timeout $((30 * PATIENCE)) udaddy -s "$B4" -c 1 >"$TMP/out" 2>&1 || fail "it is served" || return
	expect own ".event == \"refused\" and .refusal == \"received\" and $reason and .dst == \"$B4:7174\" and
		.\"dev-name\" == \"rxe0\" and .port == 1" || return
	expect peer ".event == \"refused\" and .refusal == \"sent\" and $reason and .src == \"$B4:7174\" and
		(.dst | startswith(\"$A4\")) and .\"dev-name\" == \"rxe1\"" || return
	[ "$(jq -s length "$TMP/own") $(jq -s length "$TMP/peer")" = "1 1" ] || fail "$(cat "$TMP/own" "$TMP/peer")" || return
	deaf
}
check "monitor: a refused datagram, at both ends" refused_datagrams

refused_iwarp() {
	local status=0
	siw0 && listen own || return
	! timeout $((30 * PATIENCE)) rping -c -a "$C4" -p 7333 -C 1 >"$TMP/out" 2>&1 || fail "it is served" || status=1
	expect own ".event == \"refused\" and .refusal == \"received\" and .\"reason-name\" == \"connection refused\" and
		.reason == null and .dst == \"$C4:7333\" and .\"dev-name\" == \"siw0\"" || status=1
	deaf && no_siw0 && return "$status"
}
if has_siw; then
	check "monitor: a refusal over iWARP" refused_iwarp
else
	skip "monitor: a refusal over iWARP" "there is no siw"
fi

# The server is stopped, and nobody has the other address.
gave_up_events() {
	serve && kill -STOP "$(peer_json '.[0].pid' show listeners)" && "$TOOL" tune set rxe0 deadline-ms=700 || return
	listen own || return
	! timeout $((60 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 >"$TMP/out" 2>&1 || return
	expect own ".event == \"gave-up\" and .phase == \"req\" and .retries >= 0 and .dst == \"$B4:7330\" and .port == 1" || return
	! timeout $((60 * PATIENCE)) rping -c -a "${A4%.*}.77" -p 7330 -C 1 >"$TMP/out" 2>&1 || return
	expect own ".event == \"gave-up\" and .phase == \"address\" and .dst == \"${A4%.*}.77:7330\"" || return
	"$TOOL" tune set rxe0 deadline-ms=0 && kill -CONT "$(peer_json '.[0].pid' show listeners)" && deaf && stop
}
check "monitor: a peer that does not answer" gave_up_events

limit_events() {
	local limit before
	limit=/proc/sys/net/rdma_ucm/max_user_ids before=$(</proc/sys/net/rdma_ucm/max_user_ids)
	serve && connect $OWNER && wait_for 20 established 1 && listen own || return
	echo 1 >"$limit"
	! as $OWNER timeout $((30 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 >"$TMP/out" 2>&1 || fail "no limit" || return
	echo "$before" >"$limit"
	expect own ".event == \"limit\" and .uid == $OWNER and .resource[0] == {\"name\": \"ids\", \"limit\": 1}" || return
	deaf && stop
}
check "monitor: a limit that a user has reached" limit_events

device_events() {
	local connections
	serve && connect $OWNER && connect $OTHER && wait_for 20 established 2 || return
	# shellcheck disable=SC2086 # words
	listen own && listen peer $PEER || return
	timeout $((60 * PATIENCE)) $PEER rdma link del rxe1 || return
	expect peer '.event == "device-gone" and ."dev-name" == "rxe1" and .connections >= 2' || return
	connections=$(jq -s 'map(select(.event == "device-gone" and .connections > 0)) | length' "$TMP/own")
	[ "$connections" -eq 0 ] || fail "$(cat "$TMP/own")" || return
	deaf && kill "${CLIENTS[@]}" "$SERVER"
	wait
	CLIENTS=()
	$PEER rdma link add rxe1 type rxe netdev v1 && wait_for 20 no_cm_ids && serve && connect $OWNER &&
		wait_for 20 established 1 && stop
}
check "monitor: a device that goes, with its connections" device_events

who_listens() {
	ends_with 4 as $OWNER "$TOOL" monitor || return
	grep -q "not permitted" "$TMP/err" || return
	# The administrator of a container sees what is there.
	as $OWNER unshare --user --map-root-user --net timeout --preserve-status -s TERM 3 "$TOOL" monitor >"$TMP/out" ||
		fail "status $?" || return
	[ ! -s "$TMP/out" ]
}
check "monitor: for those with CAP_NET_ADMIN in the namespace" who_listens

# flood N: so many refused connections, 20 at a time.
flood() {
	/mnt/share/cmstorm client -a "$B4" -p 7331 -n "$1" -f 20 -t $((60 * PATIENCE)) >"$TMP/out" 2>&1 || :
}

flood_events() {
	local received start
	listen own || return
	start=$SECONDS
	flood 1000
	all() {
		[ "$(jq -s '[.[] | select(.refusal == "received" or .event == "lost") | .lost // 1] | add' "$TMP/own")" -ge 1000 ]
	}
	wait_for 20 all || fail "$(jq -sc 'group_by(.event) | map([.[0].event, length])' "$TMP/own")" || return
	received=$(jq -s 'map(select(.event == "refused")) | length' "$TMP/own")
	# 100 at once, and 50 a second.
	[ "$received" -ge 100 ] && [ "$received" -le $((100 + 50 * (SECONDS - start + 1))) ] || fail "$received events" || return
	expect own '.event == "lost" and ."dev-name" == "rxe0" and .port == 1 and .lost > 0' || return
	deaf
}
check "monitor: a flood is a bounded number of events, and all are counted" flood_events

# It does not read, and has room for little.
deaf_monitor() {
	local room
	room=$(</proc/sys/net/core/rmem_default)
	echo 4608 >/proc/sys/net/core/rmem_default
	listen slow
	echo "$room" >/proc/sys/net/core/rmem_default
	[ "${#MONITORS[@]}" -eq 1 ] || return
	kill -STOP "$MONITOR" && listen own || return
	flood 60
	serve && connect $OWNER && wait_for 20 established 1 || return
	expect own '.event == "refused"' || return
	kill -CONT "${MONITORS[0]}" || return
	expect slow '.event == "overrun"' || return
	refuse || return
	expect slow '.event == "refused"' || return
	deaf && stop
}
check "monitor: one that does not read disturbs nobody" deaf_monitor
finish
