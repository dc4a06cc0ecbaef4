#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nvme-queues-end.sh NUMBER CM CM: what each of the guests of "two-guests.sh --end nvme-queues" does: one is an
# NVMe target, the other connects a controller with 64 queues for data, the limit of a kernel with 22
# CPUs, which has three kinds of them; then the reverse.
# seconds: 10000
# guest: --smp 22 --mem 4G
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck disable=SC2034 # meet.sh
HEARING=2000
# shellcheck source=selftests/pairs/storage-pair.sh
. "$SELFTESTS/pairs/storage-pair.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"
# shellcheck source=selftests/pairs/nvme-pair.sh
. "$SELFTESTS/pairs/nvme-pair.sh"

needs nvme-rdma nvmet-rdma brd
needs_programs "64 queues"

meet
both "jumbo frames" jumbo || give_up
for server in 1 2; do
	nvme_rounds "$server" "nvme, 64 queues" 1 64 --nr-io-queues=22 --nr-write-queues=22 --nr-poll-queues=20 ||
		give_up
done
both "the connection manager unloads" cm-use none || give_up
finish
