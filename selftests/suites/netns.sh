#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Devices that belong to one network namespace ("rdma system set netns exclusive").
# The setting can only change while there is one namespace: that of the guest's other
# device ends here.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

compiled ucma_conformance abi

one_namespace() {
	rdma link del rxe1
	rdma link del rxe0
	ip netns del peer
	wait_for 30 bash -c '! ip link show v0'
	ip link add v0 type veth peer name v1 &&
		ip addr add "$A4/24" dev v0 && ip addr add "$A6/64" dev v0 nodad &&
		ip link set v1 up && ip link set v0 up && rdma link add rxe0 type rxe netdev v0
}

mode() {
	# The end of a namespace takes its time.
	wait_for 30 rdma system set netns "$1"
	grep -q "netns $1" <<<"$(rdma system)" || fail "not $1"
}

cases() {
	"$program" "$@" >"$TMP/cases" 2>&1
	local status=$?
	cat "$TMP/cases"
	[ "$status" -eq 0 ] || return
	! grep -q '# SKIP' "$TMP/cases"
}

check "there is one namespace" one_namespace
check "devices of one namespace" mode exclusive
check "an id sees those of its own" cases netns.exclusive_devices
check "devices of all namespaces" mode shared
check "an id sees all" cases netns.connects_within
finish
