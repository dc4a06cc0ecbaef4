#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# SCSI RDMA Protocol over an InfiniBand link layer: the suite srp over a device of softib.
# seconds: 600
OVER=softib exec "$(dirname "$0")/srp.sh"
