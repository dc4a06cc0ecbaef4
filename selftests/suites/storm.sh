#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tools/cmstorm: storms of connections, and what it says when there can be none.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# serve ARGUMENT...: starts a server, and sets server.
serve() {
	: >"$TMP/server"
	$PEER ./cmstorm server -a "$B4" "$@" >"$TMP/server" 2>&1 & server=$!
	wait_for 60 grep -q listening "$TMP/server" || { cat "$TMP/server"; return 1; }
}

# The seconds that a client may take.
LIMIT=90

# with_server ARGUMENT... -- CLIENT ARGUMENT...: a client while that server is there.
with_server() {
	local args=() server status=0
	while [ "$1" != -- ]; do
		args+=("$1")
		shift
	done
	shift
	serve "${args[@]}" || return
	timeout $(((LIMIT + 10) * PATIENCE)) ./cmstorm client -a "$B4" -t "$LIMIT" "$@" >"$TMP/report" ||
		status=$?
	cat "$TMP/report"
	end "$server"
	[ "$status" -eq 0 ] && nothing_left 30
}

# reports FILTER: whether the report is such.
reports() {
	jq -e "$1" "$TMP/report" >/dev/null || { cat "$TMP/report"; fail "not: $1"; }
}

storms() {
	with_server -- -n 60 "$@" && reports '.up == 60 and .failed == 0 and .unfinished == 0
		and .us.p50 > 0 and .us.p50 <= .us.p99 and .us.p99 <= .us.max'
}

check "one at a time" storms
check "20 at once, each disconnected" storms -f 20 --finish disconnect
check "60 at once, each destroyed" storms -f 60 --finish destroy
check "beside 100 that are open, all closed" storms -f 60 --open 100 --finish close
check "beside 600 that are open, all closed" storms -f 60 --open 600 --finish close
check "at a pace of 1 ms" storms -f 60 --pace 1000
check "from an address of one's own" storms -s "$A4"
quantiles() {
	storms --quantiles && reports '.quantiles | length == 101 and . == sort'
}
check "quantiles" quantiles
check "several ports" with_server --ports 3 -- -n 30 --ports 3
# One connection whose messages are apart.
steps() {
	with_server --steps -- -n 1 --steps --finish disconnect && reports '.up == 1 and .finish_seconds > 0'
}
check "the messages of a connection apart" steps
check "queue pairs" with_server --qp -- -n 20 -f 5 --qp --finish disconnect

# Soft-RoCE has 32,767 address handles of a device, and nobody needs one for each connection.
dreqs_sent() {
	cat /sys/class/infiniband/rxe0/ports/1/cm_tx_msgs/dreq
}
more_than_handles() {
	local before LIMIT=400
	before=$(dreqs_sent) || return
	with_server --ports 2 -- -n 60 -f 60 --open 33000 --ports 2 --finish disconnect &&
		reports '.up == 60' || return
	[ $(($(dreqs_sent) - before)) -ge 33060 ] || fail "$(($(dreqs_sent) - before)) DREQs"
}
if [ "$PATIENCE" -eq 1 ]; then
	check "33,000 open, all disconnected" more_than_handles
else
	skip "33,000 open, all disconnected" "takes too long here"
fi

# A server and a client in one process.
both() {
	timeout $((100 * PATIENCE)) ./cmstorm both -a "$A4" -n 30 -f 10 >"$TMP/report" && reports '.up == 30' &&
		nothing_left 30
}
check "server and client in one process" both

# The connections of a closed file go by themselves; the module does not go before them.
unloaded() {
	local cm server
	cm=$(cm-use)
	serve || return
	timeout $((100 * PATIENCE)) ./cmstorm client -a "$B4" -n 600 -f 60 >"$TMP/report" &&
		reports '.up == 600' || return
	end "$server"
	cm-use none && cm-use "$cm"
}
check "the module is unloaded while 600 go" unloaded

# says PATTERN COMMAND...: it fails, by itself and soon, and says why.
says() {
	local pattern=$1 status=0
	shift
	timeout $((100 * PATIENCE)) "$@" >"$TMP/out" 2>"$TMP/err" </dev/null || status=$?
	cat "$TMP/out" "$TMP/err"
	case $status in 1 | 2) ;; *) fail "status $status" || return ;; esac
	grep -qi -- "$pattern" "$TMP/err" || fail "does not say: $pattern"
}

