// SPDX-License-Identifier: GPL-2.0

#include <linux/igmp.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>

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

static struct net_device *interface(const struct rust_rdma_ip_membership *membership)
{
	const struct in_device *in_dev = membership->in_dev;
	const struct inet6_dev *in6_dev = membership->in6_dev;

	return in_dev ? in_dev->dev : in6_dev->dev;
}

/* A dead in_device or inet6_dev has freed its memberships. */
static void leave(struct rust_rdma_ip_membership *membership)
{
	struct in_device *in_dev = membership->in_dev;
	struct inet6_dev *in6_dev = membership->in6_dev;

	if (!in_dev && !in6_dev)
		return;
	list_del(&membership->all);
	membership->in_dev = NULL;
	membership->in6_dev = NULL;
	if (in_dev) {
		if (!in_dev->dead)
			ip_mc_dec_group(in_dev, membership->group);
		in_dev_put(in_dev);
	}
#if IS_ENABLED(CONFIG_IPV6)
	if (in6_dev) {
		if (!in6_dev->dead)
			ipv6_dev_mc_dec(in6_dev->dev, &membership->group6);
		in6_dev_put(in6_dev);
	}
#endif
}

/*
 * Joins a device to an IPv4 group, given in network byte order. Returns 0 or a negative error
 * number. Sleeps.
 *
 * Repeats: drivers/infiniband/core/cma.c cma_igmp_send fe28d3f17338
 */
int rust_rdma_ip_multicast_join(struct rust_rdma_ip_membership *membership,
				struct net_device *dev, const u8 *addr)
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

/* Joins a device to an IPv6 group. Returns 0 or a negative error number. Sleeps. */
int rust_rdma_ipv6_multicast_join(struct rust_rdma_ip_membership *membership,
				  struct net_device *dev, const u8 *addr)
{
	int ret = -ENODEV;
#if IS_ENABLED(CONFIG_IPV6)
	struct inet6_dev *in6_dev;

	memcpy(&membership->group6, addr, sizeof(membership->group6));
	rtnl_lock();
	in6_dev = __in6_dev_get(dev);
	if (in6_dev)
		ret = ipv6_dev_mc_inc(dev, &membership->group6);
	if (!ret) {
		in6_dev_hold(in6_dev);
		membership->in6_dev = in6_dev;
		list_add(&membership->all, &memberships);
	}
	rtnl_unlock();
#endif
	return ret;
}

/* Leaves a group, unless the device was unregistered meanwhile. Sleeps. */
void rust_rdma_ip_multicast_leave(struct rust_rdma_ip_membership *membership)
{
	rtnl_lock();
	leave(membership);
	rtnl_unlock();
}

/*
 * Leaves all groups on a device that is being unregistered, which waits for that. Must be called
 * with rtnl_lock() held.
 */
void rust_rdma_ip_multicast_leave_all(const struct net_device *dev)
{
	struct rust_rdma_ip_membership *membership, *next;

	ASSERT_RTNL();
	list_for_each_entry_safe(membership, next, &memberships, all)
		if (interface(membership) == dev)
			leave(membership);
}
