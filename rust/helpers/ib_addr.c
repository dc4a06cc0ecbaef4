// SPDX-License-Identifier: GPL-2.0

#include <net/addrconf.h>
#include <net/arp.h>
#include <net/ip6_route.h>
#include <net/ndisc.h>
#include <net/route.h>
#include <rdma/ib_addr.h>

#include "core_private.h"
#include "rust_rdma_cm_ib.h"

u32 rust_rdma_iboe_get_mtu(int mtu)
{
	return iboe_get_mtu(mtu);
}

/* The entry of the next hop of a route, if there is one. Called under RCU. */
static struct neighbour *next_hop(const struct dst_entry *dst, const void *daddr)
{
	struct net_device *dev = dst_dev_rcu(dst);
	const struct rtable *rt = dst_rtable(dst);

#if IS_ENABLED(CONFIG_IPV6)
	if (dst->ops->family == AF_INET6)
		return __ipv6_neigh_lookup_noref(dev, rt6_nexthop(dst_rt6_info(dst), daddr));
	if (rt->rt_gw_family == AF_INET6)
		return __ipv6_neigh_lookup_noref(dev, &rt->rt_gw6);
#endif
	if (rt->rt_gw_family == AF_INET)
		daddr = &rt->rt_gw4;
	return __ipv4_neigh_lookup_noref(dev, *(const u32 *)daddr);
}

/*
 * Reads the link-layer address of the neighbour that a route leads to, and that of the device that
 * leads there. Returns false if the neighbour's address is not known. Then "asked" is the entry of
 * the neighbour, if it has one and the caller wants a reference to it. The kernel changes a
 * neighbour's state before its address, both under its lock. Drops the caller's reference to the
 * route.
 *
 * Repeats: drivers/infiniband/core/addr.c dst_fetch_ha 8dccb622947d
 * Repeats: drivers/infiniband/core/addr.c fetch_ha cf8df1c40f17
 * Repeats: drivers/infiniband/core/addr.c has_gateway 7f4005e7403c
 * Repeats: drivers/infiniband/core/addr.c rdma_set_src_addr_rcu 0e3aea233fed
 * Repeats: drivers/infiniband/core/addr.c addr_resolve_neigh 4a3200488127
 */
static bool known_neigh(struct dst_entry *dst, const void *daddr, bool gateway,
			enum rdma_network_type routed, struct rdma_dev_addr *addr,
			struct neighbour **asked)
{
	struct neighbour *neigh;
	bool known = false;

	/* The route may lose its device, but the neighbour keeps its own. */
	rcu_read_lock();
	if (gateway && dst_dev_rcu(dst)->type == ARPHRD_INFINIBAND)
		goto out;
	/* Not dst_neigh_lookup(), which makes an entry for any sender. */
	neigh = next_hop(dst, daddr);
	if (!neigh)
		goto out;
	read_lock_bh(&neigh->lock);
	/* A route whose device was unregistered gets blackhole_netdev as its device. */
	if ((neigh->nud_state & NUD_VALID) && neigh->dev != blackhole_netdev) {
		neigh_ha_snapshot(addr->dst_dev_addr, neigh, neigh->dev);
		known = true;
	}
	read_unlock_bh(&neigh->lock);
	if (known) {
		rdma_copy_src_l2_addr(addr, neigh->dev);
		addr->network = gateway ? routed : RDMA_NETWORK_IB;
	} else if (asked && refcount_inc_not_zero(&neigh->refcnt)) {
		*asked = neigh;
	}
out:
	rcu_read_unlock();
	dst_release(dst);
	return known;
}

/*
 * Removes an entry, unless it is in one of the states "kept" or somebody else has a use for it, and
 * drops the caller's reference. The kernel removes such entries only when there are many. Nobody
 * has been told of the entry, so that nobody is told of its end.
 *
 * Repeats: net/core/neighbour.c neigh_remove_one 284aab3f1983
 * Repeats: net/core/neighbour.c neigh_mark_dead b5fc6395fa16
 * Repeats: net/core/neighbour.c neigh_del_timer d16ba106b40e
 */
static void remove_unused(struct neighbour *neigh, u8 kept)
{
	struct neigh_table *table = neigh->tbl;
	bool unused;

	spin_lock_bh(&table->lock);
	write_lock(&neigh->lock);
	/* The references of the table, of the caller and of the timer. */
	unused = refcount_read(&neigh->refcnt) == 2 + timer_pending(&neigh->timer);
	unused = unused && !neigh->dead && !neigh->flags && !(neigh->nud_state & kept) &&
		 skb_queue_empty(&neigh->arp_queue);
	if (unused) {
		hlist_del_rcu(&neigh->hash);
		hlist_del_rcu(&neigh->dev_list);
		if (timer_delete(&neigh->timer))
			neigh_release(neigh);
		WRITE_ONCE(neigh->nud_state, NUD_NONE);
		neigh->dead = 1;
		if (!list_empty(&neigh->gc_list)) {
			list_del_init(&neigh->gc_list);
			atomic_dec(&table->gc_entries);
		}
	}
	write_unlock(&neigh->lock);
	spin_unlock_bh(&table->lock);
	if (unused)
		neigh_release(neigh);
	neigh_release(neigh);
}

