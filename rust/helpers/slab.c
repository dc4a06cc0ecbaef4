// SPDX-License-Identifier: GPL-2.0

#include <linux/slab.h>

#include "rust_rdma_cm.h"

void *rust_rdma_kmem_cache_alloc(struct kmem_cache *cache, gfp_t flags)
{
	return kmem_cache_alloc(cache, flags);
}
