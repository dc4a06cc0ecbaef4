# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Captures of CM messages for tools/wirecheck. To be sourced.

# capture_start INTERFACE FILE: not data, only datagrams of QP 1. tcpdump does not look
# into UDP over IPv6 by itself.
capture_start() {
	local log=/tmp/tcpdump.log roce='udp dst port 4791'
	tcpdump -B 65536 -i "$1" -U -w "$2" \
		"$roce and ((ip and udp[8] == 0x64) or (ip6 and ip6[48] == 0x64))" 2>$log &
	TCPDUMP=$!
	until grep -q "listening on" $log || ! kill -0 "$TCPDUMP" 2>/dev/null; do
		sleep 0.05
	done
}

# capture_end FROM TO: it is all there.
capture_end() {
	# What was seen last may still be in the buffer.
	sleep 1.5
	kill "$TCPDUMP" 2>/dev/null
	while kill -0 "$TCPDUMP" 2>/dev/null; do sleep 0.05; done
	! grep -v '^0 packets dropped' /tmp/tcpdump.log | grep 'dropped by' && cp "$1" "$2"
}
