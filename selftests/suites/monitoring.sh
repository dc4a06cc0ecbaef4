#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The metrics, which are recorded during a storm into the directory metrics of the share, for selftests/prometheus.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

TOOL=/mnt/share/rdma-cm

# record: a file of metrics of each end, about once a second.
record() {
	while :; do
		"$TOOL" stat --openmetrics >"/mnt/share/metrics/client-$EPOCHREALTIME"
		$PEER "$TOOL" stat --openmetrics >"/mnt/share/metrics/server-$EPOCHREALTIME"
		pause 1
	done
}

# storm SECONDS OPTION...: connections to the server, one after the other or many at once.
storm() {
	timeout $(($1 + 60 * PATIENCE)) /mnt/share/cmstorm client -a "$B4" -n 100000 -t "$1" --finish=close "${@:2}" >/dev/null
}

# counter END NAME LABELS: its sum in the last file of this end.
counter() {
	local last
	last=$(printf '%s\n' /mnt/share/metrics/"$1"-* | tail -n 1)
	awk -v "name=rdma_cm_$2_total" -v "labels=$3" 'index($0, name "{") == 1 && index($0, labels) { n += $NF } END { print n + 0 }' \
		"$last"
}

metrics() {
	local recorder refused
	rm -rf /mnt/share/metrics && mkdir /mnt/share/metrics || return
	$PEER "$TOOL" tune set rxe1 backlog-parking=8 || return
	$PEER /mnt/share/cmstorm server -a "$B4" -b 8 --accept-delay=4000 >/dev/null &
	await_listener "comm cmstorm" || return
	record & recorder=$!
	storm 10 --pace=100000 --qpn=100000
	tc qdisc add dev v0 root netem loss 5% limit 100000 && $PEER tc qdisc add dev v1 root netem loss 5% limit 100000 || return
	while timeout 20 rping -c -a "$B4" -p 7331 -C 1; [ $? -ne 124 ]; do :; done >/dev/null 2>&1 & refused=$!
	storm 20 -f 64 --qpn=200000
	kill "$refused"
	tc qdisc del dev v0 root && $PEER tc qdisc del dev v1 root || return
	storm 10 --pace=100000 --qpn=300000
	"$TOOL" stat --prometheus >/mnt/share/metrics.prom || return
	kill "$recorder" && $PEER "$TOOL" tune set rxe1 backlog-parking=1024 || return
	[ "$(find /mnt/share/metrics -size +0 | wc -l)" -ge 10 ] || fail "$(ls -la /mnt/share/metrics)" || return
	[ "$(counter client tx_retries 'message="req"')" -gt 0 ] && [ "$(counter client rx_rejects 'invalid service ID')" -gt 0 ] &&
		[ "$(counter server tx_rejects 'invalid service ID')" -gt 0 ] && [ "$(counter server rx_msgs 'message="req"')" -gt 100 ]
}
if [ "$CM" = c ]; then
	skip "metrics of a storm" "the C modules have none"
else
	check "metrics of a storm" metrics
fi
finish
