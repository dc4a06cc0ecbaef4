# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The test modules in ../consumer, whose tests are cases of a suite. To be sourced after lib.sh.

# said MODULE NUMBER NAME: what the module said about a test, since it was loaded.
said() {
	grep -F "$1: ok $2 - $3" "$TMP/said" || { cat "$TMP/said"; return 1; }
}

whole() {
	[ "$3" -eq 0 ] || fail "insmod: $3" || { cat "$TMP/said"; return 1; }
	grep -qx "$1: 1..$2" "$TMP/said" || fail "another number of tests" || return
	rmmod "$1"
}

# tests MODULE [PARAMETER...]: its tests are named on standard input.
tests() {
	local module=$1 number=0 status=0 name mark
	shift
	if [ ! -e "$module.ko" ]; then
		skip "$module" "there is no $module.ko"
		return
	fi
	# The log is not cleared: what is in it is for others, too.
	mark="consumer: mark $(date +%s%N)"
	echo "$mark" >/dev/kmsg
	insmod "$module.ko" "$@" || status=$?
	dmesg | sed -n "1,/$mark/d; s/^.*\($module: .*\)/\1/p" >"$TMP/said"
	while read -r name; do
		number=$((number + 1))
		check "$name" said "$module" "$number" "$name"
	done
	check "$module${*:+ with $*} loads and unloads" whole "$module" "$number" "$status"
}

# The tests of ibcm without parameters that choose others; over Omni-Path, those that are not of rivals.
# shellcheck disable=SC2034
IBCM_TESTS='an unused identifier
listeners
a connection from outside
a connection in callbacks
an alternate path
rejections
data before the RTU
identifiers destroyed in each state
parameters
refused, then sent from another device
nobody answers
questions
texts
destroyed in haste'
# shellcheck disable=SC2034
IBCM_RIVALS='one service, two kinds of listeners at once
one service, two owners at once who may not have it
one service, two owners at once of whom one goes'

# The tests of cmid that need no parameters.
CMID_TESTS='nobody is asked
an unused identifier
texts
addresses
options
resolution
listeners
a connection from outside
a connection in callbacks
parameters
rejections
extensions
data before the RTU
callbacks held back
a request that waits
a request that is destroyed while it is told
queue pairs
queue pairs in each state
callbacks that want no more
identifiers destroyed in each state
datagrams
groups
destroyed in haste'

# C gives up a connection whose queue pair another one claims.
CLAIMS_END=N
[ "$(cm-use)" != c ] || CLAIMS_END=Y

# A service at the port ib_a itself, and somebody who is not there: options of softib_up.
CMID_SUBNET=(--node fe80::98=98 --service id=0x10000000cafe,name=cafe,gid=fe80::5054:ff:fe72:6d01)

# cmid_over_ib: the tests of cmid over ib_a, which need that subnet.
cmid_over_ib() {
	local nobody=80:00:00:98:fe:80:00:00:00:00:00:00:00:00:00:00:00:00:00:98
	ip neigh replace 10.78.0.98 lladdr $nobody dev "$(ipoib_of ib_a)" nud permanent
	tests cmid device=ib_a ipv4="$I4" claims_end="$CLAIMS_END" <<<"$CMID_TESTS
services
nobody answers"
}
