// SPDX-License-Identifier: GPL-2.0

#include <linux/memcontrol.h>
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

/* NULL: the root group, whose memory nobody limits, or no groups at all. */
struct mem_cgroup *rust_rdma_mem_cgroup_of_current(void)
{
	struct mem_cgroup *memcg = get_mem_cgroup_from_mm(NULL);

	return mem_cgroup_is_root(memcg) ? NULL : memcg;
}

void rust_rdma_mem_cgroup_get(struct mem_cgroup *memcg)
{
#ifdef CONFIG_MEMCG
	css_get(&memcg->css);
#endif
}

void rust_rdma_mem_cgroup_put(struct mem_cgroup *memcg)
{
	mem_cgroup_put(memcg);
}

struct mem_cgroup *rust_rdma_set_active_memcg(struct mem_cgroup *memcg)
{
	return set_active_memcg(memcg);
}
