#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/guest-runner.sh [rust|c]: on the host, what tools/guest promises.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cm=${1:-rust}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# shellcheck source=selftests/lib/host-cases.sh
. "$here/lib/host-cases.sh"
output=$tmp/out

guest() {
	${within:+timeout --foreground --preserve-status "$within"} \
		"$here/../tools/guest" --cm "$cm" --share "$tmp" --timeout 300 "$@"
}

# check NAME STATUS PATTERN OPTION... -- COMMAND: that status, that output (any, if the pattern is empty), and
# no guest is left. It gets a signal after $within seconds, if set.
check() {
	local name=$1 want=$2 pattern=$3 status=0 left
	shift 3
	guest "$@" >"$tmp/out" 2>&1 </dev/null || status=$?
	# Not this search itself.
	left=$(grep -alsE "path[=]$tmp" /proc/[0-9]*/cmdline)
	[ "$status" -eq "$want" ] && [ -z "$left" ]
	result $? "$name" "want status $want, got status $status${left:+; left: $left}"
	[ -z "$pattern" ] || says "$name: its output" "$pattern"
}

# says NAME PATTERN: what the guest before has printed.
says() {
	grep -q -- "$2" "$tmp/out"
	result $? "$1" "want /$2/"
}

# log_is clean|bad NAME TEXT: what tools/guest takes such a kernel log for.
log_is() {
	local is=bad
	echo "$3" >"$tmp/log"
	! "$here/../tools/guest.d/kernel-log-clean" "$tmp/log" >"$tmp/out" || is=clean
	[ "$is" = "$1" ]
	result $? "$2" "want a $1 log, it is $is"
}

check "the command's status" 7 "^$cm rxe0 rxe1\$" -- \
	'echo "$(cm-use)" $(rdma link | sed "s/link \(.*\)\/1.*/\1/"); echo hello >file; exit 7'
grep -qx hello "$tmp/file"
result $? "a file in the shared directory" "hello in it"
check "a report in the kernel log fails, with a long log after it" 86 "WARNING: not really" -- \
	'echo "WARNING: not really" >/dev/kmsg
	for i in {1..1000}; do printf "%080d\n" $i >/dev/kmsg; done'

# rxe_post_recv FUNCTION: a report of soft-RoCE with that function on the stack.
rxe_post_recv() {
	echo "WARNING: drivers/infiniband/sw/rxe/rxe_verbs.c:1017 at rxe_post_recv+0x13b/0x200 [rdma_rxe], CPU#0: kworker/u9:0/65
Workqueue: ib-comp-unb-wq ib_cq_poll_work [ib_core]
RIP: 0010:rxe_post_recv+0x13b/0x200 [rdma_rxe]
Call Trace:
 <TASK>
 ib_mad_post_receive_mads+0x1b4/0x370 [ib_core]
 $1+0x385/0xd50 [ib_core]
 ? rxe_poll_cq+0x10f/0x130 [rdma_rxe]
 __ib_process_cq+0x85/0x170 [ib_core]
 ib_cq_poll_work+0x2a/0x80 [ib_core]
 process_one_work+0x198/0x370
 </TASK>
---[ end trace 0000000000000000 ]---"
}
# logged TEXT: a command that logs it.
logged() {
	printf 'cat >/run/report <<END\n%s\nEND\nwhile IFS= read -r line; do echo "$line" >/dev/kmsg; done </run/report\n' "$1"
}
mkdir "$tmp/suites"
mkdir "$tmp/suites/suites" && cp -r "$here"/{run.sh,lib} "$tmp/suites"
printf '%s\n' '#!/bin/bash' "$(logged "$(rxe_post_recv ib_mad_recv_done)")" 'echo ok 1 - x' 'echo 1..1' \
	>"$tmp/suites/suites/late.sh"
chmod +x "$tmp/suites/suites/late.sh"
echo 'late late 300 - - -' >"$tmp/suites/suites/index"
check "a report of ib_core's own is a skip" 0 "^ok - the kernel log # SKIP" -- ./suites/run.sh late
says "and of the suite" "^ok - late: the kernel log has no report # SKIP"
log_is clean "a log without a report" "rxe0: all is well"
log_is bad "a log with one" "WARNING: not really"
log_is clean "ib_core's own alone" "$(rxe_post_recv ib_mad_recv_done)"
log_is bad "one like it" "$(rxe_post_recv ib_mad_snoop)"
log_is bad "one with a function more" "$(rxe_post_recv 'cm2.part.0+0x1/0x9 [other]
 ib_mad_recv_done')"
log_is bad "another one beside it" "$(rxe_post_recv ib_mad_recv_done)
WARNING: not really"
check "a crash fails" 86 . -- 'echo c >/proc/sysrq-trigger; sleep 20'
within=20 check "a signal ends it" 143 '' -- 'sleep 100'
check "a time-out ends it" 124 . --timeout 12 -- 'sleep 100'
check "one that never comes up is started again" 125 "not come up in 1 s, try 3 of 3" --boot 1 -- true
check "nothing counts as hung in counted time" 0 "^0\$" --icount -- \
	cat /proc/sys/kernel/hung_task_timeout_secs
# Shows which of them a kernel consumer gets that modprobe loads, and a name of C's.
check "no connection manager, then each one, as a host has it" 0 \
	"^none none; c nvmet_rdma:rdma_cm rdma_ucm:rdma_cm; rust nvmet_rdma:rust_rdma_cm rdma_ucm:rust_rdma_cm; none none;\$" \
	--cm none --link "$tmp/link:1" -- 'takes() {
		local name=${1//-/_} found=none
		if modprobe "$1" 2>/dev/null; then
			# The one that it holds, or the one that has been loaded in its place.
			found=/sys/module/rust_rdma_cm
			if [ -d "/sys/module/$name" ]; then
				found=$(ls -d /sys/module/r*dma_cm/holders/"$name")
				rmmod "$1"
			fi
			found=$name:$(echo "$found" | cut -d/ -f4)
			[ -d "/sys/module/${found#*:}" ] || found=none
		fi
		echo -n "$found"
	}
	for cm in none c rust none; do
		cm-use "$cm"
		echo -n "$(cm-use) $(takes nvmet-rdma)"
		[ "$cm" = none ] || echo -n " $(takes rdma_ucm)"
		echo -n "; "
	done | sed "s/; \$/;/"; echo
	is() { until [ "$(</sys/class/net/eth0/carrier)" = "$1" ]; do sleep 0.2; done; echo "$1"; }
	a=$(is 1); echo off >/run/guest/cable; b=$(is 0); echo on >/run/guest/cable; echo $a $b $(is 1)'
says "a cable is pulled out and plugged in" "^1 0 1\$"
echo "1..$n"
exit "$failed"
