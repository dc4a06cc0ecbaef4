#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# iwarp-pair-end.sh NUMBER CM CM: what each of the guests of "two-guests.sh --end iwarp-pair" does: over the
# software iWARP driver on the wire between them one is rping's server and an NVMe target, the other their
# client, then the reverse.
# seconds: 1200
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/pairs/storage-pair.sh
. "$SELFTESTS/pairs/storage-pair.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"
# shellcheck source=selftests/pairs/nvme-pair.sh
. "$SELFTESTS/pairs/nvme-pair.sh"

needs nvme-rdma nvmet-rdma brd
if ! use_storage programs.sqfs || ! has_siw; then
	skip "iWARP between two guests" "there is no image of programs (tools/storage), or no siw.ko (tools/siw)"
	finish
fi

# The wire's soft-RoCE device makes way.
siw2() {
	rdma link del rxe2 && load_siw || return
	rdma link add siw2 type siw netdev eth0
}

rping_server() {
	local server
	run_rping "" 100 -s -a "$own4" -C 10 & server=$!
	await_listener "comm rping" || return
	say ready
	ends_within 100 "$server"
}

rping_client() {
	hear ready || return
	run_rping "" 60 -c -a "$far4" -C 10 -v
}

siw2_goes() {
	rdma link del siw2 && rmmod siw
}

# The wire's device, as in storage-pair.sh.
# shellcheck disable=SC2034
DEVICE=siw2 DEVICE_TYPE=siw

meet
both "siw2 on the wire" siw2 || give_up
for server in 1 2; do
	pair "$server" rping "iwarp: rping" || give_up
	nvme_rounds "$server" "nvme over iwarp" 1 2 || give_up
done
both "siw2 goes" siw2_goes || give_up
finish
