#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Conformance of /dev/infiniband/rdma_cm, command by command. Arguments choose
# tests by pattern: abi.sh 'bind.*'. Without any, those that iwarp.sh and ib.sh run
# over their devices, consumer.sh beside a listener of the kernel, and reuseport.sh, are left to them.
set -uo pipefail

# The host may have compiled it already; else that is done here.
program=$PWD/ucma_conformance
if [ ! -x "$program" ]; then
	program=/tmp/ucma_conformance
	make -s -C "$(dirname "$0")/../abi" OUT="$program" >&2 || exit 1
fi
[ $# -gt 0 ] || set -- '!(ib.*|iwarp.*|beside.*|reuseport.*)'
exec "$program" "$@"
