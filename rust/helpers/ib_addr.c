// SPDX-License-Identifier: GPL-2.0

#include <net/ip6_route.h>
#include <net/neighbour.h>
#include <net/route.h>
#include <rdma/ib_addr.h>

#include "rust_rdma_cm_ib.h"

u32 rust_rdma_iboe_get_mtu(int mtu)
{
	return iboe_get_mtu(mtu);
}

/* Takes over the reference to the route. */
static bool known_neigh(struct dst_entry *dst, const void *daddr, bool gateway,
			enum rdma_network_type routed, struct rdma_dev_addr *addr)
{
	struct neighbour *neigh;
	bool known = false;

	if (gateway && dst->dev->type == ARPHRD_INFINIBAND)
		goto out;
	neigh = dst_neigh_lookup(dst, daddr);
	if (IS_ERR_OR_NULL(neigh))
		goto out;
	if (READ_ONCE(neigh->nud_state) & NUD_VALID) {
		addr->dev_type = dst->dev->type;
		addr->bound_dev_if = dst->dev->ifindex;
		memcpy(addr->src_dev_addr, dst->dev->dev_addr, MAX_ADDR_LEN);
		memcpy(addr->broadcast, dst->dev->broadcast, MAX_ADDR_LEN);
		addr->network = gateway ? routed : RDMA_NETWORK_IB;
		neigh_ha_snapshot(addr->dst_dev_addr, neigh, dst->dev);
		known = true;
	}
	neigh_release(neigh);
out:
	dst_release(dst);
	return known;
}

static bool known4(struct sockaddr_in *src, const struct sockaddr_in *dst,
		   struct rdma_dev_addr *addr)
{
	struct flowi4 flow = {
		.daddr = dst->sin_addr.s_addr,
		.saddr = src->sin_addr.s_addr,
		.flowi4_oif = addr->bound_dev_if,
	};
	struct rtable *rt = ip_route_output_key(addr->net, &flow);

	if (IS_ERR(rt))
		return false;
	if (rt->rt_type == RTN_LOCAL) {
		ip_rt_put(rt);
		return false;
	}
	src->sin_addr.s_addr = flow.saddr;
	addr->hoplimit = ip4_dst_hoplimit(&rt->dst);
	return known_neigh(&rt->dst, &dst->sin_addr.s_addr, rt->rt_uses_gateway,
			   RDMA_NETWORK_IPV4, addr);
}

static bool known6(struct sockaddr_in6 *src, const struct sockaddr_in6 *dst,
		   struct rdma_dev_addr *addr)
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
	if (flags & RTF_LOCAL) {
		dst_release(route);
		return false;
	}
	if (ipv6_addr_any(&src->sin6_addr))
		src->sin6_addr = flow.saddr;
	addr->hoplimit = ip6_dst_hoplimit(route);
	return known_neigh(route, &dst->sin6_addr, flags & RTF_GATEWAY, RDMA_NETWORK_IPV6, addr);
#else
	return false;
#endif
}

/*
 * The result of rdma_resolve_ip() where the routes and the neighbours have it already;
 * false if not, or if only that function can tell what is wrong. "src" may be all zeros
 * but for its family, and is then chosen. May sleep.
 */
bool rust_rdma_known_neigh(struct sockaddr *src, const struct sockaddr *dst,
			   struct rdma_dev_addr *addr)
{
	if (dst->sa_family == AF_INET)
		return known4((struct sockaddr_in *)src, (const struct sockaddr_in *)dst, addr);
	return dst->sa_family == AF_INET6 &&
	       known6((struct sockaddr_in6 *)src, (const struct sockaddr_in6 *)dst, addr);
}
