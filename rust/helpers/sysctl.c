// SPDX-License-Identifier: GPL-2.0

#include <linux/sysctl.h>
#include <net/net_namespace.h>

#include "rust_rdma_cm.h"

/* Repeats: drivers/infiniband/core/ucma.c max_backlog 9dc421d8a354 */
static int max_backlog = 1024;

/* The limits of each user, by the numbers of cmproto's Resource. */
int rust_rdma_ucm_max_user[RUST_RDMA_USER_RESOURCES] = { 262144, 16384, 16384, 4096, 16384, 8192 };

#define MAX_USER(name, resource)						\
	{									\
		.procname = "max_user_" name,					\
		.data = &rust_rdma_ucm_max_user[resource],			\
		.maxlen = sizeof(int),						\
		.mode = 0644,							\
		.proc_handler = proc_dointvec_minmax,				\
		.extra1 = SYSCTL_ZERO,						\
		.extra2 = SYSCTL_INT_MAX,					\
	}

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
	MAX_USER("ids", 0),
	MAX_USER("listeners", 1),
	MAX_USER("requests", 2),
	MAX_USER("memberships", 3),
	MAX_USER("written_events", 4),
	MAX_USER("address_handles", 5),
};

/* The sysctls exist in the initial namespace only; their values apply to all namespaces. */
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
