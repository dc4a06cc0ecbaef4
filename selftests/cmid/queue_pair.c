// SPDX-License-Identifier: GPL-2.0
/* Connections whose queue pairs the connection manager takes through their states. */
#include "cmid.h"

bool qp_is(struct side *side, enum ib_qp_state state)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return CHECK(side->id->qp) && IS(ib_query_qp(side->id->qp, &attr, IB_QP_STATE, &init), 0) &&
	       IS(attr.qp_state, state);
}

static int done_status;
static u32 done_count;

static void done(struct ib_cq *queue, struct ib_wc *wc)
{
	done_status |= wc->status;
	done_count++;
}

static struct ib_cqe cqe = { .done = done };

/* Eight bytes, and where they go. */
static u64 *words;
static u64 words_map;

bool words_begin(void)
{
	words = kzalloc(2 * sizeof(*words), GFP_KERNEL);
	if (!CHECK(words))
		return false;
	words[0] = 0x123456789abcdef0;
	words_map = ib_dma_map_single(dev, words, 2 * sizeof(*words), DMA_BIDIRECTIONAL);
	done_status = 0;
	done_count = 0;
	return true;
}

int word_receive(struct side *side)
{
	struct ib_sge sge = {
		.addr = words_map + sizeof(*words), .length = sizeof(*words),
		.lkey = pd->local_dma_lkey,
	};
	struct ib_recv_wr recv = { .wr_cqe = &cqe, .sg_list = &sge, .num_sge = 1 };

	return IS(ib_post_recv(side->id->qp, &recv, NULL), 0) ? 0 : 1;
}

