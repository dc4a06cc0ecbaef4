#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The main job, for a person to look at: unmodified rping over soft RoCE between
# two network namespaces, through whichever connection manager is loaded. Runs in
# a guest: tools/guest --cm rust -- selftests/demo.sh
set -uo pipefail

server=10.0.0.2
log=/tmp/rping-server.log
failures=0

say() {
	printf '\n--- %s\n' "$*"
}

check() {
	local what=$1
	shift
	if "$@"; then
		echo "ok: $what"
	else
		echo "NOT OK: $what"
		failures=$((failures + 1))
	fi
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

has_cm_id() {
	rdma resource show cm_id | grep "state $1 .*comm rping" >/dev/null
}

lines_in_log() {
	[ "$(grep -c "$1" "$log")" -ge "$2" ]
}

say "Kernel"
uname -srv

say "Connection manager: $(cm-use)"
lsmod | grep -E '^(Module|ib_|rdma_|iw_cm|rust_rdma_cm)'

say "RDMA devices (rxe1 is that of network namespace \"peer\")"
rdma link

say "rping server in \"peer\" and client here: ten pings"
ip netns exec peer stdbuf -oL rping -s -P -v -a "$server" >"$log" 2>&1 &
server_pid=$!
check "the server listens" wait_for 10 has_cm_id LISTEN
timeout 60 stdbuf -oL rping -c -v -C 10 -a "$server" >/tmp/rping-client.log 2>&1
status=$?
sed 's/^/client: /' /tmp/rping-client.log
wait_for 10 lines_in_log 'DISCONNECT' 1
sed 's/^/server: /' "$log"
check "client status is 0" test "$status" -eq 0
check "the client had ten pings" test "$(grep -c '^ping data' /tmp/rping-client.log)" -eq 10
check "the server had ten pings" test "$(grep -c '^server ping data' "$log")" -eq 10
check "the server saw the disconnection" lines_in_log 'DISCONNECT EVENT' 1

say "rdma resource show cm_id, during a second connection"
rping -c -C 1000000 -a "$server" >/dev/null 2>&1 &
client_pid=$!
check "it is connected" wait_for 10 has_cm_id CONNECT
kill -STOP "$client_pid"
rdma resource show cm_id
rdma resource show

say "The client is killed (kill -9): its peer must notice"
kill -KILL "$client_pid"
wait "$client_pid" 2>/dev/null
check "the server saw the disconnection" wait_for 20 lines_in_log 'DISCONNECT EVENT' 2
grep 'DISCONNECT' "$log" | sed 's/^/server: /'

say "The server ends, then the module is removed"
kill -TERM "$server_pid"
wait "$server_pid" 2>/dev/null
no_cm_ids() {
	[ -z "$(rdma resource show cm_id)" ]
}
check "no cm_id is left" wait_for 5 no_cm_ids
check "rmmod" cm-use none
lsmod | grep -E '^(Module|ib_|rdma_|iw_cm|rust_rdma_cm)'

say "Kernel log"
dmesg | grep -E 'rust_rdma_cm|infiniband|rdma' | grep -v 'Command line\|command line'
check "no warning in the kernel log" kernel-log-clean

say "$([ "$failures" -eq 0 ] && echo "Everything as it should be" || echo "$failures checks FAILED")"
[ "$failures" -eq 0 ]
