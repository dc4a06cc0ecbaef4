#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Errors that are planted in the debug kernel are found, and counted. Needs planted.ko (planted/)
# in the current directory, and a guest whose log may have reports:
#
#	tools/guest --kernel debug --ignore-log --share DIR -- /mnt/repo/selftests/suites/planted.sh
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

module=$PWD/planted.ko
# A hang is to be reported, not to end the guest.
sysctl -q -w kernel.hung_task_panic=0

# plant WHAT REPORT: this report, and none before.
plant() {
	kernel-log-clean --mark
	kernel-log-clean || fail "reports before" || return
	insmod "$module" what="$1" || return
	rmmod planted
	kernel-log-clean >"$TMP/reports" && fail "the log counts as clean" && return 1
	cat "$TMP/reports"
	grep -q -- "$2" "$TMP/reports"
}

leak() {
	kernel-log-clean --mark
	insmod "$module" what=leak && rmmod planted || return
	# It ends with the connection manager loaded again.
	"$SELFTESTS/suites/kmemleak.sh" >"$TMP/kmemleak"
	cat "$TMP/kmemleak"
	grep -q '^not ok' "$TMP/kmemleak" && grep -q 'comm "insmod"' "$TMP/kmemleak"
}

# A suite that passes, but for what it leaves in the log.
suite() {
	mkdir -p "$TMP/suites/suites" &&
		cp -r "$SELFTESTS"/{run.sh,lib} "$TMP/suites" || return
	printf '%s\n' '#!/bin/bash' "insmod $module what=warning" 'rmmod planted' \
		'echo ok 1 - x' 'echo 1..1' >"$TMP/suites/suites/bad.sh"
	chmod +x "$TMP/suites/suites/bad.sh"
	echo 'bad bad 300 - - -' >"$TMP/suites/suites/index"
	"$TMP/suites/run.sh" bad >"$TMP/bad" && fail "run.sh passes" && return 1
	cat "$TMP/bad"
	grep -q '^not ok - bad: the kernel log has no report' "$TMP/bad" &&
		[ "$(grep -c '^not ok' "$TMP/bad")" -eq 1 ]
}

lock_order() {
	plant lock_order "possible circular locking" || return
	# From then on it is blind, which must be seen.
	! lockdep_watches
}

if [ ! -e "$module" ]; then
	skip "planted errors" "there is no planted.ko"
	finish
fi
# In this order: lockdep turns itself off when it or KASAN has found something.
check "a suite that leaves a report" suite
check "a circle of locks" lock_order
check "a warning" plant warning "WARNING:"
check "a write behind an object" plant out_of_bounds "BUG: KASAN: slab-out-of-bounds"
check "a read of a freed object" plant use_after_free "BUG: KASAN: slab-use-after-free"
check "an object freed twice" plant double_free "BUG: KASAN: double-free"
check "sleep with a spin lock held" plant sleep_in_atomic "BUG: sleeping function called"
check "an active timer that is freed" plant free_active_timer "ODEBUG: free active"
check "a count that rises from zero" plant refcount "refcount_t:"
check "a task that hangs" plant hang "INFO: task insmod.* blocked"
check "memory that nobody knows" leak
finish
