/* SPDX-License-Identifier: GPL-2.0 */
/* The functions that both modules have. The parameter is here, as rust/macros knows only numbers. */
#include <linux/module.h>

#include "helpers.h"

static char *device = "rxe0";
module_param(device, charp, 0);
MODULE_PARM_DESC(device, "RoCE or InfiniBand device, or iWARP where there are tests for it");

static char *other = "rxe1";
module_param(other, charp, 0);
MODULE_PARM_DESC(other, "another device of the same kind");

const char *rust_test_device(void)
{
	return device;
}

const char *rust_test_other_device(void)
{
	return other;
}

bool rust_test_is_ib(struct ib_device *device, u32 port_num)
{
	return rdma_protocol_ib(device, port_num);
}
