// SPDX-License-Identifier: GPL-2.0

#include <linux/module.h>

MODULE_VERSION(RDMA_CM_VERSION);
MODULE_INFO(commit, RDMA_CM_COMMIT);
