// SPDX-License-Identifier: GPL-2.0

#include <linux/mutex.h>
#include <linux/spinlock.h>

#include "rust_rdma_cm.h"

void rust_rdma_mutex_lock_nested(struct mutex *lock, unsigned int subclass)
{
	mutex_lock_nested(lock, subclass);
}

unsigned long rust_rdma_spin_lock_irqsave(spinlock_t *lock)
{
	unsigned long flags;

	spin_lock_irqsave(lock, flags);
	return flags;
}

bool rust_rdma_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags)
{
	unsigned long f;

	if (!spin_trylock_irqsave(lock, f))
		return false;
	*flags = f;
	return true;
}

void rust_rdma_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags)
{
	spin_unlock_irqrestore(lock, flags);
}
