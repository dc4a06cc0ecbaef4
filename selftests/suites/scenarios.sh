#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The scenarios of scenarios/*.cm, with real frames; all at the same time.
# Arguments choose scenarios by a part of their names: scenarios.sh stale timewait
set -uo pipefail

selftests=$(cd "$(dirname "$0")/.." && pwd)
# There is no cargo in a guest: the host has built it, beside here or in the
# repository. It is static, so that it runs with any C library.
for program in "$PWD/cm-script" "$selftests/host/target/cm-script"; do
	[ ! -x "$program" ] || exec "$program" guest "$selftests/scenarios" "$@"
done
echo "Bail out! cm-script is missing: run tools/script on the host"
exit 1
