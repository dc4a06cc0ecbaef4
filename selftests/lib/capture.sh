# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Captures of CM messages for tools/wirecheck. To be sourced.

# capture_start INTERFACE FILE: not data, only datagrams of QP 1. INTERFACE "infiniband" stands for those
# that are below devices of tools/softib, and need not be there yet; not what goes to the sender's own port.
# tcpdump does not look into UDP over IPv6 by itself.
capture_start() {
	local interface=$1
	local what='udp dst port 4791 and ((ip and udp[8] == 0x64) or (ip6 and ip6[48] == 0x64))'
	CAPTURED=$1 CAPTURE_LOG=/tmp/tcpdump.$$.log
	if [ "$1" = infiniband ]; then
		interface=any
		# From or to QP 1; where these numbers are depends on whether there is a GRH, and whether the LIDs
		# are those of Omni-Path, whose upper halves are behind the LRH.
		what="udp dst port 4792 and ((udp[9] & 3 == 2 and udp[16] == 0x64 and
			(udp[20:4] & 0xffffff == 1 or udp[32:4] & 0xffffff == 1)) or
			(udp[9] & 3 == 3 and udp[56] == 0x64 and
			(udp[60:4] & 0xffffff == 1 or udp[72:4] & 0xffffff == 1)) or
			(udp[8] & 15 == 1 and udp[9] & 3 == 2 and udp[20] == 0x64 and
			(udp[24:4] & 0xffffff == 1 or udp[36:4] & 0xffffff == 1)) or
			(udp[8] & 15 == 1 and udp[9] & 3 == 3 and udp[60] == 0x64 and
			(udp[64:4] & 0xffffff == 1 or udp[76:4] & 0xffffff == 1)))"
	fi
	tcpdump -B 65536 -i "$interface" -U -w "$2" "$what" 2>"$CAPTURE_LOG" &
	TCPDUMP=$!
	until grep -q "listening on" "$CAPTURE_LOG" || ! kill -0 "$TCPDUMP" 2>/dev/null; do
		sleep 0.05
	done
}

# capture_end FROM TO: it is all there.
capture_end() {
	# The last messages may still be in the buffer.
	sleep 1.5
	kill "$TCPDUMP" 2>/dev/null
	while kill -0 "$TCPDUMP" 2>/dev/null; do sleep 0.05; done
	! grep -v '^0 packets dropped' "$CAPTURE_LOG" | grep 'dropped by' || return
	if [ "$CAPTURED" = infiniband ]; then
		"$(dirname "${BASH_SOURCE[0]}")/ibpcap.py" "$1" "$2"
	else
		cp "$1" "$2"
	fi
}
