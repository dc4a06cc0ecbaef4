// SPDX-License-Identifier: GPL-2.0
/* Connections whose queue pairs are the consumers' own, here invented numbers. */
#include <linux/completion.h>
#include <linux/workqueue.h>

#include "cmid.h"

static void attributes(struct side *side, struct side *peer, u8 reads, u8 depth)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	int mask = 0;

	IS(rdma_init_qp_attr(side->id, &attr, &mask), 0);
	IS(mask, IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT);
	IS(attr.port_num, 1);
	attr.qp_state = IB_QPS_RTR;
	IS(rdma_init_qp_attr(side->id, &attr, &mask), 0);
	IS(attr.dest_qp_num, peer->qpn);
	IS(attr.max_dest_rd_atomic, reads);
	IS(attr.ah_attr.type, RDMA_AH_ATTR_TYPE_ROCE);
	attr.qp_state = IB_QPS_RTS;
	IS(rdma_init_qp_attr(side->id, &attr, &mask), 0);
	IS(attr.max_rd_atomic, depth);
	IS(attr.retry_cnt, 6);
}

static void all_data(const struct side *side, int len, bool is_said)
{
	u8 zeros[256] = {};

	if (is_said)
		CHECK(!memcmp(side->data, "said", 5) && !memcmp(side->data + 5, zeros, len - 5));
	else
		CHECK(!memcmp(side->data, zeros, len));
}

void connection(void)
{
	if (!until_route())
		return stop();
	/* Each makes all calls in its callbacks, too. */
	a.calls = b.calls = true;
	if (!IS(connect(&a), 0) || !expect(&b, CONNECT_REQUEST))
		return stop();
	is_in(&a, REQ_SENT);
	is_in(&b, REQ_RCVD);
	CHECK(b.id != l.id);
	CHECK(b.id->event_handler == l.id->event_handler);
	IS(b.id->ps, RDMA_PS_TCP);
	IS(b.id->qp_type, IB_QPT_RC);
	all_data(&b, REQ_DATA, true);
	IS(b.last.param.conn.qp_num, a.qpn);
	IS(b.last.param.conn.responder_resources, 5);
	IS(b.last.param.conn.initiator_depth, 3);
	IS(b.last.param.conn.retry_count, 6);
	IS(b.last.param.conn.rnr_retry_count, 7);
	IS(b.last.param.conn.flow_control, 1);
	IS(b.last.param.conn.srq, 0);
	if (!IS(accept_locked(&b), 0) || !expect(&a, CONNECT_RESPONSE))
		return stop();
	is_in(&b, ACCEPTED);
	is_in(&a, RESPONSE);
	all_data(&a, REP_DATA, true);
	IS(a.last.param.conn.qp_num, b.qpn);
	IS(a.last.param.conn.responder_resources, 2);
	IS(a.last.param.conn.initiator_depth, 4);
	attributes(&a, &b, 2, 4);
	attributes(&b, &a, 4, 2);
	if (!IS(confirm(&a), 0) || !expect(&b, ESTABLISHED))
		return stop();
	is_in(&a, ESTABLISHED);
	is_in(&b, ESTABLISHED);
	is_quiet(&a);
	attributes(&b, &a, 4, 2);
	if (!IS(disconnect(&a), 0) || !expect(&b, DISCONNECTED))
		return stop();
	is_in(&b, DISCONNECTING);
	IS(disconnect(&b), 0);
	IS(disconnect(&b), 0);
	expect(&a, DISCONNECTED);
	expect(&a, TIMEWAIT_EXIT);
	expect(&b, TIMEWAIT_EXIT);
	is_in(&a, DISCONNECTED);
	is_in(&b, DISCONNECTED);
	is_quiet(&a);
	is_quiet(&b);
	stop();
}

