// SPDX-License-Identifier: GPL-2.0
/*
 * Another alternate path for a connection over InfiniBand. A program asks for it by a record for
 * RDMA_OPTION_IB_PATH that is alternate and bidirectional. The other path is that between other LIDs of the ports,
 * or, where each has one LID, one with a global header.
 */
#include <infiniband/verbs.h>

#include "ib.h"

#define ALTERNATE 0x2c	/* IB_PATH_ALTERNATE | IB_PATH_BIDIRECTIONAL */
#define LOAD_MASK (1 << 14 | 1 << 18)	/* the alternate path, and the state of migration */
#define REARM 1
#define DLID 40	/* in a record */
#define SLID 42
#define OTHER_LID 1	/* which of a port's */
#define NO_LID 0x77
#define HOPS 1
#define CLASS 16
#define LIFE_TIME 17

#define EVENTUALLY(condition)						\
	do {								\
		int left = 3000;					\
									\
		while (!(condition) && --left > 0)			\
			usleep(10000);					\
		REQUIRE(left > 0);					\
	} while (0)

/* An end with a queue pair. */
struct verbs {
	struct ibv_context *device;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct verbs open_qp(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct verbs v = { 0 };

	for (int i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), name) == 0)
			v.device = ibv_open_device(list[i]);
	REQUIRE(v.device);
	ibv_free_device_list(list);
	v.pd = ibv_alloc_pd(v.device);
	v.cq = ibv_create_cq(v.device, 4, NULL, NULL, 0);
	REQUIRE(v.pd && v.cq);
	init.send_cq = init.recv_cq = v.cq;
	v.qp = ibv_create_qp(v.pd, &init);
	REQUIRE(v.qp);
	return v;
}

static void close_qp(struct verbs *v)
{
	CHECK_EQ(0, ibv_destroy_qp(v->qp));
	CHECK_EQ(0, ibv_destroy_cq(v->cq));
	CHECK_EQ(0, ibv_dealloc_pd(v->pd));
	CHECK_EQ(0, ibv_close_device(v->device));
}

static struct ibv_ah_attr address(const struct ib_uverbs_ah_attr *from)
{
	struct ibv_ah_attr to = {
		.dlid = from->dlid, .sl = from->sl, .src_path_bits = from->src_path_bits,
		.static_rate = from->static_rate, .is_global = from->is_global, .port_num = from->port_num,
	};

	memcpy(&to.grh.dgid, from->grh.dgid, 16);
	to.grh.flow_label = from->grh.flow_label;
	to.grh.sgid_index = from->grh.sgid_index;
	to.grh.hop_limit = from->grh.hop_limit;
	to.grh.traffic_class = from->grh.traffic_class;
	return to;
}

/* Gives the queue pair the attributes for a state, as a program would. */
static void change(struct verbs *v, int f, uint32_t id, uint32_t state)
{
	struct ib_uverbs_qp_attr from = qp_attr(f, id, state);
	struct ibv_qp_attr to = {
		.qp_state = from.qp_state, .path_mtu = from.path_mtu, .path_mig_state = from.path_mig_state,
		.rq_psn = from.rq_psn, .sq_psn = from.sq_psn, .dest_qp_num = from.dest_qp_num,
		.qp_access_flags = from.qp_access_flags & 0xf, .pkey_index = from.pkey_index,
		.alt_pkey_index = from.alt_pkey_index, .max_rd_atomic = from.max_rd_atomic,
		.max_dest_rd_atomic = from.max_dest_rd_atomic, .min_rnr_timer = from.min_rnr_timer,
		.port_num = from.port_num, .timeout = from.timeout, .retry_cnt = from.retry_cnt,
		.rnr_retry = from.rnr_retry, .alt_port_num = from.alt_port_num,
		.alt_timeout = from.alt_timeout, .ah_attr = address(&from.ah_attr),
		.alt_ah_attr = address(&from.alt_ah_attr),
	};

	CHECK_EQ(0, ibv_modify_qp(v->qp, &to, from.qp_attr_mask));
}

/* The path from one device to the other. */
static struct record other_way(const char *from, const char *to)
{
	struct record r = record_of(from, to, 0, PKEY);

	r.r[56] = 0x80 | LIFE_TIME;
	if (port_of(from).path_bits) {
		r.r[DLID + 1] |= OTHER_LID;
		r.r[SLID + 1] |= OTHER_LID;
	} else {
		r.r[47] = HOPS;
		r.r[48] = CLASS;
	}
	return r;
}

static long load(int f, uint32_t id, const struct record *r)
{
	struct ib_path_rec_data d = { .flags = ALTERNATE };

	memcpy(d.path_rec, r->r, 64);
	return set_option(f, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, edge_copy(&d, sizeof(d)), sizeof(d));
}

static bool is_loaded(int f, uint32_t id, int timeout)
{
	struct ib_uverbs_qp_attr attr;

	REQUIRE_OK(init_qp_attr(f, id, RTS, &attr));
	return attr.qp_attr_mask == LOAD_MASK && (!timeout || attr.alt_timeout == timeout);
}

