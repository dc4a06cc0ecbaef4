// SPDX-License-Identifier: GPL-2.0
/*
 * The function that tracing tools such as bcc's rdmaucma attach to, with the name and the arguments
 * that it has in rdma_ucm.
 */
#include <rdma/rdma_cm.h>

#include "rust_rdma_cm_ib.h"

/*
 * Called once for each event of a program's identifier, before the program can read the event. The
 * caller does all the work.
 */
noinline int ucma_event_handler(struct rdma_cm_id *cm_id, struct rdma_cm_event *event)
{
	return 0;
}
