#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe over an InfiniBand link layer: the suite nvme over a device of softib.
# seconds: 800
OVER=softib exec "$(dirname "$0")/nvme.sh"
