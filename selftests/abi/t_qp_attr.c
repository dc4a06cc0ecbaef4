// SPDX-License-Identifier: GPL-2.0
/* INIT_QP_ATTR: which attributes a queue pair gets, by its next state. */
#include "abi.h"

/* enum ib_qp_state */
enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR };

/* enum ib_qp_attr_mask */
enum {
	STATE = 1 << 0, ACCESS_FLAGS = 1 << 3, PKEY_INDEX = 1 << 4, PORT = 1 << 5,
	QKEY = 1 << 6, AV = 1 << 7, PATH_MTU = 1 << 8, TIMEOUT = 1 << 9,
	RETRY_CNT = 1 << 10, RNR_RETRY = 1 << 11, RQ_PSN = 1 << 12,
	MAX_QP_RD_ATOMIC = 1 << 13, MIN_RNR_TIMER = 1 << 15, SQ_PSN = 1 << 16,
	MAX_DEST_RD_ATOMIC = 1 << 17, DEST_QPN = 1 << 20,
};

#define INIT_MASK (STATE | ACCESS_FLAGS | PKEY_INDEX | PORT)
#define RTR_MASK (STATE | AV | PATH_MTU | DEST_QPN | RQ_PSN | MAX_DEST_RD_ATOMIC | \
		  MIN_RNR_TIMER)
#define RTS_MASK (STATE | SQ_PSN | RETRY_CNT | RNR_RETRY | MAX_QP_RD_ATOMIC | TIMEOUT)

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

TEST(qp_attr, needs_device)
{
	struct ib_uverbs_qp_attr attr;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	union addr any = addr4("0.0.0.0", 0);

	CHECK_ERR(EINVAL, init_qp_attr(f, id, INIT, &attr));
	REQUIRE_OK(bind_addr(f, id, &any));
	CHECK_ERR(EINVAL, init_qp_attr(f, id, INIT, &attr));
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_ERR(EINVAL, init_qp_attr(f, id, INIT, &attr));
}

TEST(qp_attr, unknown_states)
{
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, 7, &attr));
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, 0xffffffff, &attr));
	/* Before the id is looked up. */
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, 0xffffffff, 7, &attr));
	CHECK_ERR(ENOENT, init_qp_attr(p.cfd, 0xffffffff, 6, &attr));
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, RESET, &attr));
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, SQD, &attr));
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, SQE, &attr));
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, ERR, &attr));
}

TEST(qp_attr, before_connect)
{
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_resolved_addr(&p, &a);
	/* The state that is asked for does not matter. */
	for (int state = RESET; state <= ERR; state++) {
		REQUIRE_OK(init_qp_attr(p.cfd, p.client, state, &attr));
		CHECK_EQ(INIT_MASK, attr.qp_attr_mask);
		CHECK_EQ(state, attr.qp_state);
		CHECK_EQ(0, attr.qp_access_flags);
		CHECK_EQ(0, attr.pkey_index);
		CHECK_EQ(1, attr.port_num);
	}
}

TEST(qp_attr, datagram)
{
	struct ib_uverbs_qp_attr attr;
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	NEED_ADDR(f, id, NULL, &dst);
	REQUIRE_OK(init_qp_attr(f, id, INIT, &attr));
	CHECK_EQ(STATE | PKEY_INDEX | PORT | QKEY, attr.qp_attr_mask);
	CHECK_EQ(0x01234567, attr.qkey);
	CHECK_EQ(1, attr.port_num);
}

static struct ib_uverbs_qp_attr get(int f, uint32_t id, uint32_t state)
{
	struct ib_uverbs_qp_attr attr;

	REQUIRE_OK(init_qp_attr(f, id, state, &attr));
	CHECK_EQ(state, attr.qp_state);
	return attr;
}

