# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The functions that the suites of libraries above librdmacm share, besides lib.sh: servers are in the namespace "peer".
# To be sourced.

# shellcheck source=selftests/lib/image.sh
. "$SELFTESTS/lib/image.sh"

# use_middleware [FILE...]: the programs of tools/middleware from here on. Ends the suite where they or these files are not
# there.
use_middleware() {
	local file
	for file in middleware.sqfs "$@"; do
		[ -e "$file" ] || {
			skip "all of it" "there is no $file (tools/middleware)"
			finish
		}
	done
	use_image middleware.sqfs || exit
}

# serve COMMAND...: sets "server", whose output is in $TMP/server, and waits until it listens.
serve() {
	local comm
	comm="comm $(comm_of "$1")"
	$PEER "$@" >"$TMP/server" 2>&1 & server=$!
	# Some of them take seconds to start in an emulated guest.
	wait_for 120 cm_id_in LISTEN "$comm" && await_listener "$comm" || fail "$(cat "$TMP/server")"
}

# The device that clients use goes and comes.
DEVICE=rxe0
plug() {
	rxe_again rxe0 v0
}

# comm_of PROGRAM: its name, as the kernel has it.
comm_of() {
	local name=${1##*/}
	echo "${name:0:15}"
}

# connections COMMAND: how many ends this program has.
connections() {
	cm_ids | grep -c "state CONNECT .*comm $(comm_of "$1")"
}

# has_connections COMMAND NUMBER
has_connections() {
	[ "$(connections "$1")" -eq "$2" ]
}

# await_connections COMMAND NUMBER [SECONDS]
await_connections() {
	wait_for "${3:-60}" has_connections "$1" "$2" || fail "not $2 ends: $(cm_ids)"
}

# client SECONDS COMMAND...: a client that has that time, with the output in $TMP/client.
client() {
	timeout $(($1 * PATIENCE)) "${@:2}" >"$TMP/client" 2>&1 || fail "status $?: $(tail -n 30 "$TMP/client")"
}

# fails PID: it ends, and not with success.
fails() {
	local status=0
	ends_within 60 "$1" || status=$?
	[ "$status" -ne 0 ] && [ "$status" -ne 99 ] || fail "status $status"
}

# closed: the server is ended, and nothing is left.
closed() {
	end "$server" && nothing_left 30
}

# unloads: nobody has the connection manager any more.
unloads() {
	cm-use none && cm-use "$CM"
}

# requests: how many a device here has sent and got.
requests() {
	local file sum=0
	for file in /sys/class/infiniband/rxe0/ports/1/cm_{tx,rx}_msgs/req; do
		sum=$((sum + $(<"$file")))
	done
	echo "$sum"
}
