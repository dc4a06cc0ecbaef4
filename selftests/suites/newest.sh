#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The suites programs and pyverbs once more, with the RDMA user space of Debian
# testing: an image that is given as NEWEST, or is newest.sqfs in the shared directory
# (tools/newest prints a directory that has one, root.sqfs).
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

image=${NEWEST:-/mnt/share/newest.sqfs}
if [ ! -e "$image" ]; then
	skip "programs and pyverbs" "no $image"
	finish
fi
use_programs_of "$image" || exit

# The cases of a suite, with numbers of their own.
suite() {
	local line number=$RESULTS
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			number=$((number + 1))
			[[ $line =~ ^((not )?ok)\ [0-9]+\ -\ (.*) ]]
			echo "${BASH_REMATCH[1]} $number - ${BASH_REMATCH[3]}"
			;;
		1..* | 'KTAP version'*) ;;
		*) echo "$line" ;;
		esac
	done < <(env PYVERBS_TESTS="$TMP/root/usr/share/doc/rdma-core" "$SELFTESTS/suites/$1.sh") |
		tee "$TMP/suite"
	RESULTS=$((RESULTS + $(grep -cE '^(not )?ok ' "$TMP/suite")))
	FAILED=$((FAILED + $(grep -c '^not ok ' "$TMP/suite")))
}

suite programs
suite pyverbs
finish
