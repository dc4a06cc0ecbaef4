#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Several listeners at one address (REUSEPORT), also of several processes: who may share it, the share of each, and listeners
# that come and go while clients connect. C has the throughput of its one listener beside that, and nothing else of it.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

compiled reuseport reuseport
REUSEPORT=$program
# A module that sleeps in its calls (tools/delays) has as few connections a second as a kernel that is slow.
SLOW=$PATIENCE
! has_delays || SLOW=5
# Connections whose distribution is judged, for two workers and for four: in both cases 5 % of a share are four times its
# standard deviation, and 25 % if there is a 25th of them, as where things are slow. And others.
MANY_OF=([2]=$((8000 / SLOW / SLOW)) [4]=$((20000 / SLOW / SLOW))) SOME=$((1000 / SLOW)) FEW=100
# Workers that are replaced one after the other.
ROUNDS=10

# words COMMAND...: sets the words NAME=NUMBER that the program prints as variables, those of the caller if it has some.
words() {
	local word
	"$REUSEPORT" "$@" >"$TMP/words" 2>"$TMP/failures" || fail "$*: $?" "$(cat "$TMP/words")" || return
	echo "# $*: $(tr '\n' ' ' <"$TMP/words")" | tee -a "$TMP/shown"
	while read -rd ' ' word; do printf -v "${word%%=*}" %s "${word#*=}"; done < <(tr '\n' ' ' <"$TMP/words")
}

shown() {
	[ ! -e "$TMP/shown" ] || cat "$TMP/shown"
	rm -f "$TMP/shown"
}

# all COUNT: that many clients were connected, and no other has asked.
all() {
	[ $((connected + refused)) -eq "$1" ] && [ "$failed" -eq 0 ] && [ "$lost" -eq 0 ] ||
		fail "connected $connected of $1, failed $failed, lost $lost: $(sort "$TMP/failures" | uniq -c)"
}

# The number of connections a second is shown: it depends on the machine.
throughput() {
	local connected refused failed lost requests least most ms
	words "$@" "$SOME" || return
	echo "# $*: $((connected * 1000 / ms)) connections/s" >>"$TMP/shown"
	all "$SOME" && nothing_left
}

check "one listener, as C has it" throughput alone
shown
if [ "$CM" = c ]; then
	finish
fi

for workers in 1 2 4; do
	check "throughput of $workers that share" throughput share "$workers"
	shown
done

# fair WORKERS: each has its share, to within four standard deviations. A request that is sent again after it was refused
# counts twice.
fair() {
	local connected refused failed lost requests least most ms share within
	words count "$1" "${MANY_OF[$1]}" || return
	all "${MANY_OF[$1]}" || return
	share=$((requests / $1))
	within=$((share * SLOW / 20))
	[ "$least" -ge $((share - within)) ] && [ "$most" -le $((share + within)) ] ||
		fail "of $requests: $least to $most" || return
	nothing_left
}

# The worker that reads nothing is passed by when its backlog is full, and when it is killed another one gets what it had.
full() {
	local connected refused failed lost waited took
	words full "$FEW" || return
	[ "$waited" -eq 4 ] || fail "$waited clients have waited" || return
	# No sooner than after a second would a client that was told to wait ask again.
	[ "$took" -le $((1000 * PATIENCE)) ] || fail "$took ms" || return
	all "$FEW" && nothing_left
}

# Nobody has the requests that a killed worker has read, so that their senders have to ask again.
dawdled() {
	local connected refused failed lost waited took
	words read "$FEW" || return
	[ "$waited" -ge $((FEW / 8)) ] || fail "$waited clients have waited" || return
	all "$FEW" && nothing_left
}

# replaced retire|kill: no client notices. A worker that is killed takes along what it has accepted.
replaced() {
	local connected refused failed lost waiting
	words replace "$1" "$ROUNDS" || return
	[ "$1" = retire ] || lost=0
	[ "$waiting" -eq 0 ] && [ "$connected" -ge "$ROUNDS" ] || fail "connected $connected, $waiting are waiting" || return
	all "$connected" && nothing_left
}

conformance 'reuseport.*'
check "a full worker is passed by" full
shown
check "a worker is killed that has read requests" dawdled
shown
check "workers are replaced" replaced retire
shown
check "workers are killed" replaced kill
shown
for workers in 2 4; do
	check "the share of $workers workers" fair "$workers"
	shown
done
finish
