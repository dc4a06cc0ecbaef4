# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034
#
# The functions that the guest's test scripts share. To be sourced. Each test is a function or a
# command, and one KTAP line:
#
#	check "name of the case" COMMAND...	runs it; its output shows if it fails
#	skip "name of the case" REASON...
#	finish					last of all: the plan, and the status
#
# With CASES="PATTERN|PATTERN..." only those cases of which one of the patterns is the whole name.
#
# A case that looks into the output of a program in the background before anything else shows that
# it has started empties the file first: ">FILE &" does so when it starts, and until then what the
# last one said is there.

set -uo pipefail

SELFTESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=selftests/lib/capture.sh
. "$SELFTESTS/lib/capture.sh"
# shellcheck source=selftests/lib/rping.sh
. "$SELFTESTS/lib/rping.sh"
PATH=$SELFTESTS/lib/programs:$PATH
A4=10.0.0.1 A6=fd00::1		# of rxe0, here
B4=10.0.0.2 B6=fd00::2		# of rxe1, in the namespace "peer"
C4=10.80.0.1 C6=fd80::1		# of siw0, here, in the suites that make it
PEER="ip netns exec peer"
CM=$(cm-use)
case $CM in
rust) CM_MODULE=rust_rdma_cm ;;
*) CM_MODULE=rdma_ucm ;;
esac
# In a kernel that has it built in (tools/intree) nothing counts references, and there is no directory in /sys/module.
CM_BUILT_IN=''
! grep -qs "/$CM_MODULE.ko" "/lib/modules/$(uname -r)/modules.builtin" || CM_BUILT_IN=1

# A kernel with all the checks, emulated, needs several times as long.
PATIENCE=1
[ ! -e /sys/kernel/debug/kmemleak ] || PATIENCE=5

# has_delays: whether the module is a test build that sleeps where races are (tools/delays).
has_delays() {
	[ "$CM" = rust ] && grep -aqs "a test build with delays" "$(modinfo -n rust_rdma_cm)"
}

RESULTS=0 FAILED=0
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
echo "KTAP version 1"

check() {
	local name=$1 status=0 log=$TMP/check.log
	shift
	[[ $name == @(${CASES:-*}) ]] || return 0
	RESULTS=$((RESULTS + 1))
	# In a subshell, so that a test can neither end the script nor change it.
	(
		trap end_jobs EXIT
		"$@"
	) >"$log" 2>&1 </dev/null || status=$?
	if [ "$status" -eq 0 ]; then
		echo "ok $RESULTS - $name"
	else
		FAILED=$((FAILED + 1))
		echo "# status $status; the end of the output:"
		tail -n 60 "$log" | sed 's/^/# | /'
		echo "not ok $RESULTS - $name"
	fi
	return "$status"
}

# hears PID [PREFIX...]: whether this process has joined the groups of "rdma-cm monitor".
hears() {
	local port=$1
	shift
	# The last group that it joins is that of families, whose number is 16.
	# shellcheck disable=SC2016 # a program of awk
	"$@" awk -v "port=$port" '$2 == 16 && $3 == port && $4 ~ /[89a-f]...$/ { found = 1 } END { exit !found }' \
		/proc/net/netlink
}

# pause SECONDS: as sleep, which is another program to start. Where the time is over before bash looks, as on a busy host,
# "read -t" of bash 5.2 leaves signals blocked, so that the shell does not notice when a child ends: see runs().
exec {NEVER}<> <(:)
pause() {
	read -rt "$1" -u "$NEVER" || :
}

# A test that fails half-way leaves programs behind.
end_jobs() {
	local pids
	mapfile -t pids < <(jobs -pr)
	[ "${#pids[@]}" -gt 0 ] || return 0
	kill "${pids[@]}"
	sleep 0.3
	kill -9 "${pids[@]}"
	wait
} 2>/dev/null

skip() {
	local name=$1
	shift
	[[ $name == @(${CASES:-*}) ]] || return 0
	RESULTS=$((RESULTS + 1))
	echo "ok $RESULTS - $name # SKIP $*"
}

