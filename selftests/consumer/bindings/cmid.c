// SPDX-License-Identifier: GPL-2.0
/* The helpers of cmid. */
#include "device.h"

static char *ipv4 = "10.0.0.1";
module_param(ipv4, charp, 0);
MODULE_PARM_DESC(ipv4, "its address");

const char *rust_test_ipv4(void)
{
	return ipv4;
}
