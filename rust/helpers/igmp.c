// SPDX-License-Identifier: GPL-2.0

#include <linux/err.h>
#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "rust_rdma_cm.h"

/* Repeats: net/ipv4/igmp.c ____ip_mc_inc_group 215e16564256 */
static bool is_member(const struct in_device *in_dev, __be32 group)
{
	const struct ip_mc_list *im;

	for (im = rtnl_dereference(in_dev->mc_list); im; im = rtnl_dereference(im->next_rcu))
		if (im->multiaddr == group)
			return true;
	return false;
}

/*
 * Makes a device a member of an IPv4 group, in network byte order. Returns what
 * is to be shown to leave it, or an error. Sleeps.
 *
 * Repeats: drivers/infiniband/core/cma.c cma_igmp_send fe28d3f17338
 */
const void *rust_rdma_igmp_join(struct net_device *dev, const u8 *addr)
{
	struct in_device *in_dev;
	const void *ret;
	int before;
	__be32 group;

	memcpy(&group, addr, sizeof(group));
	rtnl_lock();
	in_dev = __in_dev_get_rtnl(dev);
	if (in_dev) {
		before = in_dev->mc_count;
		ip_mc_inc_group(in_dev, group);
		/* It does not tell whether there was memory. */
		if (in_dev->mc_count != before || is_member(in_dev, group))
			ret = in_dev;
		else
			ret = ERR_PTR(-ENOMEM);
	} else {
		ret = ERR_PTR(-ENODEV);
	}
	rtnl_unlock();
	return ret;
}

/*
 * Takes a membership back. If the device has gone meanwhile, or has another IPv4
 * part by now, the membership went with the one that it had. Sleeps.
 */
void rust_rdma_igmp_leave(struct net *net, int ifindex, const void *joined, const u8 *addr)
{
	struct in_device *in_dev = NULL;
	struct net_device *dev;
	__be32 group;

	memcpy(&group, addr, sizeof(group));
	rtnl_lock();
	dev = __dev_get_by_index(net, ifindex);
	if (dev)
		in_dev = __in_dev_get_rtnl(dev);
	if (in_dev && in_dev == joined)
		ip_mc_dec_group(in_dev, group);
	rtnl_unlock();
}
