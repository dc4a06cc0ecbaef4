#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples of Documentation/developer.rst, in C, Rust and Python: the options hold where there are any, and over C
# the programs say that there are none. The header that they are built with is the one that "make headers_install" leaves.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

examples=/mnt/share/examples
[ -x "$examples/options-c" ] || { skip "the examples" "no $examples"; finish; }
cp /mnt/repo/selftests/examples/options.py "$examples/options-python"

header() {
	cmp "$examples/include/rdma/rust_rdma_cm.h" /mnt/repo/include/uapi/rust_rdma_cm.h
}
check "make headers_install installs the header" header

# The server is stopped: nobody answers, and the deadline ends the attempt. Over C the server goes on.
example() {
	local server
	$PEER rping -s -P -a "$B4" -p 7360 & server=$!
	await_listener "comm rping" || return
	[ "$CM" = c ] || kill -STOP "$server"
	timeout $((60 * PATIENCE)) "$@" "$B4" 7360 >"$TMP/out" 2>&1 || fail "status $?: $(cat "$TMP/out")" || return
	cat "$TMP/out"
	if [ "$CM" = rust ]; then
		[ "$(head -n 1 "$TMP/out")" = "rust_rdma_cm: six options are set" ] &&
			grep -Eq '^RDMA_CM_EVENT_UNREACHABLE, status -110, after (0\.[5-9]|[1-5]\.[0-9]) s$' "$TMP/out" || return
	else
		[ "$(head -n 1 "$TMP/out")" = "no options: the C modules" ] && grep -q '^RDMA_CM_EVENT_' "$TMP/out" || return
	fi
	kill -9 "$server"
	wait
	wait_for 20 no_cm_ids
}
check "options in C" example "$examples/options-c"
check "options in Rust" example "$examples/options-rust"
check "options in Python" example python3 "$examples/options-python"

# detection: what the page says to look at.
detect() {
	[ "$(</sys/class/misc/rdma_cm/abi_version)" = 4 ] || return
	if [ "$CM" = rust ]; then
		[ -n "$CM_BUILT_IN" ] || [ -d /sys/module/rust_rdma_cm ]
	else
		[ ! -e /sys/module/rust_rdma_cm ]
	fi
}
check "which module there is" detect
finish
