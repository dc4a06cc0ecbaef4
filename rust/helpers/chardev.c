// SPDX-License-Identifier: GPL-2.0
/*
 * Attributes of the character device.
 */
#include <linux/device.h>
#include <linux/sysfs.h>
#include <rdma/rdma_user_cm.h>

#include "rust_rdma_cm.h"

/* Repeats: drivers/infiniband/core/ucma.c abi_version_show eefe2300ad9c */
static ssize_t abi_version_show(struct device *dev, struct device_attribute *attr,
				char *buf)
{
	return sysfs_emit(buf, "%d\n", RDMA_USER_CM_ABI_VERSION);
}
static DEVICE_ATTR_RO(abi_version);

static struct attribute *rust_rdma_ucm_attrs[] = {
	&dev_attr_abi_version.attr,
	NULL,
};

static const struct attribute_group rust_rdma_ucm_group = {
	.attrs = rust_rdma_ucm_attrs,
};

const struct attribute_group *rust_rdma_ucm_groups[] = {
	&rust_rdma_ucm_group,
	NULL,
};
