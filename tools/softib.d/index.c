// SPDX-License-Identifier: GPL-2.0
/*
 * The numbers of objects of the copy of soft-RoCE. IPoIB makes and destroys address handles with a lock held that its
 * softirqs take, so the lock of the numbers must not be taken with softirqs enabled.
 */
#include "rxe.h"
#include "ib.h"

int softib_alloc_index(struct rxe_pool *pool, struct rxe_pool_elem *elem, gfp_t gfp)
{
	unsigned long flags;
	int err;

	if (gfpflags_allow_blocking(gfp))
		return xa_alloc_cyclic_irq(&pool->xa, &elem->index, NULL, pool->limit, &pool->next, gfp);
	xa_lock_irqsave(&pool->xa, flags);
	err = __xa_alloc_cyclic(&pool->xa, &elem->index, NULL, pool->limit, &pool->next, gfp);
	xa_unlock_irqrestore(&pool->xa, flags);
	return err;
}

void *softib_erase_index(struct xarray *xa, u32 index)
{
	unsigned long flags;
	void *old;

	xa_lock_irqsave(xa, flags);
	old = __xa_erase(xa, index);
	xa_unlock_irqrestore(xa, flags);
	return old;
}

/* The number is the object's already, so that nothing is allocated. */
void *softib_store_index(struct rxe_pool_elem *elem)
{
	struct xarray *xa = &elem->pool->xa;
	unsigned long flags;
	void *old;

	xa_lock_irqsave(xa, flags);
	old = __xa_store(xa, elem->index, elem, 0);
	xa_unlock_irqrestore(xa, flags);
	return old;
}
