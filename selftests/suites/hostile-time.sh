#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The time of calls beside a user who holds very many of something and goes on using it: at most twice that of calls beside
# a user who holds one. Row 12 of Documentation/security.rst. In counted time (tools/check does so), as the time on the
# wall of a busy host says nothing.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/hostile.sh
. "$SELFTESTS/lib/hostile.sh"

# slower ACT CALL...: no call takes more than twice as long beside many as beside one; with C, some do.
slower() {
	local hold=$1 call few many slower=0
	shift
	act "$hold" || return
	for call; do
		few=${call}_few many=${call}_many
		[ "${!many}" -gt $((2 * ${!few})) ] || continue
		echo "$call: ${!few} ns, then ${!many} ns"
		slower=$((slower + 1))
	done
	if [ "$CM" = c ]; then
		[ "$slower" -gt 0 ] || fail "C is as quick" || return
	else
		[ "$slower" -eq 0 ] || fail "$slower calls are slower" || return
	fi
	nothing_left 60
}

# More than a user may have, by default, so that it shows.
[ "$CM" = c ] || echo 65536 >/proc/sys/net/rdma_ucm/max_user_memberships

check "calls beside 14,000 owners of a port" slower owners \
	own bind_here bind_elsewhere refused_here any_here any_elsewhere
check "calls beside the owners of all ephemeral ports" slower ports \
	own bind_here bind_elsewhere any_here any_elsewhere resolve_here resolve_elsewhere
check "calls beside 30,000 unread events" slower events own bind_here bind_elsewhere
check "30,000 unread events move to another file" slower moved own
shown
finish
