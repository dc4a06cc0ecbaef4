#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# iSCSI extensions for RDMA over an InfiniBand link layer: the suite iser over a device of softib.
# seconds: 600
OVER=softib exec "$(dirname "$0")/iser.sh"
