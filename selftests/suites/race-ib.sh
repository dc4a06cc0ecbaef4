#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Suite race over a port with an InfiniBand link layer; arguments as there.
# seconds: 1200
OVER=ib exec "$(dirname "$0")/race.sh" "$@"
