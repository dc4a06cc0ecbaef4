#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# selftests/guest-runner.sh [rust|c]: on the host, what tools/guest promises.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
cm=${1:-rust}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0 failed=0

guest() {
	${within:+timeout --foreground --preserve-status "$within"} \
		"$here/../tools/guest" --cm "$cm" --share "$tmp" --timeout 300 "$@"
}

# check NAME STATUS PATTERN OPTION... -- COMMAND: that status, that output (any, if the pattern is empty), and
# no guest is left. It gets a signal after $within seconds, if set.
check() {
	local name=$1 want=$2 pattern=$3 status=0 left
	shift 3
	n=$((n + 1))
	guest "$@" >"$tmp/out" 2>&1 </dev/null || status=$?
	# Not this search itself.
	left=$(grep -alsE "path[=]$tmp" /proc/[0-9]*/cmdline)
	if [ "$status" -eq "$want" ] && [ -z "$left" ] &&
		{ [ -z "$pattern" ] || grep -q -- "$pattern" "$tmp/out"; }; then
		echo "ok $n - $name"
	else
		echo "# want status $want and /$pattern/, got status $status${left:+; left: $left}"
		tail -n 30 "$tmp/out" | sed 's/^/# | /'
		echo "not ok $n - $name"
		failed=1
	fi
}

check "a guest with this connection manager" 0 "^$cm rxe0 rxe1\$" -- \
	'echo "$(cm-use)" $(rdma link | sed "s/link \(.*\)\/1.*/\1/")'
check "the command's status" 7 . -- 'echo x; exit 7'
check "a file in the shared directory" 0 . -- 'echo hello >file; echo .'
grep -qx hello "$tmp/file" || {
	echo "# the file has not arrived"
	failed=1
}
check "a report in the kernel log fails" 86 "WARNING: not really" -- \
	'echo "WARNING: not really" >/dev/kmsg'
check "a report with a long log after it" 86 "WARNING: not really" -- \
	'echo "WARNING: not really" >/dev/kmsg
	for i in {1..1000}; do printf "%080d\n" $i >/dev/kmsg; done'
# as_rxe_post_recv FUNCTION: a command that logs a report of soft-RoCE with that function on the stack.
as_rxe_post_recv() {
	printf 'cat >/run/report <<END\n%s\nEND\nwhile IFS= read -r line; do echo "$line" >/dev/kmsg; done </run/report\n' \
"WARNING: drivers/infiniband/sw/rxe/rxe_verbs.c:1017 at rxe_post_recv+0x13b/0x200 [rdma_rxe], CPU#0: kworker/u9:0/65
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
check "a report of ib_core's own is a skip" 0 "^ok - the kernel log # SKIP" -- "$(as_rxe_post_recv ib_mad_recv_done)"
mkdir "$tmp/suites"
cp "$here"/{run,lib,capture}.sh "$tmp/suites"
printf '%s\n' '#!/bin/bash' "$(as_rxe_post_recv ib_mad_recv_done)" 'echo ok 1 - x' 'echo 1..1' >"$tmp/suites/late.sh"
chmod +x "$tmp/suites/late.sh"
check "and of the suite" 0 "^ok - late: the kernel log has no report # SKIP" -- ./suites/run.sh late
check "one like it fails" 86 "WARNING: .*rxe_post_recv" -- "$(as_rxe_post_recv ib_mad_snoop)"
check "one with a function more fails" 86 "WARNING: .*rxe_post_recv" -- \
	"$(as_rxe_post_recv 'cm2.part.0+0x1/0x9 [other]
 ib_mad_recv_done')"
check "another one beside it fails" 86 "WARNING: not really" -- \
	"$(as_rxe_post_recv ib_mad_recv_done); echo 'WARNING: not really' >/dev/kmsg"
check "a crash fails" 86 . -- 'echo c >/proc/sysrq-trigger; sleep 20'
within=20 check "a signal ends it" 143 '' -- 'sleep 100'
check "a time-out ends it" 124 . --timeout 12 -- 'sleep 100'
check "one that never comes up is started again" 125 "not come up in 1 s, try 3 of 3" --boot 1 -- true
check "no connection manager, then each one" 0 "^none c none\$" --cm none -- \
	'a=$(cm-use); cm-use c; b=$(cm-use); cm-use none; echo $a $b $(cm-use)'
check "nothing counts as hung in counted time" 0 "^0\$" --icount -- \
	cat /proc/sys/kernel/hung_task_timeout_secs
check "a cable is pulled out and plugged in" 0 "^1 0 1\$" --link "$tmp/link:1" -- \
	'is() { until [ "$(</sys/class/net/eth0/carrier)" = "$1" ]; do sleep 0.2; done; echo "$1"; }
	a=$(is 1); echo off >/run/guest/cable; b=$(is 0); echo on >/run/guest/cable; echo $a $b $(is 1)'
echo "1..$n"
exit "$failed"
