#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# valkey over RDMA: a server in the namespace "peer", which TCP reaches, too, and clients.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/middleware.sh
. "$SELFTESTS/lib/middleware.sh"

[ -e valkey/valkey-server ] || {
	skip "all of it" "there is no valkey with RDMA (tools/valkey)"
	finish
}

valkey_server() {
	serve valkey/valkey-server --save '' --protected-mode no --bind "$B4" --rdma-bind "$B4" --rdma-port 6379
}

# cli COMMAND...: over RDMA. tcp COMMAND...: over TCP.
cli() {
	timeout $((60 * PATIENCE)) valkey/valkey-cli -h "$B4" --rdma --raw "$@"
}
tcp() {
	timeout $((60 * PATIENCE)) valkey/valkey-cli -h "$B4" --raw "$@"
}

# same FILE KEY: the value is that, by either way.
same() {
	cli get "$2" >"$TMP/got" && cmp -n "$(stat -c %s "$1")" "$1" "$TMP/got" || fail "RDMA has something else" || return
	tcp get "$2" >"$TMP/got" && cmp -n "$(stat -c %s "$1")" "$1" "$TMP/got" || fail "TCP has something else"
}

# values KB...: values of these sizes.
values() {
	local server size
	valkey_server || return
	for size; do
		head -c "${size}k" /dev/urandom >"$TMP/value-$size"
		cli -x set "key-$size" <"$TMP/value-$size" | grep -qx OK || fail "not set" || return
		same "$TMP/value-$size" "key-$size" || return
	done
	closed
}
check "SET and GET, values up to 500 kB" values 1 30 500

many() {
	local server
	valkey_server || return
	client 120 valkey/valkey-benchmark -h "$B4" --rdma -c 20 -n 400 -d 3000 -r 50 -t set,get --csv || return
	grep '^"SET",' "$TMP/client" && grep '^"GET",' "$TMP/client" || fail "$(cat "$TMP/client")" || return
	[ "$(tcp dbsize)" -gt 10 ] || fail "$(tcp dbsize) keys" || return
	tcp info clients | grep -x $'connected_clients:1\r' || fail "$(tcp info clients)" || return
	closed
}
check "20 clients at once" many

# shell: sets "shell", a client that is given commands through the descriptor "to", and answers in $TMP/shell.
shell() {
	rm -f "$TMP/commands" && mkfifo "$TMP/commands" || return
	cli <"$TMP/commands" >"$TMP/shell" 2>&1 & shell=$!
	exec {to}>"$TMP/commands"
}

# asks COMMAND ANSWER
asks() {
	echo "$1" >&"$to"
	wait_for 60 grep -qx "$2" "$TMP/shell" || fail "$1: $(cat "$TMP/shell")"
}

killed() {
	local server shell to
	valkey_server && shell || return
	asks "set a before" OK && asks "get a" before && await_connections valkey-cli 1 || return
	end "$server" || return
	await_connections valkey-cli 0 || return
	valkey_server || return
	echo "get a" >&"$to"
	wait_for 60 grep -q "Server closed the connection" "$TMP/shell" || fail "not told: $(cat "$TMP/shell")" || return
	asks "set a after" OK && asks "get a" after || return
	[ "$(tcp get a)" = after ] || fail "TCP has something else" || return
	echo quit >&"$to"
	ends_within 60 "$shell" || return
	closed
}
check "the server is killed: the client is told, and connects to the next one" killed

client_killed() {
	local server shell to
	valkey_server && shell && asks "set a 1" OK && await_connections valkey-cli 1 || return
	kill -9 "$(cm_ids | sed -n 's/.* pid \([0-9]*\) comm valkey-cli .*/\1/p')" || return
	wait_for 60 eval "tcp info clients | grep -qx \$'connected_clients:1\r'" || fail "$(tcp info clients)" || return
	[ "$(cli get a)" = 1 ] || fail "the next client" || return
	closed
}
check "the client is killed: the server is told, and serves the next one" client_killed

unplugged() {
	local server shell to
	valkey_server && shell && asks "set a 1" OK && await_connections valkey-cli 1 || return
	unplug && await_connections valkey-cli 0 || return
	wait_for 60 eval "tcp info clients | grep -qx \$'connected_clients:1\r'" || fail "$(tcp info clients)" || return
	echo "get a" >&"$to"
	wait_for 60 grep -q "^Error: RDMA: " "$TMP/shell" || fail "not told: $(cat "$TMP/shell")" || return
	exec {to}>&-
	ends_within 60 "$shell"
	[ $? -ne 99 ] || return
	plug || return
	[ "$(cli get a)" = 1 ] || fail "the next client" || return
	closed && unloads
}
check "the client's device goes: both are told, and the server serves the next one" replugged unplugged

# The client crashes then, over any connection manager.
nobody() {
	local status=0
	cli get a || status=$?
	echo "status $status"
	[ "$status" -ne 0 ] && [ "$status" -ne 124 ] || return
	nothing_left
}
check "nobody there" nobody
finish
