#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Suites of which a part is chosen: what is mistyped, or chooses nothing, is an error and no pass.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

# refused PATTERN COMMAND...: it fails, says so, and runs no case.
refused() {
	local pattern=$1 status=0
	shift
	"$@" >"$TMP/out" 2>&1 || status=$?
	cat "$TMP/out"
	[ "$status" -ne 0 ] && grep -qE "$pattern" "$TMP/out" && ! grep -q '^ok ' "$TMP/out"
}
check "abi: a pattern of no case" refused 'no case matches "bogus' "$SELFTESTS/suites/abi.sh" 'bogus.*'
check "abi: a pattern of no case beside one of some" refused 'no case matches "bogus' \
	"$SELFTESTS/suites/abi.sh" 'bind.*' 'bogus.*'
check "scenarios: a part of no name" refused 'no scenario has "bogus"' "$SELFTESTS/suites/scenarios.sh" bogus
check "scenarios: a part of no name beside one of some" refused 'no scenario has "bogus"' \
	"$SELFTESTS/suites/scenarios.sh" active bogus
check "walk: a pattern of no case" refused 'no case matches "bogus' "$SELFTESTS/suites/walk.sh" --only "$TMP/walk" 'bogus: *'
check "walk: a state that there is not" refused 'no case matches "bogus' \
	"$SELFTESTS/suites/walk.sh" --only "$TMP/walk" --states "idle bogus"
check "race: neither pairs nor changes" refused 'no case was run' "$SELFTESTS/suites/race.sh" 0 0

# A suite of run.sh that runs no case, with run.sh in a directory of its own.
mkdir -p "$TMP/suites/suites" && cp -r "$SELFTESTS"/{run.sh,lib} "$TMP/suites"
suite() {
	printf '#!/bin/bash\n%s\n' "$2" >"$TMP/suites/suites/$1.sh"
	chmod +x "$TMP/suites/suites/$1.sh"
	echo "$1 $1 300 - - -" >>"$TMP/suites/suites/index"
}
# shellcheck disable=SC2016
suite empty '. "$(dirname "$0")/../lib/lib.sh"; finish'
suite plan 'echo 1..0'
suite silent 'true'
no_case() {
	! "$TMP/suites/run.sh" "$1" >"$TMP/out" || fail "it passes" || return
	cat "$TMP/out"
	grep -qE "^not ok - $1: (no case was run|0 cases and then)" "$TMP/out"
}
for name in empty plan silent; do
	check "run.sh: a suite without a case ($name)" no_case "$name"
done
suite arguments 'echo "ok 1 - $*"; echo 1..1'
arguments() {
	"$TMP/suites/run.sh" 'arguments one two.*' >"$TMP/out"
	cat "$TMP/out"
	grep -qx 'ok - arguments: one two\.\*' "$TMP/out"
}
check "run.sh: a suite with arguments" arguments
finish
