// SPDX-License-Identifier: GPL-2.0

#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "rust_rdma_cm.h"

/* Repeats: drivers/infiniband/core/ucma.c max_backlog 9dc421d8a354 */
static int max_backlog = 1024;

/* Repeats: drivers/infiniband/core/ucma.c ucma_ctl_table 4995cc035d4b */
static struct ctl_table ucm_table[] = {
	{
		.procname = "max_backlog",
		.data = &max_backlog,
		.maxlen = sizeof(max_backlog),
		.mode = 0644,
		.proc_handler = proc_dointvec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_INT_MAX,
	},
};

/* The sysctl exists in the initial namespace only; its value applies to all namespaces. */
struct ctl_table_header *rust_rdma_ucm_sysctl_register(void)
{
	return register_net_sysctl(&init_net, "net/rdma_ucm", ucm_table);
}

void rust_rdma_ucm_sysctl_unregister(struct ctl_table_header *header)
{
	unregister_net_sysctl_table(header);
}

int rust_rdma_ucm_max_backlog(void)
{
	return READ_ONCE(max_backlog);
}
