// SPDX-License-Identifier: GPL-2.0
/*
 * The floor under every connection manager: how fast three MADs per connection, as a
 * REQ, a REP and an RTU, go from one device to the other and back through ib_core, when
 * nobody does anything with them. Loading the module measures; "ns" has the time.
 *
 * It takes the place of a connection manager at both devices: none may be loaded.
 */
#include <linux/completion.h>
#include <linux/hex.h>
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

enum { REQ = 0x10, REP = 0x13, RTU = 0x14 };

static unsigned int count = 1000, flight = 1;
static ulong ns;
/* One of each end: its device, its GID, and where it is on the link. */
static char *device[2] = { "rxe0", "rxe1" };
static char *gid[2] = { "::ffff:10.0.0.1", "::ffff:10.0.0.2" };
static char *mac[2];

module_param(count, uint, 0444);
module_param(flight, uint, 0444);
module_param(ns, ulong, 0444);
module_param_array(device, charp, NULL, 0444);
module_param_array(gid, charp, NULL, 0444);
module_param_array(mac, charp, NULL, 0444);

struct end {
	struct ib_device *device;
	struct ib_mad_agent *agent;
	struct ib_ah *ah;
};

static struct end ends[2];
static atomic_t started, finished;
static DECLARE_COMPLETION(done);

static int send(struct end *end, u16 attribute)
{
	struct ib_mad_send_buf *buf = ib_create_send_mad(end->agent, 1, 0, 0, IB_MGMT_MAD_HDR,
							 IB_MGMT_MAD_DATA, GFP_KERNEL,
							 IB_MGMT_BASE_VERSION);
	struct ib_mad_hdr *header;
	int ret;

	if (IS_ERR(buf))
		return PTR_ERR(buf);
	header = buf->mad;
	header->base_version = IB_MGMT_BASE_VERSION;
	header->mgmt_class = IB_MGMT_CLASS_CM;
	header->class_version = 2;
	header->method = IB_MGMT_METHOD_SEND;
	header->attr_id = cpu_to_be16(attribute);
	buf->ah = end->ah;
	ret = ib_post_send_mad(buf, NULL);
	if (ret)
		ib_free_send_mad(buf);
	return ret;
}

static void begin_one(void)
{
	if (atomic_inc_return(&started) <= count)
		send(&ends[0], REQ);
}

static void sent(struct ib_mad_agent *agent, struct ib_mad_send_wc *wc)
{
	ib_free_send_mad(wc->send_buf);
}

static void received(struct ib_mad_agent *agent, struct ib_mad_send_buf *request,
		     struct ib_mad_recv_wc *wc)
{
	u16 attribute = be16_to_cpu(wc->recv_buf.mad->mad_hdr.attr_id);

	ib_free_recv_mad(wc);
	switch (attribute) {
	case REQ:
		send(&ends[1], REP);
		break;
	case REP:
		send(&ends[0], RTU);
		begin_one();
		break;
	case RTU:
		if (atomic_inc_return(&finished) == count)
			complete(&done);
		break;
	}
}

static int open_end(int i)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE, .port_num = 1 };
	struct ib_mad_reg_req request = {
		.mgmt_class = IB_MGMT_CLASS_CM,
		.mgmt_class_version = 2,
	};
	const struct ib_gid_attr *own;
	union ib_gid from, to;
	struct end *end = ends + i;
	u8 dmac[ETH_ALEN];

	if (!mac[!i] || !mac_pton(mac[!i], dmac) || !in6_pton(gid[i], -1, from.raw, -1, NULL) ||
	    !in6_pton(gid[!i], -1, to.raw, -1, NULL))
		return -EINVAL;
	if (!end->device)
		return -ENODEV;
	set_bit(IB_MGMT_METHOD_SEND, request.method_mask);
	end->agent = ib_register_mad_agent(end->device, 1, IB_QPT_GSI, &request, 0, sent, received,
					   NULL, 0);
	if (IS_ERR(end->agent))
		return PTR_ERR(end->agent);
	own = rdma_find_gid_by_port(end->device, &from, IB_GID_TYPE_ROCE_UDP_ENCAP, 1, NULL);
	if (IS_ERR(own))
		return PTR_ERR(own);
	rdma_ah_set_grh(&attr, &to, 0, own->index, 64, 0);
	attr.grh.sgid_attr = own;
	memcpy(attr.roce.dmac, dmac, ETH_ALEN);
	end->ah = rdma_create_ah(end->agent->qp->pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	rdma_put_gid_attr(own);
	return PTR_ERR_OR_ZERO(end->ah);
}

static void close_end(struct end *end)
{
	/* First, as it waits for the messages that use the address handle. */
	if (!IS_ERR_OR_NULL(end->agent)) {
		struct ib_ah *ah = end->ah;

		ib_unregister_mad_agent(end->agent);
		if (!IS_ERR_OR_NULL(ah))
			rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	}
}

static int add(struct ib_device *ib_device)
{
	for (int i = 0; i < 2; i++)
		if (!strcmp(dev_name(&ib_device->dev), device[i]))
			ends[i].device = ib_device;
	return 0;
}

static struct ib_client client = {
	.name = "floor",
	.add = add,
};

static int __init floor_init(void)
{
	ktime_t began;
	int ret;

	ret = ib_register_client(&client);
	if (ret)
		return ret;
	ret = open_end(0) ?: open_end(1);
	began = ktime_get();
	if (!ret) {
		for (unsigned int i = 0; i < flight; i++)
			begin_one();
		if (!wait_for_completion_timeout(&done, 60 * HZ))
			ret = -ETIMEDOUT;
		ns = ktime_to_ns(ktime_sub(ktime_get(), began));
	}
	close_end(&ends[0]);
	close_end(&ends[1]);
	ib_unregister_client(&client);
	return ret;
}

static void __exit floor_exit(void)
{
}

module_init(floor_init);
module_exit(floor_exit);
MODULE_DESCRIPTION("Three bare MADs per connection");
MODULE_LICENSE("GPL");
