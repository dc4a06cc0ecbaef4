// SPDX-License-Identifier: GPL-2.0

#include <linux/configfs.h>

#include "rust_rdma_cm.h"

void rust_rdma_configfs_add_default_group(struct config_group *group,
					  struct config_group *parent)
{
	configfs_add_default_group(group, parent);
}
