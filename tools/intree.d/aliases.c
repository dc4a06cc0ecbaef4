// SPDX-License-Identifier: GPL-2.0
/* The modules in whose place this one is, for who loads one of them by its name */
#include <linux/module.h>

MODULE_ALIAS("ib_cm");
MODULE_ALIAS("rdma_cm");
MODULE_ALIAS("rdma_ucm");