finish() {
	if [ "$RESULTS" -eq 0 ]; then
		echo "Bail out! no case was run"
		exit 1
	fi
	echo "1..$RESULTS"
	[ "$FAILED" -eq 0 ]
	exit
}

# fail TEXT...: for the functions that are tests.
fail() {
	echo "$*"
	return 1
}

# wait_for SECONDS COMMAND...: until COMMAND succeeds.
wait_for() {
	local end=$((SECONDS + $1 * PATIENCE))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		pause 0.1
	done
}

cm_ids() {
	rdma resource show cm_id
}

# cm_id_in STATE [PATTERN]: is there such an id? Without a program but one, as in what follows: where
# each takes a second to start, somebody waits for this again and again.
cm_id_in() {
	local line pattern=${2:-.}
	while IFS= read -r line; do
		[[ "$line " == *"state $1 "* && $line =~ $pattern ]] && return
	done < <(cm_ids)
	return 1
}

no_cm_ids() {
	[ -z "$(cm_ids)" ]
}

# await_listener [PATTERN...]: until there is a listener. A wildcard listener has an id
# for each device, one after the other, and each shows before requests reach it.
await_listener() {
	local before='' now line
	wait_for 10 cm_id_in LISTEN "$@" || fail "no listener" || return
	while pause 0.1; do
		now=0
		while IFS= read -r line; do
			[[ $line != *"state LISTEN"* ]] || now=$((now + 1))
		done < <(cm_ids)
		[ "$now" != "$before" ] || return 0
		before=$now
	done
}

# Checks that lockdep still works, if there is one: it ends with its first report.
lockdep_watches() {
	[ ! -e /proc/lockdep_stats ] || grep -q '^ debug_locks: *1$' /proc/lockdep_stats || {
		dmesg | grep -E 'too low!|locking correctness validator|lock debugging|WARNING: .*lock' >&2
		false
	}
}

# hung_after SECONDS: from now on a task that waits for so long counts as hung, unless none does at all (counted time).
hung_after() {
	local file=/proc/sys/kernel/hung_task_timeout_secs
	[ "$(<$file)" -eq 0 ] || echo "$1" >$file
}

# port_setting NAME VALUE DEVICE...: of the first port of these devices, in configfs.
port_setting() {
	local device dir
	for device in "${@:3}"; do
		dir=/sys/kernel/config/rdma_cm/$device
		mkdir -p "$dir" && echo "$2" >"$dir/ports/1/$1" && rmdir "$dir" || return
	done
}

# early_retry MS: how soon requests are sent early; 0 for never, which is all that C can.
early_retry() {
	[ "$CM" != rust ] || port_setting cm_early_retry_ms "$1" rxe0 rxe1
}

