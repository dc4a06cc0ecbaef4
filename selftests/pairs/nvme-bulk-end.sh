#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nvme-bulk-end.sh NUMBER CM CM: what each of the guests of "two-guests.sh --end nvme-bulk" does: one is an NVMe
# target, the other connects 16 controllers at once, and writes and verifies a gigabyte; then the reverse.
# seconds: 10000
# guest: --mem 5G
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck disable=SC2034 # meet.sh, nvmet.sh
HEARING=5000 FIO_SECONDS=2200
# shellcheck source=selftests/pairs/storage-pair.sh
. "$SELFTESTS/pairs/storage-pair.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"
# shellcheck source=selftests/pairs/nvme-pair.sh
. "$SELFTESTS/pairs/nvme-pair.sh"

needs nvme-rdma nvmet-rdma brd
needs_programs "much NVMe"

meet
both "jumbo frames" jumbo || give_up
for server in 1 2; do
	nvme_rounds "$server" "nvme, 16 controllers" 16 4 --nr-write-queues=2 || give_up
	# shellcheck disable=SC2034 # nvme-pair.sh
	MEGABYTES=1024
	nvme_rounds "$server" nvme 1 2 || give_up
	MEGABYTES=4
done
both "the connection manager unloads" cm-use none || give_up
finish
