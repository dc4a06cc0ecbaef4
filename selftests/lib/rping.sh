# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# rping as a program whose status says whether its work was done. To be sourced; needs $TMP and $PATIENCE.

# These are the reports of an rping that finds nothing wrong.
RPING_REPORTS='(server )?ping data: .*|(client|server) DISCONNECT EVENT\.\.\.|wait for RDMA_READ_ADV state 10'
# Its main thread closes the channel at the very end. Its thread for events exits with 255 if it looks at the channel
# after that, over any connection manager.
RPING_CHANNEL_CLOSED='rdma_get_cm_event: Bad file descriptor'

# run_rping PREFIX SECONDS OPTION...: rping, which ends within SECONDS, with 0 if its work was done.
run_rping() {
	local prefix=$1 seconds=$2 status=0 out
	shift 2
	out=$(mktemp -p "$TMP")
	# shellcheck disable=SC2086 # a prefix is a command
	$prefix timeout $((seconds * PATIENCE)) rping "$@" >"$out" 2>&1 || status=$?
	cat "$out"
	if [ "$status" -eq 255 ] && grep -aqxF "$RPING_CHANNEL_CLOSED" "$out" &&
		! grep -avxE "$RPING_REPORTS" "$out" | grep -avqxF "$RPING_CHANNEL_CLOSED"; then
		status=0
	fi
	rm -f "$out"
	return "$status"
}
