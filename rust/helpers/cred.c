// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>
#include <linux/fs.h>
#include <rdma/ib.h>

#include "rust_rdma_cm.h"

bool rust_rdma_ib_safe_file_access(struct file *filp)
{
	return ib_safe_file_access(filp);
}
