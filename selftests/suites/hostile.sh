#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Users who mean harm to others. A case for each row of Documentation/security.rst: what happens with C is what its cases
# expect with C, so that each shows the harm that this module prevents.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/softib.sh
. "$SELFTESTS/lib/softib.sh"

compiled hostile hostile
HOSTILE=$program

# act ACT ARGUMENT...: sets what it prints, words NAME=NUMBER, as variables, those of the caller if it has some.
act() {
	local found word
	"$HOSTILE" "$@" >"$TMP/found" || fail "$*: $?" || return
	found=$(tr '\n' ' ' <"$TMP/found")
	echo "# $*: $found" | tee -a "$TMP/shown"
	[[ $found =~ ^([a-z_]+=-?[0-9]+[[:space:]]*)+$ ]] || fail "other words" || return
	for word in $found; do printf -v "${word%%=*}" %s "${word#*=}"; done
}

# with C RUST: what is expected of the one that is loaded.
with() {
	if [ "$CM" = c ]; then echo "$1"; else echo "$2"; fi
}

shown() {
	[ ! -e "$TMP/shown" ] || cat "$TMP/shown"
	rm -f "$TMP/shown"
}

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
check "ids of another user cannot be told from none" oracle
shown
finish