/* The queue pair has the path to the device as its alternate one. */
static void check_loaded(struct verbs *v, int f, uint32_t id, const char *to)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct port port = port_of(to);

	change(v, f, id, RTS);
	CHECK_EQ(0, ibv_query_qp(v->qp, &attr, IBV_QP_STATE | IBV_QP_AV | LOAD_MASK, &init));
	CHECK_EQ(IBV_QPS_RTS, attr.qp_state);
	CHECK_EQ(0, attr.ah_attr.is_global);
	CHECK_EQ(port.lid, attr.ah_attr.dlid);
	CHECK_EQ(0, attr.ah_attr.src_path_bits);
	if (port.path_bits) {
		CHECK_EQ(0, attr.alt_ah_attr.is_global);
		CHECK_EQ(port.lid | OTHER_LID, attr.alt_ah_attr.dlid);
		CHECK_EQ(OTHER_LID, attr.alt_ah_attr.src_path_bits);
	} else {
		CHECK_EQ(1, attr.alt_ah_attr.is_global);
		CHECK_EQ(port.lid, attr.alt_ah_attr.dlid);
		CHECK_MEM(port.gid, &attr.alt_ah_attr.grh.dgid, 16);
		CHECK_EQ(HOPS, attr.alt_ah_attr.grh.hop_limit);
		CHECK_EQ(CLASS, attr.alt_ah_attr.grh.traffic_class);
	}
	CHECK_EQ(1, attr.alt_port_num);
	CHECK_EQ(REARM, attr.path_mig_state);
}

TEST(ib, alternate_path_of_a_connection)
{
	struct record to_b, to_a, path;
	union addr a = addr4(PEER4, 0);
	struct verbs client, server;
	struct pair p = { 0 };

	need_ib();
	to_b = other_way("ib_a", "ib_b");
	to_a = other_way("ib_b", "ib_a");
	client = open_qp("ib_a");
	server = open_qp("ib_b");
	ib_pair_routed(&p, &a, NULL);
	p.cparam.qp_num = client.qp->qp_num;
	p.sparam.qp_num = server.qp->qp_num;
	/* There is no connection. */
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &to_b));
	ib_requested(&p);
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &to_b));
	change(&server, p.sfd, p.server, INIT);
	change(&server, p.sfd, p.server, RTR);
	change(&server, p.sfd, p.server, RTS);
	ib_accepted(&p);
	change(&client, p.cfd, p.client, INIT);
	change(&client, p.cfd, p.client, RTR);
	change(&client, p.cfd, p.client, RTS);
	ib_established(&p);
	if (!is_rust()) {
		/* Nobody can send a LAP. */
		CHECK_ERR(EINVAL, load(p.cfd, p.client, &to_b));
		goto out;
	}
	/* The way that is used, and ways that there are not. */
	path = record_of("ib_a", "ib_b", 0, PKEY);
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &path));
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &to_a));
	path = to_b;
	path.r[50] = OTHER_PKEY >> 8, path.r[51] = OTHER_PKEY & 0xff;
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &path));
	path = to_b;
	path.r[SLID + 1] = NO_LID;
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &path));
	path = to_b;
	path.r[54] = 0x80 | 4;
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &path));
	CHECK(!is_loaded(p.cfd, p.client, 0));

	REQUIRE_OK(load(p.cfd, p.client, &to_b));
	EVENTUALLY(is_loaded(p.cfd, p.client, 0));
	CHECK(is_loaded(p.sfd, p.server, 0));
	check_loaded(&client, p.cfd, p.client, "ib_b");
	check_loaded(&server, p.sfd, p.server, "ib_a");

	/* A path that the peer does not have changes nothing, and the next one can be tried. */
	path = to_b;
	memset(path.r + 8, 0x77, 16);
	REQUIRE_OK(load(p.cfd, p.client, &path));
	path = to_b;
	path.r[DLID + 1] = NO_LID;
	path.r[56] = 0x80 | (LIFE_TIME + 1);
	EVENTUALLY(load(p.cfd, p.client, &path) == 0);
	to_b.r[56] = 0x80 | (LIFE_TIME + 2);
	EVENTUALLY(load(p.cfd, p.client, &to_b) == 0);
	EVENTUALLY(is_loaded(p.cfd, p.client, LIFE_TIME + 3));
	check_loaded(&client, p.cfd, p.client, "ib_b");

	/* The other end asks. */
	to_a.r[56] = 0x80 | (LIFE_TIME + 4);
	REQUIRE_OK(load(p.sfd, p.server, &to_a));
	EVENTUALLY(is_loaded(p.sfd, p.server, LIFE_TIME + 5));
	check_loaded(&server, p.sfd, p.server, "ib_a");
	check_loaded(&client, p.cfd, p.client, "ib_b");
out:
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	CHECK_ERR(EINVAL, load(p.cfd, p.client, &to_b));
	close_qp(&client);
	close_qp(&server);
}
