// SPDX-License-Identifier: GPL-2.0
/*
 * A consumer of <rdma/ib_cm.h>: calls every function, in every state, from callbacks and from
 * outside, over one device to itself. It works when it is loaded and says in the log what it
 * found; loading fails with EIO if something is wrong. It needs no queue pairs: it invents numbers.
 */
#include "ibcm.h"
#include "run.h"

const struct ib_gid_attr *gid;
u8 mac[ETH_ALEN];

static bool find_gid(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		const struct ib_gid_attr *attr = rdma_get_gid_attr(dev, 1, i);
		struct net_device *ndev;

		if (IS_ERR(attr))
			continue;
		rcu_read_lock();
		ndev = rcu_dereference(attr->ndev);
		if (ndev)
			ether_addr_copy(mac, ndev->dev_addr);
		rcu_read_unlock();
		if (ndev && attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    ipv6_addr_v4mapped((struct in6_addr *)&attr->gid)) {
			gid = attr;
			return true;
		}
		rdma_put_gid_attr(attr);
	}
	return false;
}

static int __init ibcm_init(void)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	if (!dev || !find_gid()) {
		ib_unregister_client(&client);
		return -ENODEV;
	}
	run("an unused identifier", unused);
	run("listeners", listeners);
	run("a connection from outside", connection);
	run("a connection in callbacks", in_callbacks);
	run("rejections", rejections);
	run("data before the RTU", notices);
	run("identifiers destroyed in each state", destruction);
	run("parameters", parameters);
	run("nobody answers", silence);
	run("questions", questions);
	run("texts", texts);
	run("destroyed in haste", haste);
	rdma_put_gid_attr(gid);
	ib_unregister_client(&client);
	return outcome();
}

static void __exit ibcm_exit(void)
{
}

module_init(ibcm_init);
module_exit(ibcm_exit);
MODULE_DESCRIPTION("Consumer of the InfiniBand CM, for tests");
MODULE_LICENSE("GPL");
