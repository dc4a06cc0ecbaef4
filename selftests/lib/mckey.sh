# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# mckey at both ends of a group. To be sourced, after lib.sh.

# mckey_pair RECEIVER-OPTIONS SENDER-OPTIONS [COMMAND...]: a receiver in the other namespace, which waits for a few messages
# of many. COMMAND has to succeed while it is a member. Senders follow each other until the receiver has its messages: a
# sender ends when it has posted its own, and takes with it those that soft-RoCE has not sent, which are nearly all if the
# host is busy.
mckey_pair() {
	local receiver status=0 senders=0 receive=$1 send=$2
	shift 2
	: >"$TMP/receiver"
	: >"$TMP/sender"
	packets >"$TMP/packets"
	# shellcheck disable=SC2086 # options are words
	$PEER stdbuf -oL timeout $((90 * PATIENCE)) mckey $receive >"$TMP/receiver" 2>&1 &
	receiver=$!
	wait_for 20 grep -q "joined dgid" "$TMP/receiver" || { status=1; echo "the receiver has not joined"; }
	[ $# -eq 0 ] || "$@" || { status=$?; echo "status $status of $1"; }
	while [ "$status" -eq 0 ] && [ "$senders" -lt 10 ]; do
		# shellcheck disable=SC2086 # options are words
		stdbuf -oL timeout $((60 * PATIENCE)) mckey -s $send >>"$TMP/sender" 2>&1 || { status=$?; echo "sender: $status"; }
		senders=$((senders + 1))
		! wait_for 3 eval "! runs $receiver" || break
	done
	ends_within 5 "$receiver" || { status=$?; echo "receiver: $status"; }
	cat "$TMP/receiver" "$TMP/sender"
	[ "$(grep -c "return status 0" "$TMP/receiver")" -eq 1 ] || status=1
	[ "$(grep -c "return status 0" "$TMP/sender")" -eq "$senders" ] || status=1
	[ "$status" -eq 0 ] || { echo "packets before and after:"; cat "$TMP/packets"; packets; }
	return "$status"
}

# packets: what the interfaces, IPv6 and the devices of both ends have sent and received.
packets() {
	local prefix
	rdma statistic show
	for prefix in "" "$PEER"; do
		$prefix grep -hE ":|^(Ip|Udp)6.*(Mcast|Discards|Datagrams|Errors)" /proc/net/dev /proc/net/snmp6
	done
}
