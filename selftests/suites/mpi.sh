#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# libfabric and Open MPI: the provider "verbs" connects through librdmacm, and "ofi_rxm" above it when a rank first has
# something for another one.
#
# shellcheck disable=SC2317 # functions that "check" runs
# shellcheck source=selftests/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"
# shellcheck source=selftests/lib/middleware.sh
. "$SELFTESTS/lib/middleware.sh"

use_middleware mpi

# A completion queue of ofi_rxm has room for so many peers, and soft-RoCE has none as large as that of 256.
export FI_UNIVERSE_SIZE=8
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# pingpong PROVIDER ENDPOINT: of 4 kB, whose bytes both ends look at. They meet at a socket first.
pingpong() {
	local server before
	before=$(requests)
	$PEER fi_pingpong -p "$1" -e "$2" -d rxe1 -I 20 -S 4096 -c >"$TMP/server" 2>&1 & server=$!
	wait_for 60 $PEER sh -c "ss -Hltn | grep -q ." || fail "no socket: $(cat "$TMP/server")" || return
	client 120 fi_pingpong -p "$1" -e "$2" -d rxe0 -I 20 -S 4096 -c "$B4" || return
	ends_within 60 "$server" || fail "server: $(cat "$TMP/server")" || return
	grep -q '^4k *20 *=20 ' "$TMP/client" && grep -q '^4k *20 *=20 ' "$TMP/server" || fail "$(cat "$TMP/client")" || return
	[ "$(requests)" -gt "$before" ] || fail "no request" || return
	nothing_left
}
check "fi_pingpong, connections" pingpong verbs msg
check "fi_pingpong, ofi_rxm" pingpong "verbs;ofi_rxm" rdm

# mpirun RANKS ARGUMENT...
mpirun() {
	timeout $((120 * PATIENCE)) mpirun.openmpi -np "$1" --oversubscribe --mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include "verbs;ofi_rxm" --mca opal_common_ofi_provider_include "verbs;ofi_rxm" \
		-x FI_VERBS_IFACE="v0" ./mpi "${@:2}"
}

# ranks NUMBER ROUNDS: each gives to each, and each looks at what it gets.
ranks() {
	local before
	before=$(requests)
	mpirun "$@" || return
	# Each pair has a connection, of which both ends are here.
	[ $(($(requests) - before)) -ge $(($1 * ($1 - 1))) ] || fail "$(($(requests) - before)) requests" || return
	nothing_left
}
check "Open MPI, two ranks" ranks 2 5
check "Open MPI, four ranks" ranks 4 2

killed() {
	local job victim
	mpirun 2 1000000 >"$TMP/job" 2>&1 & job=$!
	wait_for 60 cm_id_in CONNECT "comm mpi" || fail "no connection: $(cat "$TMP/job")" || return
	victim=$(cm_ids | sed -n 's/.*state CONNECT .* pid \([0-9]*\) comm mpi .*/\1/p' | head -n 1)
	kill -9 "$victim" || return
	fails "$job" || return
	grep -q 'signal 9' "$TMP/job" || fail "$(cat "$TMP/job")" || return
	nothing_left 30
}
check "a rank is killed: the job ends" killed
finish