# absurd PATTERN ARGUMENT...: it also makes no report.
absurd() {
	says "$@" && [ ! -s "$TMP/out" ]
}
check "no role" absurd usage ./cmstorm
check "two roles" absurd usage ./cmstorm client server
check "an unknown role" absurd "none of server, client, both and ids" ./cmstorm serve
check "an unknown option" absurd usage ./cmstorm client --colour
check "an option without its value" absurd usage ./cmstorm client -a
check "no address" absurd "needs the server's --address" ./cmstorm client
check "no address of ids" absurd "ids need an --address" ./cmstorm ids
check "ids at another host's address" absurd "rdma_bind_addr: " ./cmstorm ids -a "$B4"
check "an address that is none" absurd "address ten.zero" ./cmstorm client -a ten.zero
check "an address with a port" absurd "address 10.0.0.2:7471" ./cmstorm client -a 10.0.0.2:7471
for option in --port --connections --flight --open --dead-count --backlog --accept-delay --resolve \
	--seconds --pace --qpn --ports; do
	for value in -1 99999999999999999999 12x '' x; do
		check "$option '$value'" absurd "${option#--} is a number" ./cmstorm client -a "$B4" \
			"$option" "$value"
	done
done
check "port 0" absurd "port is a number" ./cmstorm client -a "$B4" -p 0
check "port 65536" absurd "port is a number" ./cmstorm client -a "$B4" -p 65536
check "ports beyond the last" absurd "no port 65539" ./cmstorm client -a "$B4" -p 65530 --ports 10
check "none in flight" absurd "flight is a number" ./cmstorm client -a "$B4" -f 0
check "an end that is none" absurd "finish is none, disconnect" ./cmstorm client -a "$B4" --finish now

check "two connections whose messages are apart" absurd "steps goes with --connections 1" \
	./cmstorm client -a "$B4" -n 2 --steps --finish disconnect
check "messages apart, and no end" absurd "and --finish disconnect" \
	./cmstorm client -a "$B4" -n 1 --steps

check "nobody listens" says "20 of 20 connections failed.*REJECTED" ./cmstorm client -a "$B4" -n 20
check "no such host" says "failed.*ADDR_ERROR" ./cmstorm client -a 10.0.0.77 -n 1 --resolve 200
check "no route" says "unreachable" ./cmstorm client -a 192.0.2.1 -n 1
check "a server on an address of another host" says "cannot bind" ./cmstorm server -a 10.0.0.77
# shellcheck disable=SC2086 # $PEER is several words
taken() {
	local server status
	serve || return
	says "cannot bind" $PEER ./cmstorm server -a "$B4"
	status=$?
	end "$server"
	return "$status"
}
check "a port that is taken" taken
nobody_answers() {
	local status
	ip neigh replace 10.0.0.99 lladdr 02:00:00:00:00:99 dev v0 nud permanent
	says "3 of 3 connections were not finished in 2 s" ./cmstorm client -a 10.0.0.99 -n 3 -f 3 -t 2
	status=$?
	ip neigh del 10.0.0.99 dev v0
	[ "$status" -eq 0 ] && nothing_left
}
check "a host that does not answer" nobody_answers
no_device() {
	local status
	ip netns add bare
	ip -n bare link add d0 type dummy
	ip -n bare addr add 10.9.9.1/24 dev d0
	ip -n bare link set d0 up
	ip -n bare neigh replace 10.9.9.2 lladdr 02:00:00:00:00:02 dev d0 nud permanent
	says "No such device" ip netns exec bare ./cmstorm client -a 10.9.9.2 -n 2
	status=$?
	ip netns del bare
	return "$status"
}
check "no device" no_device
no_manager() {
	local status
	cm-use none || return
	says "is the connection manager loaded" ./cmstorm client -a "$B4" -n 1
	status=$?
	cm-use "$CM" && return "$status"
}
check "no connection manager" no_manager
finish
