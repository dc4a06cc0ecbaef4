// SPDX-License-Identifier: GPL-2.0
/* The helpers of ibcm. */
#include "device.h"
