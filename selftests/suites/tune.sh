#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tunables of ports, set by rdma-cm and by cm.conf, which a rule of udev applies to devices that come.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/admin.sh
. "$SELFTESTS/lib/admin.sh"

if [ "$CM" = c ]; then
	skip "rdma-cm tune" "C has no such netlink family (suite admin)"
	finish
fi

# The server is stopped, so that the request waits until its deadline.
deadline() {
	local start before
	serve && kill -STOP "$(peer_json '.[0].pid' show listeners)" || return
	"$TOOL" tune set rxe0/1 deadline-ms=700 || return
	[ "$(json '.[] | select(."dev-name" == "rxe0")."deadline-ms"' tune)" -eq 700 ] || return
	start=$(date +%s)
	! timeout $((60 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 2>"$TMP/err" >"$TMP/out" || return
	[ $(($(date +%s) - start)) -le $((10 * PATIENCE)) ] || fail "no deadline" || return
	grep -q UNREACHABLE "$TMP/out" "$TMP/err" || fail "$(cat "$TMP/out" "$TMP/err")" || return
	kill -CONT "$(peer_json '.[0].pid' show listeners)" || return
	# Nothing changes if any of it is wrong.
	before=$(json . tune)
	ends_with 2 "$TOOL" tune set rxe0 timewait=3 max-retries=16 && ends_with 2 "$TOOL" tune set rxe9 timewait=3 &&
		ends_with 2 "$TOOL" tune set rxe0 retries=3 || return
	ends_with 4 as $OWNER "$TOOL" tune set rxe0 timewait=3 || return
	ends_with 4 unshare --user --map-root-user "$TOOL" tune set rxe0 timewait=3 || return
	[ "$(json . tune)" = "$before" ] || fail "$(json . tune)" || return
	# Configfs shows the same.
	[ ! -d /sys/kernel/config ] || mount -t configfs none /sys/kernel/config 2>/dev/null || :
	mkdir /sys/kernel/config/rdma_cm/rxe0 &&
		[ "$(</sys/kernel/config/rdma_cm/rxe0/ports/1/cm_deadline_ms)" -eq 700 ] &&
		rmdir /sys/kernel/config/rdma_cm/rxe0 || return
	"$TOOL" tune set rxe0 deadline-ms=0 && stop
}
check "tune: a deadline holds from the next request on; nothing half done" deadline

CONF=/etc/rdma/cm.conf

# conf LINE...: the file has these lines.
conf() {
	mkdir -p "${CONF%/*}" && printf '%s\n' "$@" >"$CONF"
}

# tuned DEVICE TUNABLE: its value, and where it comes from.
tuned() {
	json ".[] | select(.\"dev-name\" == \"$1\") | \"\\(.\"$2\") \\(.from[] | select(.name == \"$2\").from)\"" tune
}

# is_tuned DEVICE TUNABLE "VALUE FROM"
is_tuned() {
	[ "$(tuned "$1" "$2")" = "$3" ] || fail "$1 $2: $(tuned "$1" "$2") in place of $3"
}

# The object says what has been set, and which file has it.
changes() {
	conf '# Of the site.' || return
	object '"rxe0",1,"max-retries",4,15,"'"$CONF"'"' tune set --save rxe0 max-retries=4 && is_tuned rxe0 max-retries "4 device" ||
		return
	object '"rxe0",1,"max-retries",5,4,"timewait",3,22' tune set rxe0/1 max-retries=5 timewait=3 &&
		is_tuned rxe0 timewait "3 hand" || return
	object '"rxe0",1,"max-retries",4,5' tune apply && is_tuned rxe0 max-retries "4 device" || return
	[ -z "$("$TOOL" tune apply)$("$TOOL" tune set rxe0 max-retries=15 timewait=22)" ] && conf && object "" tune apply || return
	# A failure is a line in either case.
	ends_with 2 "$TOOL" -j tune set rxe0 max-retries=16 && [ ! -s "$TMP/out" ] &&
		grep -qx 'rdma-cm: max-retries is a number from 0 to 15' "$TMP/err" || fail "$(cat "$TMP/out" "$TMP/err")" || return
	ends_with 2 "$TOOL" -j stat --openmetrics && ends_with 2 "$TOOL" stat --prometheus -j
}
check "tune, as JSON: what was set, and what it was before" changes

origins() {
	ends_with 0 "$TOOL" tune apply && is_tuned rxe0 max-retries "15 default" || return
	conf 'all max-retries=7 deadline-ms=9000' 'rxe0 deadline-ms=8000' 'rxe0/1 timewait=3' 'other max-retries=1' || return
	# A value of the file holds when it is applied.
	is_tuned rxe0 max-retries "15 hand" && ends_with 0 "$TOOL" tune apply rxe0 && is_tuned rxe0 max-retries "7 host" &&
		is_tuned rxe0 deadline-ms "8000 device" && is_tuned rxe0 timewait "3 port" &&
		is_tuned rxe0 response-timeout "20 default" || return
	"$TOOL" tune set rxe0 max-retries=5 && is_tuned rxe0 max-retries "5 hand" || return
	grep -q '^rxe0/1 *max-retries *5 *15 *15 *by hand, line 1 has 7$' <<<"$("$TOOL" tune)" || fail "$("$TOOL" tune)" || return
	"$TOOL" tune set rxe0 early-retry-ms=100 && ends_with 0 "$TOOL" tune apply && is_tuned rxe0 max-retries "7 host" &&
		is_tuned rxe0 early-retry-ms "100 hand" || return
	"$TOOL" tune | awk 'length > 80 { exit 1 }' || fail "$("$TOOL" tune)" || return
	ends_with 2 "$TOOL" tune apply rxe9 && ends_with 4 as $OWNER "$TOOL" tune apply
}
check "cm.conf: apply, and where each value comes from" origins

saved() {
	conf '# Of the site.' 'rxe0 deadline-ms=8000 # slow' || return
	ends_with 0 "$TOOL" tune set --save rxe0 max-retries=4 && ends_with 0 "$TOOL" tune set --save all timewait=5 || return
	[ "$(cat "$CONF")" = "# Of the site.
rxe0 deadline-ms=8000 max-retries=4 # slow
all timewait=5" ] || fail "$(cat "$CONF")" || return
	is_tuned rxe0 max-retries "4 device" && is_tuned rxe0 timewait "5 host" || return
	# Nothing changes, in the kernel or in the file, if any of it is wrong or not permitted.
	local before
	before=$(cat "$CONF" && json . tune)
	ends_with 2 "$TOOL" tune set --save rxe0 max-retries=16 && ends_with 2 "$TOOL" tune set --save rxe9 max-retries=1 &&
		ends_with 4 as $OWNER "$TOOL" tune set --save rxe0 max-retries=1 || return
	chmod 777 "${CONF%/*}" && ends_with 4 as $OWNER "$TOOL" tune set --save rxe0 max-retries=1 && chmod 755 "${CONF%/*}" ||
		return
	# The file cannot be replaced, because another is mounted there: the kernel has what it had.
	mount --bind "$CONF" "$CONF" || return
	ends_with 1 "$TOOL" tune set --save all max-retries=2
	umount "$CONF" || return
	grep -q "$CONF" "$TMP/err" || fail "$(cat "$TMP/err")" || return
	[ "$(ls "${CONF%/*}")" = "$files" ] && [ "$(cat "$CONF" && json . tune)" = "$before" ] || fail "$(cat "$CONF")"
}
conf && files=$(ls "${CONF%/*}")
check "cm.conf: set --save sets and writes, or neither" saved

faulty() {
	conf 'rxe0 max-retries=9' 'rxe0 timewait=7 max-retries=16' 'rxe0/1 deadlin-ms=1' 'rxe0' 'all timewait=8' || return
	ends_with 0 "$TOOL" tune set rxe0 timewait=22 deadline-ms=0 || return
	"$TOOL" tune apply 2>"$TMP/err"
	[ $? -eq 5 ] || fail "no status 5" || return
	diff - "$TMP/err" <<-EOF || return
		rdma-cm: $CONF:2: max-retries is a number from 0 to 15
		rdma-cm: $CONF:3: no tunable deadlin-ms: there are response-timeout, max-retries, deadline-ms, timewait, early-retry-ms, backlog-parking, reuseport, dead-link-ms, keepalive-s
		rdma-cm: $CONF:4: no NAME=VALUE for rxe0
	EOF
	is_tuned rxe0 max-retries "9 device" && is_tuned rxe0 timewait "8 host" && is_tuned rxe0 deadline-ms "0 default"
}
check "cm.conf: a wrong line does nothing, is told of, and the others count" faulty

# The rule of the package, and udev as on a host.
watch_devices() {
	cp "$TOOL" /usr/bin/rdma-cm && mkdir -p /run/udev/rules.d /run/sysctl.d &&
		cp /mnt/repo/debian/90-rdma-cm.rules /run/udev/rules.d/ || return
	/usr/lib/systemd/systemd-udevd --daemon && wait_for 10 udevadm control --ping
}

plugged() {
	conf 'rxe0 max-retries=6' 'all timewait=4' || return
	watch_devices || fail "no udev" || return
	# A device that comes back, and one that is new.
	rdma link del rxe0 && rdma link add rxe0 type rxe netdev v0 && wait_for 20 is_tuned rxe0 max-retries "6 device" &&
		wait_for 20 is_tuned rxe0 timewait "4 host" || fail "$("$TOOL" tune)" || return
	ip link add w0 type veth peer name w1 && rdma link add new0 type rxe netdev w0 &&
		wait_for 20 is_tuned new0 timewait "4 host" || fail "$("$TOOL" tune)" || return
	# Devices that are there stay as they were set.
	"$TOOL" tune set rxe0 max-retries=2 && rdma link del new0 && rdma link add new0 type rxe netdev w0 &&
		wait_for 20 is_tuned new0 timewait "4 host" && is_tuned rxe0 max-retries "2 hand" || return
	udevadm settle && rdma link del new0 && ip link del w0
}
check "cm.conf: a device that comes, by udev" plugged

# load_again: udev has the indexes of modules open, which cm-use would unmount.
load_again() {
	wait_for 10 rmmod rust_rdma_cm && modprobe rust_rdma_cm
}

# A server and a client see what the file says: the request waits until its deadline.
reloaded() {
	conf 'rxe0 deadline-ms=700' || return
	echo 'net.rdma_ucm.max_user_listeners = 77' >/run/sysctl.d/rdma.conf || return
	load_again || return
	wait_for 20 is_tuned rxe0 deadline-ms "700 device" || fail "$("$TOOL" tune)" || return
	udevadm settle
	[ "$(</proc/sys/net/rdma_ucm/max_user_listeners)" = 77 ] || fail "no limit of sysctl.d" || return
	serve && kill -STOP "$(peer_json '.[0].pid' show listeners)" || return
	! timeout $((60 * PATIENCE)) rping -c -a "$B4" -p 7330 -C 1 >"$TMP/out" 2>&1 || return
	grep -q UNREACHABLE "$TMP/out" || fail "$(cat "$TMP/out")" || return
	kill -CONT "$(peer_json '.[0].pid' show listeners)" && stop || return
	rm /run/sysctl.d/rdma.conf "$CONF"
	load_again && udevadm settle && is_tuned rxe0 deadline-ms "0 default" &&
		[ "$(</proc/sys/net/rdma_ucm/max_user_listeners)" = 16384 ]
}
if [ -z "$CM_BUILT_IN" ]; then
	check "cm.conf: the module is loaded again, by udev" reloaded
else
	skip "cm.conf: the module is loaded again, by udev" "the module is built in"
fi
udevadm control --exit
wait_for 10 eval '! pgrep systemd-udevd'
rm -rf /run/udev/rules.d "$CONF" /usr/bin/rdma-cm
finish