int word_send(struct side *side)
{
	struct ib_sge sge = {
		.addr = words_map, .length = sizeof(*words), .lkey = pd->local_dma_lkey,
	};
	struct ib_send_wr send = {
		.wr_cqe = &cqe, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	return IS(ib_post_send(side->id->qp, &send, NULL), 0) ? 0 : 1;
}

/* They have arrived. */
void words_end(void)
{
	int tries = 4000;

	while (done_count < 2 && tries--) {
		ib_process_cq_direct(cq, -1);
		usleep_range(1000, 5000);
	}
	ib_dma_unmap_single(dev, words_map, 2 * sizeof(*words), DMA_BIDIRECTIONAL);
	IS(done_count, 2);
	IS(done_status, IB_WC_SUCCESS);
	CHECK(words[1] == words[0]);
	kfree(words);
}

/* From one to the other. */
void exchange(struct side *from, struct side *to)
{
	if (words_begin()) {
		word_receive(to);
		word_send(from);
		words_end();
	}
}

static int prepare_and_accept(struct side *side)
{
	if (!IS(create_qp(side), 0))
		return 1;
	qp_is(side, IB_QPS_INIT);
	IS(accept(side), 0);
	qp_is(side, IB_QPS_RTS);
	return 0;
}

bool prepared(void)
{
	if (!until_resolved() || !IS(create_qp(&a), 0))
		return false;
	qp_is(&a, IB_QPS_INIT);
	return true;
}

bool routed(void)
{
	return prepared() && IS(resolve_route(&a), 0) && expect(&a, ROUTE_RESOLVED);
}

static bool joined(void)
{
	if (!routed())
		return false;
	b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
	b.act = prepare_and_accept;
	return IS(connect(&a), 0) && expect(&b, CONNECT_REQUEST) && expect(&a, ESTABLISHED) &&
	       expect(&b, ESTABLISHED);
}

static int destroy_qp_and_refuse(struct side *side)
{
	rdma_destroy_qp(side->id);
	return 1;
}

/* More data than there can be. */
static int accept_badly(struct side *side)
{
	struct rdma_conn_param param = param_of(side);
	u8 data[REP_DATA + 1] = {};

	if (!IS(create_qp(side), 0))
		return 1;
	param.private_data = data;
	param.private_data_len = sizeof(data);
	IS(rdma_accept(side->id, &param), -EINVAL);
	qp_is(side, IB_QPS_ERR);
	return 0;
}

/* More than the other end's device can do. */
static int accept_much(struct side *side)
{
	struct rdma_conn_param param = param_of(side);

	param.responder_resources = 255;
	return rdma_accept(side->id, &param);
}

void queue_pairs(void)
{
	struct ib_qp_init_attr attr = { .cap.max_send_wr = 1 << 30, .qp_type = IB_QPT_RC };

	if (joined()) {
		qp_is(&a, IB_QPS_RTS);
		qp_is(&b, IB_QPS_RTS);
		IS(a.last.param.conn.qp_num, b.id->qp->qp_num);
		is_in(&a, ESTABLISHED);
		is_in(&b, ESTABLISHED);
		exchange(&a, &b);
		exchange(&b, &a);
		IS(disconnect(&a), 0);
		qp_is(&a, IB_QPS_ERR);
		if (expect(&b, DISCONNECTED)) {
			IS(disconnect(&b), 0);
			qp_is(&b, IB_QPS_ERR);
			expect(&a, DISCONNECTED);
		}
	}
	stop();

	/* What the device refuses. */
	if (until_resolved()) {
		attr.send_cq = attr.recv_cq = cq;
		CHECK(rdma_create_qp(a.id, pd, &attr));
		CHECK(!a.id->qp);
		IS(create_qp(&a), 0);
		rdma_destroy_qp(a.id);
		CHECK(!a.id->qp);
		IS(create_qp(&a), 0);
		CHECK(a.id->qp);
	}
	stop();

	/* Whoever is refused has a queue pair that is of no use. */
	if (routed()) {
		IS(connect(&a), 0);
		if (expect(&b, CONNECT_REQUEST))
			IS(reject(&b), 0);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
		qp_is(&a, IB_QPS_ERR);
	}
	stop();

	/* So has whoever cannot accept: the peer is refused. */
	if (routed()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = accept_badly;
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();

	/* And so is a peer that offers too much. */
	if (routed()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = accept_much;
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		expect_status(&a, CONNECT_ERROR, -EINVAL);
		qp_is(&a, IB_QPS_ERR);
		expect_status(&b, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();

	/* The end of an identifier in the callback that says it is connected. */
	if (routed()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = prepare_and_accept;
		a.on = RDMA_CM_EVENT_ESTABLISHED;
		a.act = destroy_qp_and_refuse;
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		expect(&a, ESTABLISHED);
		CHECK(a.gone);
		if (comes(&b, RDMA_CM_EVENT_ESTABLISHED))
			expect(&b, ESTABLISHED);
		expect(&b, DISCONNECTED);
	}
	stop();
}

/* What a queue pair may become. */
static void allows_at(struct side *side, bool init, bool ready, int line)
{
	static const enum ib_qp_state states[] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS };
	int i, ret, right, mask;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		struct ib_qp_attr attr = { .qp_state = states[i] };

		right = (i ? ready : init) ? 0 : -EINVAL;
		ret = rdma_init_qp_attr(side->id, &attr, &mask);
		if (ret != right) {
			pr_err("cmid: line %d: state %d is %d, not %d\n", line, states[i], ret,
			       right);
			good = false;
		}
	}
	ret = create_qp(side);
	if (ret != (init ? 0 : -EINVAL)) {
		pr_err("cmid: line %d: create_qp is %d\n", line, ret);
		good = false;
	}
	if (!ret)
		rdma_destroy_qp(side->id);
	CHECK(!side->id->qp);
}

#define allows(side, init, ready) allows_at(side, init, ready, __LINE__)

static int allows_inside(struct side *side)
{
	allows(side, true, side->last.event != RDMA_CM_EVENT_REJECTED);
	return 0;
}

void queue_pair_states(void)
{
	if (until_resolved()) {
		allows(&a, true, true);
		allows(&l, false, false);
		IS(resolve_route(&a), 0);
		expect(&a, ROUTE_RESOLVED);
		allows(&a, true, true);
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = allows_inside;
		IS(connect(&a), 0);
		allows(&a, true, false);
		expect(&b, CONNECT_REQUEST);
		allows(&b, true, true);
		a.on = RDMA_CM_EVENT_CONNECT_RESPONSE;
		a.act = allows_inside;
		IS(accept_locked(&b), 0);
		allows(&b, true, true);
		expect(&a, CONNECT_RESPONSE);
		allows(&a, true, true);
		b.on = RDMA_CM_EVENT_ESTABLISHED;
		IS(confirm(&a), 0);
		allows(&a, true, true);
		expect(&b, ESTABLISHED);
		allows(&b, true, true);
		IS(disconnect(&a), 0);
		expect(&b, DISCONNECTED);
		allows(&b, false, false);
		IS(disconnect(&b), 0);
		expect(&a, DISCONNECTED);
		allows(&a, false, false);
	}
	stop();
	if (until_request()) {
		IS(reject(&b), 0);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
		allows(&a, false, false);
		allows(&b, false, false);
	}
	stop();
}
