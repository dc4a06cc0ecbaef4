#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The time of calls beside a user who holds very many of something and goes on using it: at most twice that of calls beside
# a user who holds one, or none. Rows 7, 8 and 12 of Documentation/security.rst. And the time of a server's own calls beside
# many connections. In counted time (tools/check does so), as the time on the wall of a busy host says nothing.
#
# With LONG=1 the user holds four times as many.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/softib.sh
. "$SELFTESTS/lib/softib.sh"
# shellcheck source=selftests/lib/hostile.sh
. "$SELFTESTS/lib/hostile.sh"

# compare CALL...: no call takes more than twice as long beside many as beside few; with C, some do.
compare() {
	local call few many slower=0
	for call; do
		few=${call}_few many=${call}_many
		[ "${!many}" -gt $((2 * ${!few})) ] || continue
		echo "$call: ${!few} ns, then ${!many} ns"
		slower=$((slower + 1))
	done
	if [ "$CM" = c ]; then
		[ "$slower" -gt 0 ] || fail "C is as quick"
	else
		[ "$slower" -eq 0 ] || fail "$slower calls are slower"
	fi
}

# The calls of a server with many connections in one channel cost at most 10 % more than with 100: with C, too.
connections() {
	local call few many dearer=0
	act connections "$CONNECTIONS" || return
	for call in query_{addr,path,gid} get_{request,established,disconnected} destroy_{disconnected,established}; do
		few=${call}_few many=${call}_many
		[ $((10 * ${!many})) -gt $((11 * ${!few})) ] || continue
		echo "$call: ${!few} ns, then ${!many} ns"
		dearer=$((dearer + 1))
	done
	[ "$dearer" -eq 0 ] && nothing_left 60
}

# 12: "ACT [COUNT]" CALL...: calls beside what ACT holds
held() {
	# shellcheck disable=SC2086 # words
	act $1 && compare "${@:2}" && nothing_left 60
}

# The same beside the owners of all ports of a range.
held_ports() {
	local range=/proc/sys/net/ipv4/ip_local_port_range before status=0
	before=$(<$range) && echo "$PORTS" >$range || return
	held ports "$@" || status=$?
	echo "$before" >$range && return "$status"
}

# 7: as many unanswered connections as there are address handles do not keep others from connecting
SOFTIB_HANDLES=1023
exhaust() {
	local tried asked before beside status=0
	softib_up || return
	# Messages to LIDs of nobody do not wait for a neighbour.
	ip route add 10.77.16.0/20 via 10.77.0.2 &&
		act exhaust "$I4" "$J4" "$SOFTIB_HANDLES" || status=$?
	softib_down && [ "$status" -eq 0 ] || return
	[ "$before" -eq 600 ] || fail "before: $before" || return
	[ "$asked" -eq "$tried" ] || fail "$asked of $tried" || return
	[ "$beside" -eq 600 ] || fail "beside: $beside" || return
	compare connected
}

# 8: connections to another listener of the user whose listener is flooded, which C does not delay either
beside_flood() {
	local connect_few connect_many
	act beside_flood || return
	[ "$connect_many" -le $((2 * connect_few)) ] || fail "$connect_few ns, then $connect_many ns" || return
	nothing_left 60
}

# More than a user may have, by default, so that it shows.
[ "$CM" = c ] || echo 65536 >/proc/sys/net/rdma_ucm/max_user_memberships

OWNERS=3500 EVENTS=7500 PORTS="32768 39999" CONNECTIONS=3000
[ -z "${LONG-}" ] || OWNERS=14000 EVENTS=30000 PORTS="32768 60999" CONNECTIONS=20000
check "calls beside many owners of a port" held "owners $OWNERS" \
	own bind_here bind_elsewhere refused_here any_here any_elsewhere
check "calls beside the owners of all ephemeral ports" held_ports \
	own bind_here bind_elsewhere any_here any_elsewhere resolve_here resolve_elsewhere
check "calls beside many unread events" held "events $EVENTS" own bind_here bind_elsewhere
check "many unread events move to another file" held "moved $EVENTS" own
check "calls of a server with many connections" connections
case="connections beside as many unanswered ones as there are address handles"
if ! has_softib; then
	skip "$case" "there is no softib"
elif [ "$CM" = c ]; then
	skip "$case" "C: queries for paths over softib time out before anybody asks"
else
	check "$case" exhaust
fi
shown
forgers replace || exit
check "connections to another listener beside a flood" beside_flood
forgers del || exit
shown
finish
