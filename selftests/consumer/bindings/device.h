/* SPDX-License-Identifier: GPL-2.0 */
/* The parameter that both modules have: rust/macros knows only numbers. */
#include <linux/module.h>

#include "helpers.h"

static char *device = "rxe0";
module_param(device, charp, 0);
MODULE_PARM_DESC(device, "RoCE device, or iWARP where there are tests for it");

const char *rust_test_device(void)
{
	return device;
}
