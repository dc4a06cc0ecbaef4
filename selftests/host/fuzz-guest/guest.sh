#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Run in a guest of tools/fuzz, in the directory that it shares: the fuzzer, with these arguments,
# beside a listener of the kernel.
set -eu
# shellcheck source=selftests/targets/nvmet.sh
. "$(dirname "$0")/../../targets/nvmet.sh"
ip netns add empty
modprobe nvmet-rdma
mkdir "$NVMET/subsystems/t"
nvmet_port 1 ipv4 10.0.0.1
nvmet_on 1
text=$(cat /sys/module/rust_rdma_cm/sections/.text)
exec ./cm-fuzz-guest . "$text" "$@"
