# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# An administrator and other users with the tool rdma-cm, and connections for them to look at. To be sourced after lib.sh.

TOOL=/mnt/share/rdma-cm
OWNER=1000 OTHER=1001
[ -x "$TOOL" ] || { skip "rdma-cm" "no $TOOL"; finish; }

# ends_with STATUS COMMAND...: it ends so, and a failure is one line.
ends_with() {
	local want=$1 status=0
	shift
	"$@" >"$TMP/out" 2>"$TMP/err" || status=$?
	[ "$status" -eq "$want" ] || { cat "$TMP/out" "$TMP/err"; fail "$*: status $status"; } || return
	[ "$status" -eq 0 ] || [ "$(wc -l <"$TMP/err")" -eq 1 ] || [ "$status" -eq 2 ] || fail "$(cat "$TMP/err")"
}

# as UID COMMAND...
as() {
	local uid=$1
	shift
	setpriv --reuid "$uid" --regid "$uid" --clear-groups "$@"
}

# json FILTER ARGUMENT...: a value of the tool's output.
json() {
	local filter=$1
	shift
	"$TOOL" -j "$@" | jq -r "$filter"
}

peer_json() {
	local filter=$1
	shift
	$PEER "$TOOL" -j "$@" | jq -r "$filter"
}

# object WANT ARGUMENT...: it prints one object, of these values in this order.
object() {
	local want=$1 got
	shift
	got=$("$TOOL" -j "$@" | jq -sc 'map([.. | scalars])')
	[ "$got" = "[[$want]]" ] || fail "$*: $got"
}

# A server of the user and clients of both; SERVER and CLIENTS are their numbers.
CLIENTS=()
serve() {
	$PEER setpriv --reuid $OWNER --regid $OWNER --clear-groups rping -s -P -a "$B4" -p 7330 & SERVER=$!
	await_listener "comm rping"
}

# connect UID: a client that stays connected.
connect() {
	setpriv --reuid "$1" --regid "$1" --clear-groups rping -c -a "$B4" -p 7330 >/dev/null & CLIENTS+=($!)
}

established() {
	[ "$(json 'map(select(."cm-state" == "established")) | length' show connections)" -eq "$1" ]
}

stop() {
	kill "${CLIENTS[@]}" "$SERVER" && wait
	CLIENTS=()
	wait_for 10 no_cm_ids
}
