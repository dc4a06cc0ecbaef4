#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Dropped messages are counted by their reason, below cm_rx_drops, and have no other visible effect.
# The scenarios send them; that they end well shows that they were dropped.
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

DROPS=/sys/class/infiniband/rxe0/ports/1/cm_rx_drops
REASONS=(truncated header attribute unknown mismatch stranger unexpected unsupported overload
	unreachable replaced)

files() {
	[ "$(ls "$DROPS" | sort | xargs)" = "$(printf '%s\n' "${REASONS[@]}" | sort | xargs)" ] ||
		fail "there are $(ls "$DROPS" | xargs)" || return
	local reason
	for reason in "${REASONS[@]}"; do
		grep -Eqx '[0-9]+' "$DROPS/$reason" || fail "no number in $reason" || return
	done
}

# counts REASON NUMBER SCENARIO [ALSO]: at least so many more are counted, and under no other
# reason but ALSO.
counts() {
	local reason=$1 least=$2 scenario=$3 also=${4:-} other
	declare -A before after
	for other in "${REASONS[@]}"; do before[$other]=$(cat "$DROPS/$other"); done
	"$SELFTESTS/suites/scenarios.sh" "$scenario" || return
	for other in "${REASONS[@]}"; do
		after[$other]=$(($(cat "$DROPS/$other") - before[$other]))
	done
	[ "${after[$reason]}" -ge "$least" ] ||
		fail "$reason: ${after[$reason]}, want $least" || return
	for other in "${REASONS[@]}"; do
		[ "$other" = "$reason" ] || [ "$other" = "$also" ] || [ "${after[$other]}" -eq 0 ] ||
			fail "$other: ${after[$other]}" || return
	done
}

if [ "$CM" != rust ]; then
	skip "what is dropped is counted" "C does not count it"
elif grep -q '^Bail out' <<<"$("$SELFTESTS/suites/scenarios.sh" no-such-scenario)"; then
	skip "what is dropped is counted" "no cm-script: tools/script on the host builds it"
else
	check "a file for each reason" files
	check "messages that came short" counts truncated 1 dreq-truncated
	check "messages that the class does not have" counts attribute 4 mad-unknown-attribute
	check "messages for nobody" counts unknown 12 drop-nobody
	check "messages with wrong ids" counts mismatch 1 established-dreq-qpn
	check "messages from a third host" counts stranger 1 established-dreq-stranger
	# One of its REJs names no id of this end, and so is for nobody.
	check "messages in a wrong state" counts unexpected 1 dreq-received-rej unknown
	check "messages for paths that migrate" counts unsupported 2 established-lap unexpected
	check "requests for a full backlog" counts overload 1 req-backlog
fi
finish
