// SPDX-License-Identifier: GPL-2.0

#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/ip_fib.h>
#include <net/route.h>

#include "rust_rdma_cm.h"

void rust_rdma_dev_hold(struct net_device *dev)
{
	dev_hold(dev);
}

void rust_rdma_dev_put(struct net_device *dev)
{
	dev_put(dev);
}

struct net_device *rust_rdma_dev_get_by_index(struct net *net, int ifindex)
{
	return dev_get_by_index(net, ifindex);
}

/* Returns a counted reference, as the device may move to another namespace at any time. */
struct net *rust_rdma_dev_net(const struct net_device *dev)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(dev_net_rcu(dev));
	rcu_read_unlock();
	return net;
}

int rust_rdma_netdev_ifindex(const struct net_device *dev)
{
	return READ_ONCE(dev->ifindex);
}

unsigned int rust_rdma_netdev_mtu(const struct net_device *dev)
{
	return READ_ONCE(dev->mtu);
}

unsigned int rust_rdma_netdev_flags(const struct net_device *dev)
{
	return READ_ONCE(dev->flags);
}

bool rust_rdma_netdev_has_carrier(const struct net_device *dev)
{
	return netif_carrier_ok(dev);
}

unsigned short rust_rdma_netdev_type(const struct net_device *dev)
{
	return dev->type;
}

u8 rust_rdma_netdev_hw_addr(const struct net_device *dev, u8 *buf, u8 len)
{
	u8 n = min(len, dev->addr_len);

	memcpy(buf, dev->dev_addr, n);
	return n;
}

bool rust_rdma_is_vlan_dev(const struct net_device *dev)
{
	return is_vlan_dev(dev);
}

/* Returns a counted reference. */
struct net_device *rust_rdma_vlan_dev_real_dev(const struct net_device *dev)
{
	struct net_device *real = vlan_dev_real_dev(dev);

	dev_hold(real);
	return real;
}

bool rust_rdma_netif_is_bond_master(const struct net_device *dev)
{
	return netif_is_bond_master(dev);
}

/*
 * Returns the traffic class for a priority on this device itself.
 *
 * Repeats: drivers/infiniband/core/cma.c get_vlan_ndev_tc 63eefe59110e
 */
static u8 priority_to_tc(struct net_device *dev, int prio)
{
	struct net_device *queues = is_vlan_dev(dev) ? vlan_dev_real_dev(dev) : dev;
	u16 mask;

	if (queues->num_tc)
		return netdev_get_prio_tc_map(queues, prio);
	if (!is_vlan_dev(dev))
		return 0;
	mask = vlan_dev_get_egress_qos_mask(dev, prio);
	return (mask & VLAN_PRIO_MASK) >> VLAN_PRIO_SHIFT;
}

struct lower_tc {
	int prio;
	bool found;
	u8 tc;
};

/* Repeats: drivers/infiniband/core/cma.c get_lower_vlan_dev_tc 57cea9c70648 */
static int first_lower_tc(struct net_device *lower, struct netdev_nested_priv *priv)
{
	struct lower_tc *want = priv->data;

	want->tc = priority_to_tc(lower, want->prio);
	want->found = true;
	return 1;
}

/*
 * Returns the service level for a type of service: the traffic class by the VLAN's egress map or by
 * mqprio, of the first lower device if this is no VLAN and has one, else of the device itself.
 *
 * Repeats: drivers/infiniband/core/cma.c iboe_tos_to_sl 3add14dfef0b
 */
u8 rust_rdma_tos_to_sl(struct net_device *dev, u8 tos)
{
	struct lower_tc want = { .prio = rt_tos2priority(tos) };
	struct netdev_nested_priv priv = { .data = &want };

	if (!is_vlan_dev(dev)) {
		rcu_read_lock();
		netdev_walk_all_lower_dev_rcu(dev, first_lower_tc, &priv);
		rcu_read_unlock();
	}
	return want.found ? want.tc : priority_to_tc(dev, want.prio);
}

/* Returns whether an address is unicast, and neither unspecified nor loopback. */
static bool is_host4(__be32 addr)
{
	return !ipv4_is_multicast(addr) && !ipv4_is_lbcast(addr) &&
	       !ipv4_is_zeronet(addr) && !ipv4_is_loopback(addr);
}

/*
 * Returns whether a packet from "local" to "peer" would leave by the device that a request came in
 * by. The addresses are in network byte order. Never sleeps.
 *
 * Repeats: drivers/infiniband/core/cma.c validate_ipv4_net_dev 034e6906b27e
 */
bool rust_rdma_reverse_path_ok4(struct net_device *dev, const u8 *local,
				const u8 *peer)
{
	struct fib_result res;
	struct flowi4 fl4 = {};
	bool ok;

	memcpy(&fl4.saddr, local, sizeof(fl4.saddr));
	memcpy(&fl4.daddr, peer, sizeof(fl4.daddr));
	fl4.flowi4_oif = dev->ifindex;
	if (!is_host4(fl4.saddr) || !is_host4(fl4.daddr))
		return false;

	rcu_read_lock();
	ok = !fib_lookup(dev_net_rcu(dev), &fl4, &res, 0) && FIB_RES_DEV(res) == dev;
	rcu_read_unlock();
	return ok;
}

/* Repeats: drivers/infiniband/core/cma.c validate_ipv6_net_dev 94d3c40e8d88 */
bool rust_rdma_reverse_path_ok6(struct net_device *dev, const u8 *local,
				const u8 *peer)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct in6_addr saddr, daddr;
	struct inet6_dev *idev;
	struct rt6_info *rt;
	bool ok = false;
	int strict;

	memcpy(&saddr, local, sizeof(saddr));
	memcpy(&daddr, peer, sizeof(daddr));
	strict = ipv6_addr_type(&daddr) & IPV6_ADDR_LINKLOCAL;

	/*
	 * When the route's device is unregistered, the route gets another "idev" and drops the old
	 * one, which RCU keeps alive here.
	 */
	rcu_read_lock();
	rt = rt6_lookup(dev_net_rcu(dev), &daddr, &saddr, dev->ifindex, NULL, strict);
	if (rt) {
		idev = READ_ONCE(rt->rt6i_idev);
		ok = idev && idev->dev == dev;
		ip6_rt_put(rt);
	}
	rcu_read_unlock();
	return ok;
#else
	return false;
#endif
}
