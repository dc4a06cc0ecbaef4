// SPDX-License-Identifier: GPL-2.0

#include <linux/jiffies.h>
#include <linux/workqueue.h>

#include "rust_rdma_cm.h"

struct workqueue_struct *rust_rdma_alloc_workqueue(const char *name,
						   unsigned int flags,
						   int max_active)
{
	return alloc_workqueue("%s", flags, max_active, name);
}

void rust_rdma_init_delayed_work(struct delayed_work *dwork, work_func_t func,
				 const char *name, struct lock_class_key *key)
{
	INIT_DELAYED_WORK(dwork, func);
	lockdep_init_map(&dwork->work.lockdep_map, name, key, 0);
}

/* Rounds up, so that a timer does not expire early, and limits the time to a day. */
unsigned long rust_rdma_usecs_to_jiffies(u64 us)
{
	us = min_t(u64, us, 86400ULL * USEC_PER_SEC);
	return msecs_to_jiffies(DIV_ROUND_UP_ULL(us, USEC_PER_MSEC));
}
