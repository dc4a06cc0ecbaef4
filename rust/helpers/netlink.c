// SPDX-License-Identifier: GPL-2.0

#include <linux/netlink.h>
#include <net/genetlink.h>
#include <net/netlink.h>
#include <net/sock.h>

#include "rust_rdma_cm.h"

struct net *rust_rdma_genl_info_net(const struct genl_info *info)
{
	return genl_info_net(info);
}

void rust_rdma_genlmsg_end(struct sk_buff *skb, void *hdr)
{
	genlmsg_end(skb, hdr);
}

void rust_rdma_genlmsg_cancel(struct sk_buff *skb, void *hdr)
{
	genlmsg_cancel(skb, hdr);
}

struct nlattr *rust_rdma_nla_nest_start(struct sk_buff *skb, int attrtype)
{
	return nla_nest_start(skb, attrtype);
}

int rust_rdma_nla_nest_end(struct sk_buff *skb, struct nlattr *start)
{
	return nla_nest_end(skb, start);
}

/* Returns whether anybody listens to the first group of a family, in any network namespace. */
bool rust_rdma_genl_has_listeners(const struct genl_family *family)
{
	return genl_has_listeners(family, &init_net, 0);
}

/* Returns the memory for a message of a group, without waiting for any, or NULL. */
struct sk_buff *rust_rdma_genlmsg_new(void)
{
	return genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_NOWAIT);
}

/* Sends a message to those who listen to the first group in a network namespace, and frees it. */
void rust_rdma_genlmsg_multicast(const struct genl_family *family, struct net *net,
				 struct sk_buff *skb)
{
	genlmsg_multicast_netns(family, net, skb, 0, 0, GFP_NOWAIT);
}

void rust_rdma_nlmsg_free(struct sk_buff *skb)
{
	nlmsg_free(skb);
}

/* Returns a user's number in the user namespace of a network namespace, or (u32)-1. */
u32 rust_rdma_net_user_seen(const struct net *net, u32 user)
{
	return from_kuid(net->user_ns, make_kuid(&init_user_ns, user));
}

/* Returns the user who has opened the socket that a request was sent from. */
u32 rust_rdma_netlink_user(struct sk_buff *skb)
{
	return from_kuid(&init_user_ns, sk_uid(NETLINK_CB(skb).sk));
}

/* Returns the user's number in the user namespace of that socket, or (u32)-1 if there is none. */
u32 rust_rdma_netlink_user_seen(struct sk_buff *skb, u32 user)
{
	return from_kuid(sk_user_ns(NETLINK_CB(skb).sk), make_kuid(&init_user_ns, user));
}
