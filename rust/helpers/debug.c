// SPDX-License-Identifier: GPL-2.0
/* Debug messages, which an administrator can enable with dyndbg module rust_rdma_cm +p */
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <rdma/rdma_cm.h>

#include "rust_rdma_cm_ib.h"

/* Each failure has its own call, so that each has its own dynamic debug switch and rate limit. */
void rust_rdma_cm_debug(struct rdma_cm_id *id, enum rust_rdma_cm_failure failure, int status)
{
	switch (failure) {
	case RUST_RDMA_CM_ADDR_UNRESOLVED:
		pr_debug_ratelimited("RDMA CM: ADDR_ERROR: the address was not resolved, status %d\n",
				     status);
		break;
	case RUST_RDMA_CM_ADDR_WITHOUT_DEVICE:
		pr_debug_ratelimited("RDMA CM: ADDR_ERROR: no device for the address, status %d\n",
				     status);
		break;
	case RUST_RDMA_CM_ADDR_QKEY:
		pr_debug_ratelimited("RDMA CM: ADDR_ERROR: the peer has another Q_Key, status %d\n",
				     status);
		break;
	case RUST_RDMA_CM_ROUTE_UNRESOLVED:
		pr_debug_ratelimited("RDMA CM: ROUTE_ERROR: no path was found, status %d\n",
				     status);
		break;
	case RUST_RDMA_CM_SERVICE_UNRESOLVED:
		pr_debug_ratelimited("RDMA CM: SERVICE_ERROR: no service was found, status %d\n",
				     status);
		break;
	case RUST_RDMA_CM_NOT_ESTABLISHED:
		pr_debug_ratelimited("RDMA CM: CONNECT_ERROR: the peer's answer is of no use, status %d\n",
				     status);
		break;
	case RUST_RDMA_CM_REJECTED:
		pr_debug_ratelimited("RDMA CM: REJECTED: %s\n", rdma_reject_msg(id, status));
		break;
	case RUST_RDMA_CM_SIDR_REFUSED:
		pr_debug_ratelimited("RDMA CM: UNREACHABLE: the peer has no such service, status %d\n",
				     status);
		break;
	case RUST_RDMA_CM_MULTICAST_FAILED:
		pr_debug_ratelimited("RDMA CM: MULTICAST_ERROR: the group was not joined, status %d\n",
				     status);
		break;
	}
}
