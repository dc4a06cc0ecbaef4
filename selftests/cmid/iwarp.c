// SPDX-License-Identifier: GPL-2.0
/* Connections over iWARP, whose requests ask and whose answers are the last word. */
#include "cmid.h"

static int prepare_and_accept(struct side *side)
{
	if (!IS(create_qp(side), 0))
		return 1;
	qp_is(side, IB_QPS_INIT);
	return IS(accept(side), 0) ? 0 : 1;
}

static int connect_inside(struct side *side)
{
	IS(connect_locked(side), 0);
	return 0;
}

static int reject_inside(struct side *side)
{
	IS(reject(side), 0);
	return 0;
}

/* More data than there can be. */
static int accept_badly(struct side *side)
{
	struct rdma_conn_param param = param_of(side);
	static const u8 data[255];

	if (!IS(create_qp(side), 0))
		return 1;
	param.private_data = data;
	param.private_data_len = sizeof(data);
	param.initiator_depth = 255;
	CHECK(rdma_accept(side->id, &param));
	return 0;
}

/* Asked in the callback that says how the peer is reached. */
static bool asked(void)
{
	if (!prepared())
		return false;
	a.on = RDMA_CM_EVENT_ROUTE_RESOLVED;
	a.act = connect_inside;
	return IS(resolve_route(&a), 0) && expect(&a, ROUTE_RESOLVED) &&
	       expect(&b, CONNECT_REQUEST);
}

static bool joined(void)
{
	return asked() && IS(create_qp(&b), 0) && IS(accept_locked(&b), 0) &&
	       expect(&a, ESTABLISHED) && expect(&b, ESTABLISHED);
}

static bool said(struct side *side)
{
	return IS(side->last.param.conn.private_data_len, 5) &&
	       IS(memcmp(side->data, "said", 5), 0);
}

void iwarp_connection(void)
{
	if (asked()) {
		CHECK(b.id->device == dev);
		CHECK(said(&b));
		IS(b.last.param.conn.responder_resources, 5);
		IS(b.last.param.conn.initiator_depth, 3);
		IS(create_qp(&b), 0);
		IS(accept_locked(&b), 0);
		expect(&b, ESTABLISHED);
		if (expect(&a, ESTABLISHED))
			CHECK(said(&a));
		/* It was answered. */
		IS(reject(&b), -EINVAL);
		qp_is(&a, IB_QPS_RTS);
		qp_is(&b, IB_QPS_RTS);
		exchange(&a, &b);
		exchange(&b, &a);
		IS(rdma_notify(a.id, IB_EVENT_COMM_EST), 0);
		/* The listener may go before. */
		end(&l);
		exchange(&a, &b);
		IS(disconnect(&a), 0);
		expect(&a, DISCONNECTED);
		expect(&b, DISCONNECTED);
		IS(disconnect(&a), 0);
		IS(disconnect(&b), 0);
		CHECK(is_quiet(&a));
		CHECK(is_quiet(&b));
	}
	stop();

	/* All of it in callbacks. */
	if (prepared()) {
		a.on = RDMA_CM_EVENT_ROUTE_RESOLVED;
		a.act = connect_inside;
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = prepare_and_accept;
		IS(resolve_route(&a), 0);
		expect(&a, ROUTE_RESOLVED);
		expect(&b, CONNECT_REQUEST);
		expect(&a, ESTABLISHED);
		expect(&b, ESTABLISHED);
		b.on = RDMA_CM_EVENT_DISCONNECTED;
		b.act = disconnect;
		IS(disconnect(&b), 0);
		expect(&a, DISCONNECTED);
		expect(&b, DISCONNECTED);
	}
	stop();
}

static int receive_and_accept(struct side *side)
{
	return create_qp(side) || word_receive(side) || !IS(accept(side), 0);
}

/* What is said in the callback that tells of the answer is heard. */
void iwarp_at_once(void)
{
	int i;

	for (i = 0; i < 200 && good; i++) {
		if (routed() && words_begin()) {
			a.on = RDMA_CM_EVENT_ESTABLISHED;
			a.act = word_send;
			b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
			b.act = receive_and_accept;
			IS(connect(&a), 0);
			expect(&b, CONNECT_REQUEST);
			expect(&a, ESTABLISHED);
			expect(&b, ESTABLISHED);
			words_end();
		}
		stop();
	}
}

