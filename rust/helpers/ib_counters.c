// SPDX-License-Identifier: GPL-2.0

#include <linux/sysfs.h>

#include "rust_rdma_cm_ib.h"

void rust_rdma_sysfs_attr_init(struct attribute *attr)
{
	sysfs_attr_init(attr);
}