/* What each end does when it is told of what. */
static int act_of_a(struct side *side)
{
	switch (side->last.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		IS(resolve_route(side), 0);
		side->on = RDMA_CM_EVENT_ROUTE_RESOLVED;
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		side->on = RDMA_CM_EVENT_CONNECT_RESPONSE;
		IS(connect_locked(side), 0);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		/* What follows comes soon. */
		side->on = RDMA_CM_EVENT_DISCONNECTED;
		IS(accept_nothing(side), 0);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		IS(disconnect(side), 0);
		break;
	default:
		good = false;
	}
	return 0;
}

static int act_of_b(struct side *side)
{
	switch (side->last.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		IS(accept(side), 0);
		side->on = RDMA_CM_EVENT_ESTABLISHED;
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		side->on = RDMA_CM_EVENT_DISCONNECTED;
		IS(disconnect(side), 0);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		return 1;
	default:
		good = false;
	}
	return 0;
}

void in_callbacks(void)
{
	if (!start())
		return;
	a.on = RDMA_CM_EVENT_ADDR_RESOLVED;
	a.act = act_of_a;
	b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
	b.act = act_of_b;
	IS(resolve(&a), 0);
	if (expect(&a, ADDR_RESOLVED) && expect(&a, ROUTE_RESOLVED) &&
	    expect(&a, CONNECT_RESPONSE)) {
		expect(&b, CONNECT_REQUEST);
		expect(&b, ESTABLISHED);
		expect(&a, DISCONNECTED);
		expect(&b, DISCONNECTED);
		expect(&a, TIMEWAIT_EXIT);
	}
	stop();
}

void parameters(void)
{
	struct rdma_conn_param param;
	u8 data[256] = {};
	int ret;

	if (!until_route())
		return stop();
	param = param_of(&a);
	param.private_data = data;
	param.private_data_len = REQ_DATA + 1;
	IS(rdma_connect(a.id, &param), -EINVAL);
	param.private_data_len = 255;
	IS(rdma_connect(a.id, &param), -EINVAL);
	is_in(&a, ROUTE_RESOLVED);
	/* More than there can be of retries is the most there can be. */
	param.private_data = NULL;
	param.private_data_len = 0;
	param.retry_count = 255;
	param.rnr_retry_count = 8;
	if (!IS(rdma_connect(a.id, &param), 0) || !expect(&b, CONNECT_REQUEST))
		return stop();
	all_data(&b, REQ_DATA, false);
	IS(b.last.param.conn.retry_count, 7);
	IS(b.last.param.conn.rnr_retry_count, 7);
	/* An answer that cannot be sent is a refusal. */
	param = param_of(&b);
	param.private_data = data;
	param.private_data_len = REP_DATA + 1;
	rdma_lock_handler(b.id);
	ret = rdma_accept(b.id, &param);
	rdma_unlock_handler(b.id);
	IS(ret, -EINVAL);
	expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	stop();

	if (!until_request())
		return stop();
	IS(rdma_reject(b.id, data, REJ_DATA + 1, IB_CM_REJ_CONSUMER_DEFINED), -EINVAL);
	is_in(&b, REQ_RCVD);
	IS(rdma_reject(b.id, data, REJ_DATA, IB_CM_REJ_CONSUMER_DEFINED), 0);
	expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	stop();
}