/*
 * Removes the entry of a neighbour that was asked and has not answered, and that of the multicast
 * group which the question of IPv6 has gone to. Drops the caller's reference.
 */
void rust_rdma_forget_neigh(struct neighbour *neigh)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (neigh->tbl == &nd_tbl) {
		struct neighbour *group;
		struct in6_addr address;

		addrconf_addr_solict_mult((const struct in6_addr *)neigh->primary_key, &address);
		group = __ipv6_neigh_lookup(neigh->dev, &address);
		if (group)
			remove_unused(group, NUD_VALID & ~NUD_NOARP);
	}
#endif
	remove_unused(neigh, NUD_VALID);
}

/*
 * Sets both link-layer addresses for a destination that is an address of this host: those of the
 * interface that has it, or of the one that was asked for. Returns false if no interface has it.
 *
 * Repeats: drivers/infiniband/core/addr.c rdma_set_src_addr_rcu 0e3aea233fed
 * Repeats: drivers/infiniband/core/addr.c addr_resolve_neigh 4a3200488127
 */
static bool known_local(const struct sockaddr *dst, struct rdma_dev_addr *addr)
{
	struct rdma_dev_addr any = { .net = addr->net };

	if (addr->bound_dev_if && rdma_translate_ip(dst, &any))
		return false;
	if (rdma_translate_ip(dst, addr))
		return false;
	memcpy(addr->dst_dev_addr, addr->src_dev_addr, MAX_ADDR_LEN);
	addr->network = RDMA_NETWORK_IB;
	return true;
}

/*
 * Repeats: drivers/infiniband/core/addr.c addr4_resolve a09c58db40da
 * Repeats: drivers/infiniband/core/addr.c is_dst_local 9bcf5fc2bbd5
 */
static bool known4(struct sockaddr_in *src, const struct sockaddr_in *dst,
		   struct rdma_dev_addr *addr, struct neighbour **asked)
{
	struct flowi4 flow = {
		.daddr = dst->sin_addr.s_addr,
		.saddr = src->sin_addr.s_addr,
		.flowi4_oif = addr->bound_dev_if,
	};
	struct rtable *rt = ip_route_output_key(addr->net, &flow);

	if (IS_ERR(rt))
		return false;
	src->sin_addr.s_addr = flow.saddr;
	addr->hoplimit = ip4_dst_hoplimit(&rt->dst);
	if (rt->rt_type == RTN_LOCAL) {
		ip_rt_put(rt);
		return known_local((const struct sockaddr *)dst, addr);
	}
	return known_neigh(&rt->dst, &dst->sin_addr.s_addr, rt->rt_uses_gateway,
			   RDMA_NETWORK_IPV4, addr, asked);
}

/*
 * Repeats: drivers/infiniband/core/addr.c addr6_resolve 75b04f89c08f
 * Repeats: drivers/infiniband/core/addr.c is_dst_local 9bcf5fc2bbd5
 */
static bool known6(struct sockaddr_in6 *src, const struct sockaddr_in6 *dst,
		   struct rdma_dev_addr *addr, struct neighbour **asked)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct flowi6 flow = {
		.daddr = dst->sin6_addr,
		.saddr = src->sin6_addr,
		.flowi6_oif = addr->bound_dev_if,
	};
	struct dst_entry *route = ip6_dst_lookup_flow(addr->net, NULL, &flow, NULL);
	u32 flags;

	if (IS_ERR(route))
		return false;
	flags = dst_rt6_info(route)->rt6i_flags;
	if (ipv6_addr_any(&src->sin6_addr))
		src->sin6_addr = flow.saddr;
	addr->hoplimit = ip6_dst_hoplimit(route);
	if (flags & RTF_LOCAL) {
		dst_release(route);
		return known_local((const struct sockaddr *)dst, addr);
	}
	return known_neigh(route, &dst->sin6_addr, flags & RTF_GATEWAY, RDMA_NETWORK_IPV6, addr,
			   asked);
#else
	return false;
#endif
}

/*
 * Sets the result of rdma_resolve_ip(), if the routing and neighbour tables have it. Returns false
 * if they do not, or on an error, which rdma_resolve_ip() then reports. "src" may be all zeros
 * except for its family, and is then set to the chosen address. "asked" may be null, and is
 * otherwise set to a reference to the entry of a neighbour that has not answered yet, if there is
 * one. Makes no entry. May sleep.
 *
 * Repeats: drivers/infiniband/core/addr.c addr_resolve 659ef58c5c05
 */
bool rust_rdma_known_neigh(struct sockaddr *src, const struct sockaddr *dst,
			   struct rdma_dev_addr *addr, struct neighbour **asked)
{
	if (dst->sa_family == AF_INET)
		return known4((struct sockaddr_in *)src, (const struct sockaddr_in *)dst, addr,
			      asked);
	return dst->sa_family == AF_INET6 &&
	       known6((struct sockaddr_in6 *)src, (const struct sockaddr_in6 *)dst, addr,
		      asked);
}
