#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NFS over an InfiniBand link layer: the suite nfs over a device of softib.
# seconds: 900
OVER=softib exec "$(dirname "$0")/nfs.sh"
