#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nvme-reclaim-end.sh NUMBER CM CM: what each of the guests of "two-guests.sh --end nvme-reclaim" does: one is an
# NVMe target, the other connects a controller, and fills its memory with what is to be written to that,
# while the cable is out; then the reverse. The memory can be used again only when the controller is connected
# again.
# seconds: 6000
# guest: --mem 768M
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck disable=SC2034 # meet.sh
HEARING=3000
# shellcheck source=selftests/pairs/storage-pair.sh
. "$SELFTESTS/pairs/storage-pair.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"
# shellcheck source=selftests/pairs/nvme-pair.sh
. "$SELFTESTS/pairs/nvme-pair.sh"

needs nvme-rdma nvmet-rdma brd
needs_programs "NVMe with memory that is full"

# The megabytes of memory that are left to be filled, and the number of rounds.
LEFT=96 ROUNDS=3
taken=/run/taken

full_server() {
	nvmet_load $((LEFT * 3 / 2)) && nvmet_target "$own4" || return
	say ready
	hear disconnected || return
	nvmet_remove && unloaded nvmet-rdma && rmmod brd
}

full_client() {
	local numbers n
	modprobe nvme-rdma && wait_for 20 test -e /dev/nvme-fabrics || return
	echo 255 >/sys/module/nvme_core/parameters/max_retries || return
	hear ready || return
	# The writes keep the link busy for longer than a host usually waits for an answer.
	nvme_connect_all 1 --keep-alive-tmo=30 || return
	mapfile -t numbers < <(nvme_numbers)
	disk=$(nvme_disk "${numbers[0]}") || return
	# All but a little of the memory is taken, and any of that may be dirty, for as long as it takes.
	mkdir -p "$taken" && mount -t tmpfs -o size=100% none "$taken" || return
	head -c "$(($(memory MemAvailable) / 1024 - LEFT))M" /dev/zero >"$taken/zeroes" || return
	echo 95 >/proc/sys/vm/dirty_ratio && echo 90 >/proc/sys/vm/dirty_background_ratio || return
	echo 360000 | tee /proc/sys/vm/dirty_{expire,writeback}_centisecs >/dev/null || return
	for ((n = 1; n <= ROUNDS; n++)); do
		full_round "$n" "${numbers[0]}" || return
	done
	umount "$taken" || return
	nvme_disconnect && unloaded nvme-rdma || return
	say disconnected
}

# memory FIELD: in kB.
memory() {
	awk -v field="$1:" '$1 == field { print $2 }' /proc/meminfo
}

# text NUMBER: as much as is written in that round, which is more than there is memory for.
text() {
	head -c $((LEFT * 5 / 4))M < <(yes "round $1")
}

full_round() { # NUMBER CONTROLLER
	local writer dirty=0 before=-1
	cable off && nvme_all_within 160 connecting "$2" || return
	text "$1" | dd of="$disk" bs=256k iflag=fullblock conv=notrunc,fsync status=none & writer=$!
	# Until it gets no further.
	until [ "$dirty" -ge $((LEFT * 512)) ] && [ "$dirty" -le $((before + 256)) ]; do
		before=$dirty
		pause 4
		dirty=$(($(memory Dirty) + $(memory Writeback)))
	done
	note "round $1: $((dirty / 1024)) MB to be written, $(($(memory MemFree) / 1024)) MB free"
	cable on || return
	timed "live again with full memory, $CM host" nvme_all_within 600 live "$2" || return
	ends_within 1200 "$writer" || fail "the writer: $?" || return
	echo 3 >/proc/sys/vm/drop_caches
	text "$1" | cmp -n "$((LEFT * 5 / 4))M" - "$disk"
}

meet
both "jumbo frames" jumbo || give_up
for server in 1 2; do
	pair "$server" full "nvme: the controller connects again while memory is full of what is to be written to it" ||
		give_up
done
both "the connection manager unloads" cm-use none || give_up
finish
