#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# QEMU migrates over "rdma:". The two have memory and nothing else, in files, so that all of it can be compared.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/middleware.sh
. "$SELFTESTS/lib/middleware.sh"

use_middleware

QEMU=qemu-system-x86_64
MEGABYTES=16
# From where and to where: the monitor and the memory of each.
FROM=$TMP/from TO=$TMP/to

# machine NAME OPTION...: its command line, as an array "machine".
machine() {
	machine=("$QEMU" -accel tcg -nodefaults -display none -machine "none,memory-backend=ram" -m "$MEGABYTES"
		-object "memory-backend-file,id=ram,size=${MEGABYTES}M,mem-path=$1.memory,share=on"
		-monitor "unix:$1.monitor,server=on,wait=off" "${@:2}")
}

# hmp NAME COMMAND...: what its monitor answers.
hmp() {
	echo "${*:2}" | socat -t 10 - "UNIX-CONNECT:$1.monitor" | tr -d '\r' | sed '/^QEMU/d; /^(qemu)/d'
}

# is NAME WHAT PATTERN: whether "info WHAT" has a line with that.
is() {
	hmp "$1" info "$2" | grep -q "$3"
}

# becomes NAME WHAT PATTERN
becomes() {
	wait_for 60 is "$@" || fail "not $3: $(hmp "$1" info "$2")"
}

# source_runs: sets "source", whose memory has something.
source_runs() {
	local machine
	head -c "${MEGABYTES}M" /dev/urandom >"$FROM.memory"
	machine "$FROM"
	"${machine[@]}" >"$TMP/source" 2>&1 & source=$!
	wait_for 120 is "$FROM" status running || fail "$(cat "$TMP/source")"
}

# destination_waits: sets "server", whose memory has nothing.
destination_waits() {
	local machine
	rm -f "$TO.memory" "$TO.monitor"
	truncate -s "${MEGABYTES}M" "$TO.memory"
	machine "$TO" -incoming "rdma:$B4:4444"
	serve "${machine[@]}"
}

migrate() {
	hmp "$FROM" migrate -d "rdma:$B4:4444"
}

# arrived: the memory is the same, and the destination has taken over.
arrived() {
	becomes "$FROM" migrate 'status: completed' || return
	becomes "$TO" status running || return
	is "$FROM" status postmigrate || fail "$(hmp "$FROM" info status)" || return
	cmp "$FROM.memory" "$TO.memory"
}

# over: both are ended.
over() {
	end "$source" && closed
}

migrated() {
	local source server
	source_runs && destination_waits || return
	! cmp -s "$FROM.memory" "$TO.memory" || fail "the same before" || return
	migrate && arrived && over
}
check "memory arrives" migrated

# stopped: the migration has stopped before its last step, with a connection.
stopped() {
	hmp "$FROM" migrate_set_capability pause-before-switchover on
	migrate || return
	becomes "$FROM" migrate 'status: pre-switchover' || return
	await_connections "$QEMU" 2
}

# runs_on: the source does, as it was, and can migrate.
runs_on() {
	becomes "$FROM" status running || return
	hmp "$FROM" migrate_set_capability pause-before-switchover off
	destination_waits && migrate && arrived && over
}

nobody() {
	local source server
	source_runs || return
	migrate
	becomes "$FROM" migrate 'status: failed' || return
	hmp "$FROM" migrate -d rdma:192.0.2.1:4444
	becomes "$FROM" migrate 'status: failed' || return
	nothing_left && runs_on
}
check "nobody and nowhere: the source runs on, and migrates later" nobody

killed() {
	local source server
	source_runs && destination_waits && stopped || return
	end "$server" || return
	await_connections "$QEMU" 0 || return
	hmp "$FROM" migrate_continue pre-switchover
	becomes "$FROM" migrate 'status: failed' || return
	nothing_left && runs_on
}
check "the destination is killed: the source runs on, and migrates to the next one" killed

cancelled() {
	local source server
	source_runs && destination_waits && stopped || return
	hmp "$FROM" migrate_cancel
	becomes "$FROM" migrate 'status: cancelled' || return
	# The destination has half a memory, and ends.
	fails "$server" || return
	grep -q 'load of migration failed' "$TMP/server" || fail "$(cat "$TMP/server")" || return
	nothing_left && runs_on
}
check "the migration is cancelled: the source runs on, and migrates later" cancelled

source_killed() {
	local source server
	source_runs && destination_waits && stopped || return
	end "$source" || return
	fails "$server" || return
	grep -q 'load of migration failed' "$TMP/server" || fail "$(cat "$TMP/server")" || return
	nothing_left
}
check "the source is killed: the destination gives up" source_killed
finish
