// SPDX-License-Identifier: GPL-2.0
/*
 * A consumer of <rdma/rdma_cm.h>: calls every function, in every state, from callbacks and from
 * outside, over one device. It works when it is loaded and says in the log what it found; loading
 * fails with EIO if something is wrong.
 */
#include <linux/inet.h>

#include "cmid.h"
#include "../consumer/run.h"

static char *ipv4 = "10.0.0.1";
module_param(ipv4, charp, 0);
MODULE_PARM_DESC(ipv4, "its address");

struct ib_pd *pd;
struct ib_cq *cq;
u32 address;

static int all(void)
{
	run("nobody is asked", silence_begins);
	run("an unused identifier", unused);
	run("texts", texts);
	run("addresses", addresses);
	run("options", options);
	run("resolution", resolution);
	run("listeners", listeners);
	run("a connection from outside", connection);
	run("a connection in callbacks", in_callbacks);
	run("parameters", parameters);
	run("rejections", rejections);
	run("extensions", extensions);
	run("data before the RTU", early_data);
	run("callbacks held back", handler_lock);
	run("queue pairs", queue_pairs);
	run("queue pairs in each state", queue_pair_states);
	run("callbacks that want no more", returns);
	run("identifiers destroyed in each state", destruction);
	run("datagrams", datagrams);
	run("groups", groups);
	run("destroyed in haste", haste);
	run("nobody answers", silence_ends);
	return outcome();
}

/* Where the device speaks iWARP. */
static int all_of_iwarp(void)
{
	run("a connection over iWARP", iwarp_connection);
	run("data at once over iWARP", iwarp_at_once);
	run("rejections over iWARP", iwarp_rejections);
	run("a wildcard listener over iWARP", iwarp_wildcard);
	run("identifiers destroyed over iWARP", iwarp_ends);
	run("destroyed in haste over iWARP", iwarp_haste);
	return outcome();
}

static int __init cmid_init(void)
{
	int ret = ib_register_client(&client);

	if (ret)
		return ret;
	ret = -ENODEV;
	if (!dev)
		goto no_device;
	address = ntohl(in_aton(ipv4));
	pd = ib_alloc_pd(dev, 0);
	ret = PTR_ERR_OR_ZERO(pd);
	if (ret)
		goto no_device;
	cq = ib_alloc_cq(dev, NULL, 256, 0, IB_POLL_DIRECT);
	ret = PTR_ERR_OR_ZERO(cq);
	if (ret)
		goto no_cq;
	ret = rdma_protocol_iwarp(dev, 1) ? all_of_iwarp() : all();
	ib_free_cq(cq);
no_cq:
	ib_dealloc_pd(pd);
no_device:
	ib_unregister_client(&client);
	return ret;
}

static void __exit cmid_exit(void)
{
}

module_init(cmid_init);
module_exit(cmid_exit);
MODULE_DESCRIPTION("Consumer of the RDMA CM, for tests");
MODULE_LICENSE("GPL");
