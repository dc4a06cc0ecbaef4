// SPDX-License-Identifier: GPL-2.0

#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "rust_rdma_cm.h"

/* All memberships, protected by rtnl_lock(). */
static LIST_HEAD(memberships);

/* Repeats: net/ipv4/igmp.c ____ip_mc_inc_group 215e16564256 */
static bool is_member(const struct in_device *in_dev, __be32 group)
{
	const struct ip_mc_list *im;

	for (im = rtnl_dereference(in_dev->mc_list); im; im = rtnl_dereference(im->next_rcu))
		if (im->multiaddr == group)
			return true;
	return false;
}

static void leave(struct rust_rdma_igmp *membership)
{
	struct in_device *in_dev = membership->in_dev;

	if (!in_dev)
		return;
	/* The memberships of a dead in_device were freed with it. */
	if (!in_dev->dead)
		ip_mc_dec_group(in_dev, membership->group);
	membership->in_dev = NULL;
	list_del(&membership->all);
	in_dev_put(in_dev);
}

/*
 * Joins a device to an IPv4 group, given in network byte order. Returns 0 or a negative error
 * number. Sleeps.
 *
 * Repeats: drivers/infiniband/core/cma.c cma_igmp_send fe28d3f17338
 */
int rust_rdma_igmp_join(struct rust_rdma_igmp *membership, struct net_device *dev,
			const u8 *addr)
{
	struct in_device *in_dev;
	int ret = -ENODEV;
	int before;

	memcpy(&membership->group, addr, sizeof(membership->group));
	rtnl_lock();
	in_dev = __in_dev_get_rtnl(dev);
	if (in_dev) {
		before = in_dev->mc_count;
		ip_mc_inc_group(in_dev, membership->group);
		/* ip_mc_inc_group() does not report whether there was memory. */
		ret = -ENOMEM;
		if (in_dev->mc_count != before || is_member(in_dev, membership->group)) {
			in_dev_hold(in_dev);
			membership->in_dev = in_dev;
			list_add(&membership->all, &memberships);
			ret = 0;
		}
	}
	rtnl_unlock();
	return ret;
}

/* Leaves a group, unless the device was unregistered meanwhile. Sleeps. */
void rust_rdma_igmp_leave(struct rust_rdma_igmp *membership)
{
	rtnl_lock();
	leave(membership);
	rtnl_unlock();
}

/*
 * Leaves all groups on a device that is being unregistered, which waits for that. Must be called
 * with rtnl_lock() held.
 */
void rust_rdma_igmp_leave_all(const struct net_device *dev)
{
	struct rust_rdma_igmp *membership, *next;
	struct in_device *in_dev;

	ASSERT_RTNL();
	list_for_each_entry_safe(membership, next, &memberships, all) {
		in_dev = membership->in_dev;
		if (in_dev->dev == dev)
			leave(membership);
	}
}
