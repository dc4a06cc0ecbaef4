#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every command with classes of arguments in states of an id (walk/): first over the C
# modules, then over this one, in the same guest; each line in which the two differ must be
# explained in walk/differences.
#
#	walk.sh [--keep DIR | --only FILE] [--against FILE] [--all | --states "STATE..." | PATTERN...]
#
# With OVER=ib the ids are those of a port with an InfiniBand link layer (softib.sh), where the connection
# manager cannot be changed. With OVER=opa the port has the capabilities and the LIDs of Omni-Path.
#
# Without arguments each command in each state, with the classes of arguments that matter there, and with OVER=opa in
# the states whose ids have a path; --all are all classes. Patterns choose cases, as in walk.sh 'idle: *' '*: QUERY: *';
# cm-walk -l has their names. --keep leaves what each did in DIR, as c.txt and rust.txt; with
# --only what the one that is loaded does is in FILE afterwards, and nothing is compared;
# with --against FILE what the C modules did comes from such a c.txt. Where walk-c.txt is it comes from there: on the
# debug kernel, whose KASAN finds the C modules using freed memory, and after a report lockdep looks no further; and
# on another one to save time. There C is asked again about the cases that differ. With OVER it comes from
# walk-$OVER-c.txt, of a guest that had the C modules (--keep).
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

keep='' only='' against='' short=-s complete=(--complete) patterns=()
while [ $# -gt 0 ]; do
	case $1 in
	--keep) keep=$2 && shift ;;
	--only) only=$2 && shift ;;
	--against) against=$2 && shift ;;
	--all) short='' ;;
	--states)
		for state in $2; do
			patterns+=("$state: *")
		done
		shift
		;;
	*) patterns+=("$1") ;;
	esac
	shift
done
[ "${#patterns[@]}" -eq 0 ] || short='' complete=()
if [ "${OVER:-}" = opa ] && [ "$short" ]; then
	for state in route_resolved req_sent req_received rep_received rep_sent established_active \
		established_passive dreq_received ud_route_resolved ud_req_received ud_connected_active \
		ud_connected_passive ud_joined; do
		patterns+=("$state: *")
	done
fi
# Most of the time each state waits for something.
chosen=(-j "$(($(nproc) + 1))" ${short:+"$short"} "${patterns[@]}")

name=cm-walk quiets=(300 1000) whole=()
if [ "${OVER:-}" ]; then
	# shellcheck source=selftests/lib/softib.sh
	. "$SELFTESTS/lib/softib.sh"
	name=cm-walk-ib
	# The subnet administrator is a program. And not all differences show there.
	#
	# A time wait of 2.1 s is longer than all that a case waits for: C is not asked again here, and whether a time
	# wait ends within a case must not depend on how long that is.
	chosen=(-q 100 "${chosen[@]}") complete=() quiets=(100 300 600)
	# There a byte of address vectors differs, which sums would not tell from others.
	[ "$OVER" != opa ] || whole=(-v)
	check "two ports, IPoIB, a subnet administrator" softib_up --life 18 || finish
fi
program=$PWD/$name
if [ ! -x "$program" ]; then
	program=/tmp/$name
	make -s -C "$SELFTESTS/walk" OUT=/tmp >&2 || exit 1
fi

# walk CM FILE ARGUMENT...: what it does, line by line.
walk() {
	local cm=$1 out=$2
	shift 2
	[ "$(cm-use)" = "$cm" ] || cm-use "$cm" || return
	"$program" "${whole[@]}" "$@" >"$out"
}

# elsewhere: an interface without a device, which link-local addresses may mean, too.
elsewhere() {
	ip link add elsewhere0 type dummy && ip link set elsewhere0 up || return
	wait_for 10 sh -c "ip -6 addr show dev elsewhere0 scope link -tentative | grep -q fe80:" ||
		fail "no address"
}
nowhere() {
	[ ! -e /sys/class/net/elsewhere0 ] || ip link del elsewhere0
}
if [ -z "${OVER:-}" ] && ! elsewhere; then
	echo "Bail out! no other interface"
	exit 1
fi

if [ -n "$only" ]; then
	check "$CM" walk "$CM" "$only" "${chosen[@]}"
	nowhere
	finish
fi

if [ "${OVER:-}" ] && [ -z "$against$keep" ]; then
	against=walk-$OVER-c.txt
fi
# True if C can be asked, in the end, too.
ask_c=1
[ -z "$against" ] || ask_c=''
if [ -z "$against" ] && [ -z "$keep" ] && [ "$CM" = rust ] && [ -z "${OVER:-}" ] && [ -e walk-c.txt ]; then
	against=walk-c.txt
	[ "$PATIENCE" -eq 1 ] || ask_c=''
fi

# Over the C modules alone both times: what then differs is not repeatable.
other=rust
known=(--known "$SELFTESTS/walk/differences")
[ "${OVER:-}" != opa ] || known+=(--known "$SELFTESTS/walk/differences-opa")
if [ "$CM" = c ]; then other=c known=(); fi

# It may or may not answer in time.
ip neigh replace "$B4" lladdr "$($PEER cat /sys/class/net/v1/address)" dev v0 nud permanent
if [ -n "$against" ]; then
	[ -e "$against" ] || { echo "Bail out! there is no $against" && exit 1; }
	cp "$against" "$TMP/c" || exit 1
else
	check "the C modules" walk c "$TMP/c" "${chosen[@]}"
fi
check "$other" walk "$other" "$TMP/other" "${chosen[@]}"

# Cases that a busy machine was too slow for are run again, with more time; it is a few cases, or
# something else.
for quiet in "${quiets[@]}"; do
	mapfile -t again < <("$SELFTESTS/walk/compare" --names "${known[@]}" "$TMP/c" "$TMP/other")
	if [ "${#again[@]}" -eq 0 ] || [ "${#again[@]}" -gt 60 ]; then
		break
	fi
	echo "# ${#again[@]} cases again, with $quiet ms to settle"
	: >"$TMP/c.again"
	[ -z "$ask_c" ] || walk c "$TMP/c.again" -q "$quiet" "${again[@]}"
	walk "$other" "$TMP/other.again" -q "$quiet" "${again[@]}"
	for cm in c other; do
		# The later line of a case counts.
		awk -F'\t' '!($1 in at) { order[++n] = $1 } { at[$1] = $0 }
			END { for (i = 1; i <= n; i++) print at[order[i]] }' \
			"$TMP/$cm" "$TMP/$cm.again" >"$TMP/merged"
		mv "$TMP/merged" "$TMP/$cm"
	done
done
[ "$(cm-use)" = "$CM" ] || cm-use "$CM"
nowhere
ip neigh del "$B4" dev v0
[ -z "${OVER:-}" ] || check "everything goes" softib_down
if [ -n "$keep" ]; then
	mkdir -p "$keep" && cp "$TMP/c" "$keep/c.txt" && cp "$TMP/other" "$keep/$other.txt"
fi

# One case for each command in each state, with the number of its cases.
"$SELFTESTS/walk/compare" "${complete[@]}" --first "$RESULTS" "${known[@]}" "$TMP/c" "$TMP/other"
status=$?
[ "$FAILED" -eq 0 ] && [ "$status" -eq 0 ]