void iwarp_rejections(void)
{
	u8 len;

	if (routed()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = reject_inside;
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		expect_status(&a, REJECTED, -ECONNRESET);
		IS(strcmp(rdma_reject_msg(a.id, -ECONNRESET), "reset by remote host"), 0);
		/* What comes with that is not the consumer's. */
		CHECK(!rdma_consumer_reject_data(a.id, &a.last, &len));
		IS(len, 0);
		IS(reject(&b), -EINVAL);
		IS(accept_locked(&b), -EINVAL);
	}
	stop();

	/* By what the callback returns, or without a word. */
	if (routed()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = refuse;
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		CHECK(b.gone);
		expect_status(&a, REJECTED, -ECONNRESET);
	}
	stop();
	if (asked()) {
		end(&b);
		expect_status(&a, REJECTED, -ECONNRESET);
	}
	stop();

	/* Whoever accepts what cannot be refuses. */
	if (routed()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = accept_badly;
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		expect_status(&a, REJECTED, -ECONNRESET);
	}
	stop();

	/* Nobody listens: known at once, and may be tried again. */
	if (prepared()) {
		end(&l);
		IS(resolve_route(&a), 0);
		expect(&a, ROUTE_RESOLVED);
		IS(connect(&a), -ECONNREFUSED);
		IS(connect(&a), -ECONNREFUSED);
		CHECK(is_quiet(&a));
	}
	stop();
}

/* Not in a callback: the queue pair may be in use until that returns. */
static struct ib_qp *left;

static int leave(struct side *side)
{
	left = side->id->qp;
	return 1;
}

static void leaves(struct side *side, enum rdma_cm_event_type event)
{
	left = NULL;
	side->on = event;
	side->act = leave;
}

static void left_by(struct side *side)
{
	CHECK(side->gone);
	if (CHECK(left))
		ib_destroy_qp(left);
}

void iwarp_ends(void)
{
	if (asked() && IS(create_qp(&b), 0)) {
		leaves(&a, RDMA_CM_EVENT_ESTABLISHED);
		IS(accept_locked(&b), 0);
		expect(&a, ESTABLISHED);
		left_by(&a);
		expect(&b, ESTABLISHED);
		expect(&b, DISCONNECTED);
	}
	stop();
	if (asked() && IS(create_qp(&b), 0)) {
		leaves(&b, RDMA_CM_EVENT_ESTABLISHED);
		IS(accept_locked(&b), 0);
		expect(&b, ESTABLISHED);
		left_by(&b);
		expect(&a, ESTABLISHED);
		expect(&a, DISCONNECTED);
	}
	stop();
	if (joined()) {
		leaves(&b, RDMA_CM_EVENT_DISCONNECTED);
		IS(disconnect(&a), 0);
		expect(&b, DISCONNECTED);
		left_by(&b);
		expect(&a, DISCONNECTED);
	}
	stop();
	if (joined()) {
		end(&a);
		expect(&b, DISCONNECTED);
	}
	stop();
	if (joined()) {
		end(&b);
		expect(&a, DISCONNECTED);
	}
	stop();
	/* The listener, while a request waits. */
	if (asked()) {
		end(&l);
		end(&b);
		expect_status(&a, REJECTED, -ECONNRESET);
	}
	stop();
}

/* A listener on all addresses, which is one at each device. */
void iwarp_wildcard(void)
{
	init_side(&b);
	port++;
	if (!IS(create(&l, RDMA_PS_TCP, IB_QPT_RC), 0))
		return;
	l.child = &b;
	if (IS(rdma_bind_addr(l.id, at(0, port)), 0) && IS(listen(&l), 0) &&
	    IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0)) {
		a.active = true;
		if (IS(resolve(&a), 0) && expect(&a, ADDR_RESOLVED) && IS(create_qp(&a), 0) &&
		    IS(resolve_route(&a), 0) && expect(&a, ROUTE_RESOLVED) &&
		    IS(connect(&a), 0) && expect(&b, CONNECT_REQUEST)) {
			CHECK(b.id->device == dev);
			IS(create_qp(&b), 0);
			IS(accept_locked(&b), 0);
			expect(&a, ESTABLISHED);
			expect(&b, ESTABLISHED);
			exchange(&a, &b);
		}
	}
	stop();
}

/* Whether no more queue pairs are made. */
static bool over;

/* The peer may have gone. */
static int go_on(struct side *side)
{
	if (over)
		return !side->active;
	switch (side->last.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		side->on = RDMA_CM_EVENT_ROUTE_RESOLVED;
		if (!create_qp(side))
			resolve_route(side);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		connect_locked(side);
		break;
	default:
		if (!create_qp(side))
			accept(side);
	}
	return 0;
}

/* Connections that are made and destroyed at once. */
void iwarp_haste(void)
{
	int i;

	for (i = 0; i < 100 && good; i++) {
		if (!start())
			return;
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = go_on;
		a.on = RDMA_CM_EVENT_ADDR_RESOLVED;
		a.act = go_on;
		over = false;
		IS(resolve(&a), 0);
		usleep_range(i * 80, i * 80 + 50);
		/* No callback runs that would make a queue pair. */
		rdma_lock_handler(a.id);
		over = true;
		rdma_unlock_handler(a.id);
		/* Before the listener: an answer that does not come the driver awaits for 10 s. */
		end(&a);
		end(&l);
		end(&b);
	}
}
