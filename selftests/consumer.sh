#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Modules (of consumer/) that call every function of <rdma/ib_cm.h> and of <rdma/rdma_cm.h>, in
# every state. Needs ibcm.ko and cmid.ko in the current directory; the latter once more over iWARP,
# where there is siw.
# seconds: 400
# shellcheck source=selftests/lib.sh
. "$(dirname "$0")/lib.sh"

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

tests ibcm <<'END'
an unused identifier
listeners
a connection from outside
a connection in callbacks
rejections
data before the RTU
identifiers destroyed in each state
parameters
nobody answers
questions
texts
destroyed in haste
END

# An address of nobody that does not have to be looked for.
ip neigh replace 10.0.0.98 lladdr 02:00:00:00:00:98 dev v0 nud permanent
tests cmid <<'END'
nobody is asked
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
queue pairs
queue pairs in each state
callbacks that want no more
identifiers destroyed in each state
datagrams
groups
destroyed in haste
nobody answers
END
ip neigh del 10.0.0.98 dev v0

# Its device goes as soon as it is used.
taken_away() {
	wait_for 60 cm_id_in ROUTE_RESOLVED && timeout 60 rdma link del rxe0 && : >"$TMP/gone"
}
if [ -e cmid.ko ]; then
	# What is said then. C has another word for it, which NFS does not try again after.
	gone=103
	[ "$(cm-use)" != c ] || gone=22
	taken_away &
	tests cmid removal="$gone" <<'END'
the device goes
END
	check "and is gone" wait_for 60 test -e "$TMP/gone"
	check "and comes" rdma link add rxe0 type rxe netdev v0
else
	skip "cmid whose device goes" "there is no cmid.ko"
fi

if has_siw; then
	check "siw0" siw0
	tests cmid device=siw0 ipv4="$C4" <<'END'
a connection over iWARP
data at once over iWARP
rejections over iWARP
a wildcard listener over iWARP
identifiers destroyed over iWARP
destroyed in haste over iWARP
END
	check "siw0 goes" no_siw0
else
	skip "iWARP" "this kernel has no siw, and there is no siw.ko (tools/siw)"
fi
finish
