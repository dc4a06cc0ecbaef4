#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of blktests for NVMe over fabrics, over RDMA: nvme-rdma and nvmet-rdma, loaded and unloaded
# by modprobe for each. They are in the directory blktests of the current one, where somebody has put
# a checkout of it and run make, and the kernel's configuration as config-kernel. Arguments: numbers of
# tests (all that know rdma).
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"

needs nvme-rdma nvmet-rdma
if [ ! -x blktests/check ]; then
	skip "blktests" "there is no directory blktests"
	finish
fi
if ! use_storage; then
	skip "blktests" "there is no storage.sqfs (tools/storage)"
	finish
fi

# It lays out what it prints.
command -v column >/dev/null || {
	printf '#!/bin/sh\ncat\n' >"$TMP/column"
	chmod +x "$TMP/column"
}
PATH=$TMP:$PATH
[ ! -e blktests/config-kernel ] || cp blktests/config-kernel "/boot/config-$(uname -r)"

cp -r blktests /run/blktests && cd /run/blktests || exit
# It reckons with the kernel's release, which with Debian's suffix is no number.
sed -i "s|uname -r . sed 's/-\.\*//|uname -r \| sed 's/[-+].*//|" common/rc
export NVMET_TRTYPES=rdma USE_RXE=1 NVMET_BLKDEV_TYPES=device NVME_IMG_SIZE=352M NVME_NUM_ITER=5 \
	TIMEOUT=20 MODPROBE_PATIENT_RM_TIMEOUT_SECONDS=20
# A host whose target leaves before it has answered waits 60 s, for each of some commands: nvme/044 sometimes
# comes to that, whichever connection manager is loaded. It fails then; the guest goes on.
hung=$(sysctl -n kernel.hung_task_timeout_secs)
sysctl -q kernel.hung_task_timeout_secs=0
# They end with "rdma link del" of what they see, and rmmod rdma_rxe.
rdma link del rxe1
modprobe -a configfs sd_mod

if [ $# -eq 0 ]; then
	mapfile -t numbers < <(grep -lE '_require_nvme_trtype(_is_fabrics| .*rdma)' tests/nvme/[0-9]* |
		grep -o '[0-9]*$' | sort)
	set -- "${numbers[@]}"
fi

# result NUMBER STATUS: what its run was, and what it printed that it should not.
result() {
	cat "$TMP/log"
	find results -name "$1.out.bad" -exec cat {} +
	return "$2"
}

for number; do
	title="nvme/$number, $(sed -n 's/^DESCRIPTION="\(.*\)"/\1/p' "tests/nvme/$number")"
	status=0
	timeout $((300 * PATIENCE)) ./check "nvme/$number" >"$TMP/log" 2>&1 || status=$?
	if grep -q '\[not run\]' "$TMP/log"; then
		skip "$title" "$(sed -n '/\[not run\]/,$s/^  *\(.*[^ ]\) *$/\1/p' "$TMP/log" | tail -n 1)"
	else
		check "$title" result "$number" "$status"
	fi
done

cd / || exit
modprobe -r nvme-rdma nvmet-rdma
sysctl -q kernel.hung_task_timeout_secs="$hung"
rdma link show rxe0/1 >/dev/null 2>&1 || plug
$PEER rdma link add rxe1 type rxe netdev v1
finish
