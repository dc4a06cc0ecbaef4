#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Suite walk over a port with an InfiniBand link layer. What the C modules did there, in a guest of their own
# (walk.sh --only), is in walk-ib-c.txt in the current directory.
# seconds: 900
OVER=ib exec "$(dirname "$0")/walk.sh" --against walk-ib-c.txt
