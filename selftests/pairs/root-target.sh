#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# root-target.sh: in a guest that is joined with another (tools/guest --link), an NVMe target whose disk is root.img of
# the shared directory. It serves until there is a file root-done.
#
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/storage.sh
. "$SELFTESTS/lib/storage.sh"
# shellcheck source=selftests/targets/nvmet.sh
. "$SELFTESTS/targets/nvmet.sh"

serve() {
	nvmet_load 64 && dd if=root.img of=/dev/ram0 bs=1M && nvmet_target 10.0.1.1
}
check "the root file system is there over NVMe" serve
until [ -e root-done ]; do
	sleep 1
done
finish
