// SPDX-License-Identifier: GPL-2.0
/*
 * What tools that look into the kernel attach to (bcc's rdmaucma), under the name and with the
 * arguments that it has in rdma_ucm.
 */
#include <rdma/rdma_cm.h>

#include "rust_rdma_cm_ib.h"

/*
 * Called once for each event of an identifier that a program has, before the program can read it. All
 * else is done by whoever calls it.
 */
noinline int ucma_event_handler(struct rdma_cm_id *cm_id, struct rdma_cm_event *event)
{
	return 0;
}
