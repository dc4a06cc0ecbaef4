// SPDX-License-Identifier: GPL-2.0

#include <linux/wait.h>

#include "rust_rdma_cm.h"

void rust_rdma_init_wait_func_woken(struct wait_queue_entry *entry)
{
	init_wait_func(entry, woken_wake_function);
}

void rust_rdma_wake_up_interruptible_all(struct wait_queue_head *head)
{
	wake_up_interruptible_all(head);
}