# References on the connection manager, but for those of modules that call it, as ib_ipoib does.
references() {
	[ -z "$CM_BUILT_IN" ] || { echo 0 && return; }
	local holders=("/sys/module/$CM_MODULE/holders"/*)
	[ -e "${holders[0]}" ] || holders=()
	echo $(($(<"/sys/module/$CM_MODULE/refcnt") - ${#holders[@]}))
}

# Endpoints that have their memory, be it that nothing shows them any more. Endpoints of modules
# that call the connection manager cannot be told from others, and ib_ipoib has some for as long as
# its interfaces are there: beside such a module nothing is counted.
endpoints() {
	local cache=/sys/kernel/slab/rdma_cm_endpoint number=0
	[ -n "$CM_BUILT_IN" ] || [ -z "$(ls "/sys/module/$CM_MODULE/holders")" ] || cache=''
	# Without those that processors keep for the next to come.
	if [ -e "$cache" ]; then
		echo 1 >"$cache/shrink"
		read -r number _ <"$cache/objects"
	fi
	echo "$number"
}

unused() {
	no_cm_ids && [ "$(references)" -eq 0 ] && [ "$(endpoints)" -eq 0 ]
}

# Nothing of what ran is left after a while.
nothing_left() {
	wait_for "${1:-10}" unused && return
	echo "references on $CM_MODULE: $(references); endpoints: $(endpoints); ids:"
	cm_ids
	return 1
}

# has_siw: the software iWARP driver that tools/siw has built, or that of the kernel.
has_siw() {
	[ -e siw.ko ] || modprobe -q siw
}

load_siw() {
	[ -d /sys/module/siw ] || insmod siw.ko
}

# siw0 [OPTION...]: the device siw0 over w0, whose peer w1 has these options.
siw0() {
	load_siw || return
	# The interfaces have different indexes: with the same one in both namespaces, the sockets of C's
	# wildcard listener, which it makes for all devices in one namespace, collide.
	ip link add w0 index 171 type veth peer name w1 index 172 "$@" || return
	ip addr add "$C4/24" dev w0 && ip addr add "$C6/64" dev w0 nodad && ip link set w0 up || return
	[ $# -gt 0 ] || ip link set w1 up || return
	rdma link add siw0 type siw netdev w0
}

# no_siw0: it goes, and the driver.
no_siw0() {
	rdma link del siw0 && ip link del w0 && rmmod siw
}

# end PID...: programs that need not end by themselves; but they can be ended.
end() {
	local pid
	kill -9 "$@" 2>/dev/null
	for pid; do
		ends_within 20 "$pid"
		[ $? -ne 99 ] || return
	done
}

# tasks_of PID: of each task of a process its state, the time that it has had, and its stack in the kernel, which a task that
# runs does not show.
tasks_of() {
	local task
	for task in "/proc/$1/task"/*; do
		sed -E 's/^([0-9]+) .*\) /\1 /' "$task/stat" |
			awk '{ print "task " $1 ": state " $2 ", user " $13 ", system " $14 " ticks, processor " $38 }'
		cat "$task/stack"
	done
} 2>/dev/null

# runs PID: whether a process has a task that has not ended. "kill -0" takes one that has ended for one that runs until the
# shell has waited for it, which it may not do by itself: see pause().
runs() {
	local stat tasks
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
	stat=${stat##*) } tasks=("/proc/$1/task"/*)
	[[ $stat != Z* ]] || [ "${#tasks[@]}" -gt 1 ]
}

# busy_processors: what each processor does.
busy_processors() {
	echo l >/proc/sysrq-trigger
	pause 0.5
	dmesg | tac | sed '/Sending NMI from CPU/q' | tac |
		grep -vE '\] (R[ABCDS01][0-9A-Z]|FS|CS|CR2|PKRU|Code|Tainted|Hardware name):'
}

# ends_within SECONDS PID: and its status. It shows where a process is that is late, after half the time and at the end.
ends_within() {
	local end=$((SECONDS + $1 * PATIENCE)) half=$((SECONDS + ($1 * PATIENCE + 1) / 2))
	while runs "$2"; do
		if [ "$SECONDS" -ge "$half" ]; then
			echo "process $2 is still there:"
			tasks_of "$2"
			[ "$SECONDS" -lt "$end" ] || {
				busy_processors
				return 99
			}
			half=$end
		fi
		pause 0.05
	done
	wait "$2"
}

# exchange SERVER-PREFIX CLIENT-PREFIX BIND-ADDRESS ADDRESS OPTION...: rping, of which both ends
# succeed.
exchange() {
	local sprefix=$1 cprefix=$2 bind=$3 address=$4 server status=0
	shift 4
	run_rping "$sprefix" 60 -s -a "$bind" -C 10 -V "$@" >"$TMP/server" 2>&1 &
	server=$!
	await_listener "comm rping" || return
	run_rping "$cprefix" 60 -c -a "$address" -C 10 -V -v "$@" || status=$?
	[ "$status" -eq 0 ] || echo "client: $status"
	ends_within 20 "$server" || { status=$?; echo "server: $status"; }
	cat "$TMP/server"
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

# connection PORT: rping connects to the other namespace, once, and both ends succeed.
connection() {
	local server
	run_rping "$PEER" 60 -s -a "$B4" -p "$1" -C 1 & server=$!
	await_listener "comm rping" || return
	run_rping "" 30 -c -a "$B4" -p "$1" -C 1 || return
	ends_within 20 "$server"
}

# connected ADDRESS: a server here and a client in the other namespace that stay.
connected() {
	stdbuf -oL rping -s -d -v -a "$1" >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	$PEER stdbuf -oL rping -c -d -v -a "$1" >"$TMP/client" 2>&1 & client=$!
	wait_for 10 cm_id_in CONNECT "comm rping" || fail "no connection" || return
	wait_for 10 grep -q "ping data" "$TMP/server" "$TMP/client" || fail "no data"
}

# learns SECONDS OUTPUT: this rping learns that its peer is gone: by an event, or sooner by its queue pair, which
# has an error of the far end (IBV_WC_REM_*, IBV_WC_RETRY_EXC_ERR), as that of a process that is killed may go before
# its id. It ends without looking for events then.
learns() {
	wait_for "$1" grep -qE 'DISCONNECT EVENT|cq completion failed status (9|1[0-2])$' "$2" ||
		fail "not told: $(grep -av 'ping data\|RDMA addr\|completion$\|server ' "$2" | tail -n 20)"
}

# misses PID OUTPUT: this rping learns that its peer is gone, and ends.
misses() {
	learns 20 "$2" || return
	if [ -z "${LATE_RECEIVES_STAY-}" ]; then
		ends_within 20 "$1"
		[ $? -eq 99 ] || return 0
		# Or it has seen a completion after the event, and one of its threads waits for another one.
		grep -q futex "/proc/$1/stack" && ! grep "destroy cm_id" "$2" || return
	fi
	end "$1"
}

# killed END ADDRESS: the server or the client of these, whom the other one misses.
killed() {
	local server client victim survivor
	connected "$2" || return
	if [ "$1" = server ]; then
		victim=server survivor=client
	else
		victim=client survivor=server
	fi
	kill -9 "${!victim}"
	misses "${!survivor}" "$TMP/$survivor" || return
	ends_within 20 "${!victim}"
	[ $? -ne 99 ] || return
	nothing_left
}

# unplug: DEVICE goes, with all that uses it, within UNPLUG_SECONDS (15). $AT runs a program where the device is.
unplug() {
	local seconds=$((${UNPLUG_SECONDS:-15} * PATIENCE))
	# shellcheck disable=SC2086
	timeout "$seconds" ${AT-} rdma link del "$DEVICE" || fail "rdma link del: $? (124 is more than $seconds s)"
}

# rxe_again DEVICE INTERFACE [COMMAND...]: this device of soft-RoCE, with its address.
rxe_again() {
	"${@:3}" rdma link add "$1" type rxe netdev "$2" || return
	# Its GIDs come a moment later.
	wait_for 5 grep -q ffff "/sys/class/infiniband/$1/ports/1/gids/1"
}

# replugged FUNCTION...: DEVICE is there afterwards, whatever became of that. A suite has a function "plug".
replugged() {
	local status=0
	"$@" || status=$?
	[ "$status" -ne 0 ] || return 0
	end_jobs
	# shellcheck disable=SC2086
	${AT-} rdma link show "$DEVICE/1" >/dev/null 2>&1 || plug
	return "$status"
}

# end_unplugged END OTHER-END ADDRESS: connected ends, of which the first one's device goes.
end_unplugged() {
	local server client
	connected "$3" || return
	unplug || return
	wait_for 10 grep -q DEVICE_REMOVAL "$TMP/$1" || fail "not told" || return
	ends_within 20 "${!1}"
	[ $? -ne 99 ] || return
	misses "${!2}" "$TMP/$2" || return
	plug || return
	nothing_left || return
	exchange "" "$PEER" "$3" "$3"
}

# listener_unplugged CLIENT-PREFIX ADDRESS: a listener, whose device goes.
listener_unplugged() {
	local server
	# shellcheck disable=SC2086
	${AT-} stdbuf -oL rping -s -d -v -a "$2" >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	unplug || return
	wait_for 10 grep -q DEVICE_REMOVAL "$TMP/server" || fail "not told" || return
	end "$server" || return
	plug || return
	nothing_left || return
	exchange "${AT-}" "$1" "$2" "$2"
}

# both_kinds ADDRESS: clients of one listener, over RoCE and at this address.
both_kinds() {
	local server one other status=0
	rping -s -P -a 0.0.0.0 >"$TMP/server" 2>&1 & server=$!
	await_listener "comm rping" || return
	run_rping "$PEER" 60 -c -a "$A4" -C 20 >"$TMP/one" 2>&1 & one=$!
	run_rping "$PEER" 60 -c -a "$1" -C 20 >"$TMP/other" 2>&1 & other=$!
	ends_within 60 "$one" || status=$?
	ends_within 60 "$other" || status=$?
	[ "$status" -eq 0 ] || cat "$TMP/server" "$TMP/one" "$TMP/other"
	end "$server" || return
	[ "$status" -eq 0 ] || return "$status"
	nothing_left
}

# compiled NAME FOLDER: sets "program" to that program of selftests/FOLDER. The host may have compiled it already; else
# that is done here.
compiled() {
	program=$PWD/$1
	[ ! -x "$program" ] || return 0
	program=/tmp/$1
	make -s -C "$SELFTESTS/$2" OUT="$program" >&2 || exit 1
}

# conformance PATTERN: those cases of ../abi are cases of this suite.
conformance() {
	local program line
	compiled ucma_conformance abi
	"$program" "$1" >"$TMP/cases" 2>&1
	grep -qE '^(not )?ok ' "$TMP/cases" || check "cases $1 of abi" fail "$(cat "$TMP/cases")"
	while IFS= read -r line; do
		case $line in
		'ok '*'# SKIP'*) skip "${line#* - }" ;;
		'ok '*) check "${line#* - }" true ;;
		'not ok '*) check "${line#* - }" fail "see above" ;;
		'#'*) echo "$line" ;;
		esac
	done <"$TMP/cases"
}

# thrice COMMAND...: again if it fails, for a program that races with itself. The processes of a
# failed try are ended, and its output is shown.
thrice() {
	local try
	for try in 1 2 3; do
		"$@" >"$TMP/try" 2>&1 && return
		echo "try $try:"
		cat "$TMP/try"
		end_jobs
		wait_for 100 no_cm_ids
	done
	return 1
}

# interface_goes TYPE ADDRESS: below a device of this type, while rping listens at the address.
interface_goes() {
	local server type=$1 address=$2
	ip link add if0 type veth peer name if1 && ip addr add "$address/24" dev if0 &&
		ip link set if0 up && ip link set if1 up &&
		rdma link add below type "$type" netdev if0 || return
	sleep 0.5
	stdbuf -oL rping -s -d -v -a "$address" >"$TMP/server" 2>&1 & server=$!
	await_listener "$address" || return
	ip link del if0 || return
	wait_for 10 grep -q DEVICE_REMOVAL "$TMP/server" || fail "not told" || return
	end "$server" || return
	nothing_left
}

# use_programs_of IMAGE: from here on the RDMA programs and python3 are those of this file
# system (tools/newest), in the current directory and namespaces.
use_programs_of() {
	local root=$TMP/root bin=$TMP/bin dir program
	mkdir "$root" "$bin"
	modprobe -a loop squashfs
	mount -o loop,ro "$1" "$root" || return
	trap 'umount -R "$TMP/root"; rm -rf "$TMP"' EXIT
	for dir in dev proc sys run tmp mnt; do
		mount --rbind "/$dir" "$root/$dir" || return
	done
	# By their paths: the directory of these scripts is in the image's /tmp, too.
	for program in rping ucmatose udaddy udpong mckey cmtime rdma_{server,client,xserver,xclient} \
		rstream riostream rcopy ib_{send,write,read,atomic}_{bw,lat} python3; do
		printf '#!/bin/sh\nexec unshare -R %s -w "$PWD" /usr/bin/%s "$@"\n' "$root" "$program" \
			>"$bin/$program"
		chmod +x "$bin/$program"
	done
	export PATH="$bin:$PATH"
	echo "# $(basename "$(readlink "$root"/usr/lib/*-linux-gnu/librdmacm.so.1)")"
}

# Returns true if cmtime is one whose two ends meet at a socket before the server listens.
cmtime_meets() {
	[[ $(cmtime -h 2>&1) == *controller_address* ]]
}

# cmtime_place ADDRESS [COMMAND...]: until that socket is there, as the command sees it.
cmtime_place() {
	local address=$1
	shift
	wait_for 20 "$@" sh -c "ss -Hltn src $address | grep -q ." || fail "no socket"
}
