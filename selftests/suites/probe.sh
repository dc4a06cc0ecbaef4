#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The suite checks the view of tools that look into a kernel: the function that they attach to, with
# its arguments, and lines for the log that dynamic debug switches on.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

TRACING=/sys/kernel/tracing
CONTROL=/proc/dynamic_debug/control
[ -e $CONTROL ] || CONTROL=/sys/kernel/debug/dynamic_debug/control

# The places in struct rdma_cm_id and struct rdma_cm_event (include/rdma/rdma_cm.h) that a program of
# BPF compiled for this kernel would read.
arguments=(
	'context=+8(%di):x64' 'handler=+24(%di):symbol'
	'family=+32(%di):u16' 'sport=+34(%di):u16' 'src=+36(%di):u32'
	'dport=+162(%di):u16' 'dst=+164(%di):u32'
	'event=+0(%si):u32' 'status=+4(%si):s32'
	'data=+8(%si):x64' 'len=+16(%si):u8' 'depth=+18(%si):u8'
)

# probed FILE COMMAND...: what the function was called with while the command runs.
probed() {
	local file=$1 status
	shift
	echo >$TRACING/trace
	# By its name alone, as bcc does.
	echo "p:selftests/ucma ucma_event_handler ${arguments[*]}" >>$TRACING/kprobe_events || return
	echo 1 >$TRACING/events/selftests/ucma/enable
	"$@"
	status=$?
	echo 0 >$TRACING/events/selftests/ucma/enable
	# Before it goes, with which the trace is emptied.
	grep -o 'context=.*' $TRACING/trace >"$file"
	echo '-:selftests/ucma' >>$TRACING/kprobe_events
	return "$status"
}

# As the processor reads them from the bytes of the network.
here=$((10 + (1 << 24))) there=$((10 + (2 << 24)))
port=$(((7310 >> 8) + ((7310 & 255) << 8)))

# Events of the active or the passive end, in order: "event/status".
events_of() {
	grep "$1" "$TMP/probed" | sed -E 's/.* event=([0-9]+) status=(-?[0-9]+) .*/\1\/\2/' | xargs
}

each_event_once() {
	probed "$TMP/probed" connection 7310 || return
	local active passive
	# The listener's port at this end or the other tells them apart.
	active=$(events_of "dport=$port ") passive=$(events_of "sport=$port ")
	# The end: told by the DREP, if that is quick enough, and the time wait.
	[[ "$active" =~ ^0/0\ 2/0\ 5/0(\ 10/0)?(\ 15/0)?$ ]] &&
		[[ "$passive" =~ ^4/0\ 9/0\ 10/0(\ 15/0)?$ ]] && return
	cat "$TMP/probed"
	fail "active: $active; passive: $passive"
}
check "an event of a program is one call of ucma_event_handler" each_event_once

# Checks the structures in the events that have them.
filled() {
	local line
	[ -s "$TMP/probed" ] || fail "nothing was probed" || return
	while read -r line; do
		[[ $line =~ ^context=0x[0-9a-f]{8,}\ handler=ucma_event_handler\+0x0/0x[0-9a-f]+\  ]] ||
			fail "context or handler: $line" || return
		[[ $line == *"family=2 "*"src=$here "*"dport=$port dst=$there "* ||
			$line == *"family=2 sport=$port src=$there "*"dst=$here "* ]] ||
			fail "addresses: $line" || return
	done < <(sed 's/ \[[a-z_]*\]//' "$TMP/probed")
	# A request has 56 bytes for the consumer, an answer 196; rping asks for one read at a time.
	grep -E ' event=4 .* data=0x[0-9a-f]{8,} len=56 depth=1$' "$TMP/probed" &&
		grep -E ' event=5 .* data=0x[0-9a-f]{8,} len=196 depth=1$' "$TMP/probed" &&
		grep -E ' event=10 .* data=0x0 len=0 depth=0$' "$TMP/probed" || {
		cat "$TMP/probed"
		return 1
	}
}
check "with addresses, status and parameters where C has them" filled

# lines_in_log COMMAND...: the lines of dynamic debug while the command runs.
lines_in_log() {
	local before status
	before=$(dmesg | wc -l)
	"$@"
	status=$?
	dmesg | tail -n +$((before + 1)) | grep -o 'RDMA CM: .*'
	return "$status"
}

# refused PORT: nobody is there.
refused() {
	timeout $((30 * PATIENCE)) rping -c -a "$B4" -p "$1" -C 1
	[ $? -ne 124 ]
}

# no_neighbour: an address of this network that nobody has.
no_neighbour() {
	timeout $((60 * PATIENCE)) rping -c -a 10.0.0.77 -p 7312 -C 1
	[ $? -ne 124 ]
}

MODULE=$CM_MODULE
[ "$CM" = rust ] || MODULE=rdma_cm

quiet_by_default() {
	lines_in_log refused 7311 >"$TMP/lines"
	[ ! -s "$TMP/lines" ] || { cat "$TMP/lines"; return 1; }
}

rejected_in_log() {
	echo "module $MODULE +p" >"$CONTROL" || return
	lines_in_log refused 7311 >"$TMP/lines"
	echo "module $MODULE -p" >"$CONTROL"
	cat "$TMP/lines"
	grep -q '^RDMA CM: REJECTED: [a-z]' "$TMP/lines"
}

unresolved_in_log() {
	echo "module $MODULE +p" >"$CONTROL" || return
	lines_in_log no_neighbour >"$TMP/lines"
	echo "module $MODULE -p" >"$CONTROL"
	cat "$TMP/lines"
	grep -q '^RDMA CM: ADDR_ERROR: .*status -[0-9]' "$TMP/lines"
}

# Each failure has a line that can be switched on, with the same start as C's.
occasions() {
	grep -F "[$MODULE]" "$CONTROL" | grep -o 'RDMA CM: [A-Z_]*' | sort | uniq -c |
		awk '{ print $4, $1 }' >"$TMP/own"
	cat >"$TMP/occasions" <<-'END'
		ADDR_ERROR 3
		CONNECT_ERROR 1
		MULTICAST_ERROR 1
		REJECTED 1
		ROUTE_ERROR 1
		SERVICE_ERROR 1
		UNREACHABLE 1
	END
	diff "$TMP/occasions" "$TMP/own"
}

if [ -e "$CONTROL" ]; then
	check "dynamic debug knows a line for each of nine failures" occasions
	check "nothing is logged unless it is asked for" quiet_by_default
	check "a refusal is logged with its reason" rejected_in_log
	check "an address that nobody has is logged" unresolved_in_log
else
	for name in "dynamic debug knows a line for each of nine failures" \
		"nothing is logged unless it is asked for" \
		"a refusal is logged with its reason" \
		"an address that nobody has is logged"; do
		skip "$name" "the kernel has no dynamic debug"
	done
fi
finish
