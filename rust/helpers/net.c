// SPDX-License-Identifier: GPL-2.0

#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <net/ip.h>
#include <net/net_namespace.h>

#include "rust_rdma_cm.h"

struct net *rust_rdma_get_net(struct net *net)
{
	return get_net(net);
}

void rust_rdma_put_net(struct net *net)
{
	put_net(net);
}

struct net *rust_rdma_get_current_net(void)
{
	/* A task that exits has no namespaces any more. */
	return get_net(current->nsproxy ? current->nsproxy->net_ns : &init_net);
}

void rust_rdma_inet_get_local_port_range(struct net *net, int *low, int *high)
{
	inet_get_local_port_range(net, low, high);
}

bool rust_rdma_net_bindv6only(const struct net *net)
{
#if IS_ENABLED(CONFIG_IPV6)
	return READ_ONCE(net->ipv6.sysctl.bindv6only);
#else
	return false;
#endif
}
