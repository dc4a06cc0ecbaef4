#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The commands of Documentation/administration.rst print what that page quotes. The suite bpftrace has those of the scripts.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/options.sh
. "$SELFTESTS/lib/options.sh"
# shellcheck source=selftests/lib/reader.sh
. "$SELFTESTS/lib/reader.sh"

if [ "$CM" != rust ] || [ ! -x /mnt/share/rdma-cm ]; then
	skip "the page about administration" "it is about this module, or there is no rdma-cm"
	finish
fi
CONF=/etc/rdma/cm.conf
mkdir -p "${CONF%/*}"

as_json() {
	rdma-cm use c || return
	at a "rdma-cm -j use rust"
	at a "rdma-cm -j tune set --save rxe0 max-retries=4"
	rm "$CONF"
	rdma-cm tune set rxe0 max-retries=15
}
if [ -z "$CM_BUILT_IN" ]; then
	situation json as_json
else
	skip json "the module is built in"
fi

connection_of_a() {
	serve 7320 && dial 7320 || return
	soon a '."cm-state" == "established"' connections
	at a "rdma-cm show connections"
	VARIES='s/(established) AGE [0-9]+ (AGE|-)/\1 AGE N RTT/'
}
situation connections connection_of_a

options_of_a() {
	with_options || return
	at a "rdma-cm show connections --verbose"
	end "$OPTIONED"
}
situation options options_of_a

listener_of_b() {
	serve 7320
	at b "rdma-cm show listeners"
}
situation listeners listener_of_b

# Each happens on a; the connection stays until its device goes.
all_events() {
	local server limit=/proc/sys/net/rdma_ucm/max_user_ids before
	before=$(<"$limit")
	watch a
	rping -c -a "$B4" -p 7331 -C 1 >/dev/null 2>&1
	serve 7332 && server=$SERVER && kill -STOP "$server" && rdma-cm tune set rxe0 deadline-ms=3000 || return
	rping -c -a "$B4" -p 7332 -C 1 >/dev/null 2>&1
	rdma-cm tune set rxe0 deadline-ms=0 && end "$server" && serve 7333 || return
	host 'a$' rping -c -a "$B4" -p 7333 >/dev/null 2>&1 &
	soon a '."cm-state" == "established"' connections || return
	echo 1 >"$limit"
	host 'a$' rping -c -a "$B4" -p 7333 -C 1 >/dev/null 2>&1
	echo "$before" >"$limit"
	rdma link del rxe0
	saw refused "gave up" limit gone
	rdma link add rxe0 type rxe netdev v0
	VARIES='s/(again|ended): [0-9]+/\1: N/'
}
situation events all_events

conf() {
	printf '%s\n' "$@" >"$CONF"
}

values_of_a() {
	conf 'all max-retries=7' 'rxe0 deadline-ms=8000' 'rxe0/1 timewait=3 dead-link-ms=200'
	at a "cat $CONF"
	at a "rdma-cm tune apply"
	at a "rdma-cm tune set rxe0 max-retries=5"
	at a "rdma-cm tune | grep -E 'PORT|rxe0'"
	rdma-cm tune set all max-retries=15 deadline-ms=0 timewait=22 dead-link-ms=0
}
situation origins values_of_a

wrong_line() {
	conf 'all deadline-ms=5000' 'rxe0 max-retries=16'
	at a "cat $CONF"
	at a "rdma-cm tune apply"
	rdma-cm tune set all deadline-ms=0
	rm "$CONF"
}
situation wrong-line wrong_line
finish
