#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# rdma-core's own tests of the connection manager, in Python and unmodified. The
# directory that has them as "tests" is given as PYVERBS_TESTS, or is pyverbs in the
# shared directory (tools/pyverbs-tests prints one).
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

dir=${PYVERBS_TESTS:-/mnt/share/pyverbs}
if [ ! -d "$dir/tests" ]; then
	skip "rdmacm" "no tests in $dir"
	finish
fi
cd "$dir" || exit
timeout $((350 * PATIENCE)) python3 tests/run_tests.py --dev rxe0 -v -k rdmacm >"$TMP/out" 2>&1
echo "status $?" >>"$TMP/out"

# A case is a line with its name, perhaps one about it, and how it ended.
awk '/^test_[a-z0-9_]+ \(/ { name = $1 }
     name && / \.\.\. / {
	result = $0
	sub(/.* \.\.\. /, "", result)
	print name, result
	name = ""
     }' "$TMP/out" >"$TMP/cases"

was_ok() {
	[ "$2" = ok ] && return
	echo "$2"
	sed -n "/^\(ERROR\|FAIL\): $1 /,/^=====/p" "$TMP/out"
	return 1
}

while read -r name result; do
	case $result in
	skipped*) skip "$name" "${result#skipped }" ;;
	*) check "$name" was_ok "$name" "$result" ;;
	esac
done <"$TMP/cases"

came_to_an_end() {
	grep -q '^Ran [1-9]' "$TMP/out" && nothing_left 20 && return
	cat "$TMP/out"
	return 1
}
check "all ended, and nothing is left" came_to_an_end
finish
