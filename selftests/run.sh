#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/run.sh [--capture DIR] [--slow N] [--first] [--cases PATTERN|PATTERN...] [SUITE...]: run
# these suites in the guest, by default those that suites/index says, and print one line per case and the totals. Each
# suite is a script in suites/ that prints KTAP; it gets as many seconds as suites/index gives it,
# with --slow N times as many. A word with blanks is a suite with arguments, as in run.sh rping 'abi bind.* listen.*'.
#
# After each suite come cases of this script's own: the kernel log has no report, lockdep (where
# there is one) has not turned itself off, and no id and no open file is left.
#
# With --cases there are only these cases of a suite that is a shell script.
# With --first all ends with the first case that fails, or the first report in the kernel log.
#
# With --capture the CM messages that pass INTERFACE (lib/capture.sh) while a suite with the flag
# "captured=INTERFACE" runs are in DIR/SUITE.pcap afterwards, for tools/wirecheck.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=selftests/lib/suites.sh
. "$here/lib/suites.sh"
capture='' slow=1 first=''
while :; do
	case ${1:-} in
	--first) first=1 && shift && continue ;;
	--capture) mkdir -p "$2" && capture=$2 ;;
	--slow) slow=$2 ;;
	--cases) export CASES=$2 ;;
	*) break ;;
	esac
	shift 2
done
if [ $# -eq 0 ]; then
	for suite in "${SUITES[@]}"; do
		! has_flag "$suite" default || set -- "$@" "$suite"
	done
fi

# A mistyped name would leave out the case that it should choose: nothing is run then.
for suite; do
	is_suite "$suite" || {
		echo "run.sh: no such suite: ${suite%% *}" >&2
		exit 2
	}
done

declare -i passed=0 failed=0 skipped=0
start=$SECONDS

# Filters the output of a suite, line by line as it comes: adds the suite's name,
# writes the counts to a file, and complains about cases that are missing.
filter() {
	local suite=$1 counts=$2 plan='' p=0 f=0 s=0 line bail=''
	while IFS= read -r line; do
		case $line in
		1..*) plan=${line#1..} ;;
		'KTAP version'*) ;;
		'ok '* | 'not ok '*)
			case $line in
			ok*'# SKIP'*) s=$((s + 1)) ;;
			ok*) p=$((p + 1)) ;;
			*) f=$((f + 1)) ;;
			esac
			[[ $line =~ ^((not )?ok)\ [0-9]+\ -?\ ?(.*) ]]
			echo "${BASH_REMATCH[1]} - $suite: ${BASH_REMATCH[3]}"
			[ -z "$first" ] || [ "$f" -eq 0 ] || exit 1
			;;
		'Bail out!'*)
			bail=1
			echo "# $line"
			;;
		'#'*) echo "$line" ;;
		*) echo "# $line" ;;
		esac
	done
	if [ -z "$plan" ] || [ $((p + f + s)) -lt "$plan" ] || [ -n "$bail" ]; then
		echo "not ok - $suite: $((p + f + s)) cases and then no end (of ${plan:-?} planned)"
		f=$((f + 1))
	elif [ $((p + f + s)) -eq 0 ]; then
		echo "not ok - $suite: no case was run"
		f=1
	fi
	echo "$p $f $s" >"$counts"
}

# watch_log PID: it gets a signal when the kernel log has a report, as long as it is there.
watch_log() {
	while sleep 5 && kill -0 "$1" 2>/dev/null; do
		kernel-log-clean >/dev/null || { kill -USR1 "$1" && return; }
	done
}

# one NAME COMMAND...: a case of this script.
one() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		echo "ok - $name"
		passed+=1
	else
		[ -z "$out" ] || printf '%s\n' "$out" | sed 's/^/# | /'
		echo "not ok - $name"
		failed+=1
	fi
}

# from_lib FUNCTION ARGUMENT...
from_lib() {
	# shellcheck disable=SC2030
	(
		# shellcheck source=selftests/lib/lib.sh
		. "$here/lib/lib.sh" >/dev/null
		"$@"
	)
}

# shellcheck source=selftests/lib/capture.sh
. "$here/lib/capture.sh"

if [ -n "$first" ]; then
	trap 'kernel-log-clean | sed "s/^/# | /"; echo "not ok - $suite: the kernel log has no report"; exit 1' USR1
	watch_log $$ &
fi
for suite; do
	read -ra arguments <<<"$suite"
	suite=${arguments[0]}
	over=${SUITE_OVER[$suite]}
	began=$SECONDS
	counts=$(mktemp)
	kernel-log-clean --mark
	limit=$((SUITE_SECONDS[$suite] * slow))
	# A kernel with all the checks takes several times as long.
	[ ! -e /sys/kernel/debug/kmemleak ] || limit=$((limit * 5))
	interface=''
	[[ -z $capture || ! ${SUITE_FLAGS[$suite]} =~ captured=([^ ]*) ]] || interface=${BASH_REMATCH[1]}
	[ -z "$interface" ] || capture_start "$interface" /tmp/capture.pcap
	filter "$suite" "$counts" < <(timeout -k 5 "$limit" env ${over:+"OVER=$over"} \
		"${SUITE_SCRIPT[$suite]}" "${arguments[@]:1}" </dev/null 2>&1)
	[ -z "$interface" ] || one "$suite: captured" \
		capture_end /tmp/capture.pcap "$capture/$suite.pcap"
	read -r p f s <"$counts"
	rm -f "$counts"
	passed+=$p failed+=$f skipped+=$s
	if [ -n "$(kernel-log-clean --known)" ] && kernel-log-clean >/dev/null; then
		echo "ok - $suite: the kernel log has no report # SKIP but one, of ib_core alone (upstream-bugs.rst)"
		skipped+=1
	else
		one "$suite: the kernel log has no report" kernel-log-clean
	fi
	[ ! -e /proc/lockdep_stats ] || one "$suite: lockdep still watches" from_lib lockdep_watches
	if [ "$(cm-use)" != none ]; then
		one "$suite: nothing is left behind" from_lib nothing_left 15
	fi
	echo "# $suite: $p passed, $f failed, $s skipped, $((SECONDS - began)) s"
	[ -z "$first" ] || [ "$failed" -eq 0 ] || exit 1
done
echo "# totals: $passed passed, $failed failed, $skipped skipped, $((SECONDS - start)) s"
[ "$failed" -eq 0 ]
