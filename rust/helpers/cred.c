// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>
#include <linux/fs.h>
#include <rdma/ib.h>

#include "rust_rdma_cm.h"

u32 rust_rdma_current_user(void)
{
	return from_kuid(&init_user_ns, current_euid());
}

bool rust_rdma_ib_safe_file_access(struct file *filp)
{
	return ib_safe_file_access(filp);
}
