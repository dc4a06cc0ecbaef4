# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The functions that the scripts of two-guests.sh about storage share, besides lib.sh: the wire
# between the guests, and what can go of it and come back. To be sourced by a script with the
# arguments NUMBER CM CM.

# shellcheck source=selftests/pairs/meet.sh
. "$SELFTESTS/pairs/meet.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"

# The devices on the wire, for storage.sh.
# shellcheck disable=SC2034
DEVICE=rxe2 DEVICE_TYPE=rxe NETDEV=eth0

# A task that waits for a link that is down, or for a server, is not hung.
echo 300 >/proc/sys/kernel/hung_task_timeout_secs

# needs_programs WHAT: ends the script where there are none.
needs_programs() {
	use_storage programs.sqfs || {
		skip "$1 between two guests" "there is no image of programs (tools/storage)"
		finish
	}
}

# cable off|on: of this guest. "ip link set eth0 down" is something else: what rxe has to send then
# ends its queue pair 1, and nobody finds this end any more.
cable() {
	local carrier=0
	[ "$1" = off ] || carrier=1
	echo "$1" >/run/guest/cable
	wait_for 160 eval "[ \"\$(</sys/class/net/eth0/carrier)\" = $carrier ]" || fail "the cable is not $1"
}

# unplug_server COMMAND...: the device goes, and comes back once the client has noticed; COMMAND brings back
# what went with it.
unplug_server() {
	hear idle || return
	unplug || return
	say gone
	hear noticed || return
	plug && "$@" || return
	say back
	hear verified
}

# unplug_client WHAT COMMAND...: what was connected is given up meanwhile. COMMAND succeeds once WHAT is there
# again.
unplug_client() {
	local before
	before=$(cm_ids)
	say idle
	hear gone || return
	# shellcheck disable=SC2016 # for each time
	wait_for 160 eval '[ "$(cm_ids)" != "$before" ]' || fail "still connected: $before" || return
	say noticed
	hear back || return
	timed "$1 again after the server's device came back, $CM client" "${@:2}" || return
	say verified
}