TEST(qp_attr, of_an_established_connection)
{
	struct ib_uverbs_qp_attr c, s;
	struct pair p = { 0 };
	union addr a = any_port4();
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };

	pair_routed(&p, &a);
	memcpy(gid + 12, &p.addr.in.sin_addr, 4);
	p.cparam.responder_resources = 5;
	p.cparam.initiator_depth = 3;
	p.cparam.retry_count = 6;
	p.cparam.rnr_retry_count = 2;
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	p.server = p.request.id;
	p.sparam.responder_resources = 2;
	p.sparam.initiator_depth = 4;
	p.sparam.rnr_retry_count = 1;
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);

	c = get(p.cfd, p.client, INIT);
	s = get(p.sfd, p.server, INIT);
	CHECK_EQ(INIT_MASK, c.qp_attr_mask);
	CHECK_EQ(INIT_MASK, s.qp_attr_mask);
	CHECK_EQ(0, c.pkey_index);
	CHECK_EQ(1, c.port_num);
	CHECK_EQ(1, s.port_num);
	/* Remote write, read and atomic; flush where the device has it. */
	CHECK_EQ(0xe, c.qp_access_flags & 0xf);
	CHECK_EQ(0xe, s.qp_access_flags & 0xf);
	CHECK_EQ(c.qp_access_flags, s.qp_access_flags);

	c = get(p.cfd, p.client, RTR);
	s = get(p.sfd, p.server, RTR);
	CHECK_EQ(RTR_MASK, c.qp_attr_mask);
	CHECK_EQ(RTR_MASK, s.qp_attr_mask);
	CHECK_EQ(p.sparam.qp_num, c.dest_qp_num);
	CHECK_EQ(p.cparam.qp_num, s.dest_qp_num);
	CHECK_EQ(3, c.path_mtu);
	CHECK_EQ(3, s.path_mtu);
	/* These are the wishes of the other end, seen from here. */
	CHECK_EQ(4, c.max_dest_rd_atomic);
	CHECK_EQ(2, s.max_dest_rd_atomic);
	CHECK_EQ(0, c.min_rnr_timer);
	CHECK_EQ(1, c.ah_attr.is_global);
	CHECK_EQ(1, s.ah_attr.is_global);
	CHECK_EQ(1, c.ah_attr.port_num);
	CHECK_MEM(gid, c.ah_attr.grh.dgid, 16);
	CHECK_MEM(gid, s.ah_attr.grh.dgid, 16);
	CHECK_EQ(c.ah_attr.grh.sgid_index, s.ah_attr.grh.sgid_index);
	CHECK_EQ(0, c.ah_attr.grh.traffic_class);
	CHECK_EQ(64, c.ah_attr.grh.hop_limit);
	CHECK_EQ(0, c.rq_psn >> 24);

	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
	/* Sequence numbers: what one sends with, the other expects. */
	CHECK_EQ(get(p.sfd, p.server, RTR).rq_psn, get(p.cfd, p.client, RTS).sq_psn);
	CHECK_EQ(get(p.cfd, p.client, RTR).rq_psn, get(p.sfd, p.server, RTS).sq_psn);
	c = get(p.cfd, p.client, RTS);
	s = get(p.sfd, p.server, RTS);
	CHECK_EQ(RTS_MASK, c.qp_attr_mask);
	CHECK_EQ(RTS_MASK, s.qp_attr_mask);
	CHECK_EQ(6, c.retry_cnt);
	CHECK_EQ(6, s.retry_cnt);
	CHECK_EQ(1, c.rnr_retry);
	CHECK_EQ(2, s.rnr_retry);
	CHECK_EQ(2, c.max_rd_atomic);
	CHECK_EQ(4, s.max_rd_atomic);
	CHECK_EQ(17, c.timeout);
	CHECK_EQ(17, s.timeout);
}

TEST(qp_attr, no_responder_resources)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	p.cparam.responder_resources = 0;
	p.cparam.initiator_depth = 0;
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	/* Remote write only. */
	CHECK_EQ(2, get(p.cfd, p.client, INIT).qp_access_flags);
	CHECK_EQ(2, get(p.sfd, p.request.id, INIT).qp_access_flags);
}

TEST(qp_attr, request_sent)
{
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	CHECK_EQ(INIT_MASK, get(p.cfd, p.client, INIT).qp_attr_mask);
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, RTR, &attr));
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, RTS, &attr));
	/* The end that got it can do all. */
	CHECK_EQ(INIT_MASK, get(p.sfd, p.server, INIT).qp_attr_mask);
	CHECK_EQ(RTR_MASK, get(p.sfd, p.server, RTR).qp_attr_mask);
	CHECK_EQ(RTS_MASK, get(p.sfd, p.server, RTS).qp_attr_mask);
}

TEST(qp_attr, disconnected)
{
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	for (int state = INIT; state <= RTS; state++) {
		CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, state, &attr));
		CHECK_ERR(EINVAL, init_qp_attr(p.sfd, p.server, state, &attr));
	}
}

TEST(qp_attr, ack_timeout_option)
{
	uint8_t timeout = 14;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(set_option(p.sfd, p.server, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	CHECK_EQ(14, get(p.sfd, p.server, RTS).timeout);
}

TEST(qp_attr, every_byte_is_defined)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	for (int state = INIT; state <= RTS; state++) {
		uint8_t *x = edge_fill(200, 0xa5), *y = edge_fill(200, 0x5a);
		struct rdma_ucm_init_qp_attr req = { .id = p.client, .qp_state = state };

		req.response = ptr(x);
		REQUIRE_OK(cm_cmd(p.cfd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &req, sizeof(req), 200));
		req.response = ptr(y);
		REQUIRE_OK(cm_cmd(p.cfd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &req, sizeof(req), 144));
		CHECK_MEM(x, y, 144);
		for (int i = 144; i < 200; i++)
			CHECK(x[i] == 0xa5 && y[i] == 0x5a);
	}
}

TEST(qp_attr, answer_not_writable)
{
	struct pair p = { 0 };
	union addr a = any_port4();
	void *const bad[] = { NULL, unmapped(), edge(143), readonly(144) };

	pair_routed(&p, &a);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rdma_ucm_init_qp_attr req = {
			.response = ptr(bad[i]), .id = p.client, .qp_state = INIT,
		};

		CHECK_ERR(EFAULT, cm_cmd(p.cfd, RDMA_USER_CM_CMD_INIT_QP_ATTR, &req,
					 sizeof(req), 144));
	}
}
