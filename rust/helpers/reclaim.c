// SPDX-License-Identifier: GPL-2.0

#include <linux/sched/mm.h>

#include "rust_rdma_cm.h"

unsigned int rust_rdma_memalloc_noio_save(void)
{
	return memalloc_noio_save();
}

void rust_rdma_memalloc_noio_restore(unsigned int flags)
{
	memalloc_noio_restore(flags);
}
