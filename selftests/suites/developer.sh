#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The examples of Documentation/developer.rst, in C, Rust and Python: the options hold where there are any, and over C
# the programs say that there are none; what they print is what the page says. The header that they are built with is the
# one that "make headers_install" leaves.
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

# The lines of the page that begin with what the programs print, in its order.
page=/mnt/repo/Documentation/developer.rst
mapfile -t said < <(sed -n -E 's/^   ((rust_rdma_cm: |RDMA_CM_EVENT_UNREACHABLE, ).*)/\1/p' "$page")
said_over_c=$(sed -n "s/^Over C's modules they print \`\`\(.*\)\`\` .*/\1/p" "$page")
the_page() {
	[ "${#said[@]}" -eq 2 ] && [[ ${said[1]} =~ \ after\ 0\.[5-9]\ s$ ]] && [ "$said_over_c" ] ||
		fail "${said[*]}; $said_over_c"
}
check "the page says what the examples print" the_page

# The server is stopped: nobody answers, and the deadline of 0.5 s ends the attempt, later on a busy machine. Over C the
# server goes on.
example() {
	local server
	$PEER rping -s -P -a "$B4" -p 7360 & server=$!
	await_listener "comm rping" || return
	[ "$CM" = c ] || kill -STOP "$server"
	timeout $((60 * PATIENCE)) "$@" "$B4" 7360 >"$TMP/out" 2>&1 || fail "status $?: $(cat "$TMP/out")" || return
	cat "$TMP/out"
	if [ "$CM" = rust ]; then
		[ "$(head -n 1 "$TMP/out")" = "${said[0]}" ] &&
			grep -Eqx "${said[1]% after *} after (0\.[5-9]|[1-5]\.[0-9]) s" "$TMP/out" || return
	else
		[ "$(head -n 1 "$TMP/out")" = "$said_over_c" ] && grep -q '^RDMA_CM_EVENT_' "$TMP/out" || return
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
