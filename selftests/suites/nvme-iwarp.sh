#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# NVMe over iWARP: the suite nvme over a device of the software driver siw.
# seconds: 800
OVER=siw exec "$(dirname "$0")/nvme.sh"