void rejections(void)
{
	u8 len;

	/* In words. */
	if (until_request()) {
		a.calls = true;
		IS(reject(&b), 0);
		if (expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED)) {
			CHECK(!memcmp(a.data, "no", 3));
			CHECK(rdma_consumer_reject_data(a.id, &a.last, &len));
			IS(len, REJ_DATA);
		}
		is_in(&a, REJECTED);
		is_in(&b, REJECTED);
		/* There is nothing to accept, nor to reject, any more. */
		IS(accept_locked(&b), -EINVAL);
		IS(reject(&b), -EINVAL);
		is_quiet(&a);
		is_quiet(&b);
	}
	stop();
	/* For another reason, which is not the consumer's. */
	if (until_request()) {
		IS(rdma_reject(b.id, NULL, 0, IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED), 0);
		if (expect_status(&a, REJECTED, IB_CM_REJ_VENDOR_OPTION_NOT_SUPPORTED))
			CHECK(!rdma_consumer_reject_data(a.id, &a.last, &len));
	}
	stop();
	/* By what the callback returns. */
	if (until_route()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = refuse;
		IS(connect(&a), 0);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	/* Of an answer. */
	if (until_response()) {
		b.calls = true;
		IS(reject(&a), 0);
		expect_status(&b, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
		IS(confirm(&a), -EINVAL);
	}
	stop();
	/* Twice the same number of a queue pair: what the older connection was of is no more. */
	if (until_established()) {
		struct side other;

		if (IS(create(&other, RDMA_PS_TCP, IB_QPT_RC), 0)) {
			other.qpn = a.qpn;
			other.active = true;
			IS(resolve(&other), 0);
			expect(&other, ADDR_RESOLVED);
			IS(resolve_route(&other), 0);
			expect(&other, ROUTE_RESOLVED);
			IS(connect(&other), 0);
			expect_status(&other, REJECTED, IB_CM_REJ_STALE_CONN);
			end(&other);
			expect(&a, DISCONNECTED);
			IS(disconnect(&a), 0);
			expect(&b, DISCONNECTED);
		}
	}
	stop();
}

void extensions(void)
{
	int ret;

	if (!until_route())
		return stop();
	IS(connect_ece(&a), 0);
	if (!expect(&b, CONNECT_REQUEST))
		return stop();
	IS(b.last.ece.vendor_id, 0x123456);
	IS(b.last.ece.attr_mod, 0x9abcdef0);
	rdma_lock_handler(b.id);
	ret = accept_ece(&b);
	rdma_unlock_handler(b.id);
	IS(ret, 0);
	if (expect(&a, CONNECT_RESPONSE)) {
		IS(a.last.ece.vendor_id, 0x654321);
		IS(a.last.ece.attr_mod, 0xfedcba9);
	}
	stop();
}

void early_data(void)
{
	if (until_response()) {
		IS(rdma_notify(b.id, IB_EVENT_COMM_EST), 0);
		expect(&b, ESTABLISHED);
		is_in(&b, ESTABLISHED);
		IS(confirm(&a), 0);
		is_quiet(&b);
	}
	stop();
}

static DECLARE_COMPLETION(held);
static DECLARE_COMPLETION(released);
static DECLARE_COMPLETION(accepted);

static void hold_listener(struct work_struct *work)
{
	rdma_lock_handler(l.id);
	complete(&held);
	wait_for_completion(&released);
	rdma_unlock_handler(l.id);
}

static DECLARE_WORK(holder, hold_listener);

static void accept_b(struct work_struct *work)
{
	IS(accept_locked(&b), 0);
	complete(&accepted);
}

static DECLARE_WORK(accepter, accept_b);

/*
 * While a consumer has the lock, it is told nothing. Other tasks take those of the listener and of
 * the other end: no order is defined between those of two ids, and lockdep says so.
 */
void handler_lock(void)
{
	if (!start())
		return stop();
	rdma_lock_handler(a.id);
	IS(resolve(&a), 0);
	is_quiet(&a);
	rdma_unlock_handler(a.id);
	if (!expect(&a, ADDR_RESOLVED) || !IS(resolve_route(&a), 0) || !expect(&a, ROUTE_RESOLVED))
		return stop();
	/* Requests wait for the listener. */
	reinit_completion(&held);
	reinit_completion(&released);
	reinit_completion(&accepted);
	schedule_work(&holder);
	wait_for_completion(&held);
	rdma_lock_handler(a.id);
	IS(connect_locked(&a), 0);
	IS(connect_locked(&a), -EINVAL);
	is_quiet(&b);
	complete(&released);
	if (expect(&b, CONNECT_REQUEST)) {
		schedule_work(&accepter);
		wait_for_completion(&accepted);
		is_quiet(&a);
		rdma_unlock_handler(a.id);
		expect(&a, CONNECT_RESPONSE);
	} else {
		rdma_unlock_handler(a.id);
	}
	flush_work(&holder);
	flush_work(&accepter);
	stop();
}
