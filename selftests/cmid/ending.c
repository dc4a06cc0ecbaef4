// SPDX-License-Identifier: GPL-2.0
/* Identifiers that end, each in every state: in a callback by what that returns, or from outside. */
#include "cmid.h"

static void refuses(struct side *side, enum rdma_cm_event_type event)
{
	side->on = event;
	side->act = refuse;
}

static int accept_and_refuse(struct side *side)
{
	IS(accept(side), 0);
	return 1;
}

/* Whoever returns something else than 0 is told nothing more; the peer is. */
void returns(void)
{
	if (start()) {
		refuses(&a, RDMA_CM_EVENT_ADDR_RESOLVED);
		IS(resolve(&a), 0);
		expect(&a, ADDR_RESOLVED);
		CHECK(a.gone);
	}
	stop();
	if (IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0)) {
		refuses(&a, RDMA_CM_EVENT_ADDR_ERROR);
		IS(rdma_resolve_addr(a.id, NULL, at((address & ~0xffU) | 99, 1), 100), 0);
		expect_status(&a, ADDR_ERROR, -ETIMEDOUT);
		CHECK(a.gone);
	}
	end(&a);
	if (until_resolved()) {
		refuses(&a, RDMA_CM_EVENT_ROUTE_RESOLVED);
		IS(resolve_route(&a), 0);
		expect(&a, ROUTE_RESOLVED);
		CHECK(a.gone);
	}
	stop();
	if (until_route()) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = accept_and_refuse;
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		CHECK(b.gone);
		if (comes(&a, RDMA_CM_EVENT_CONNECT_RESPONSE))
			expect(&a, CONNECT_RESPONSE);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	if (until_request()) {
		refuses(&a, RDMA_CM_EVENT_CONNECT_RESPONSE);
		IS(accept_locked(&b), 0);
		expect(&a, CONNECT_RESPONSE);
		CHECK(a.gone);
		expect_status(&b, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	if (until_response()) {
		refuses(&b, RDMA_CM_EVENT_ESTABLISHED);
		IS(confirm(&a), 0);
		expect(&b, ESTABLISHED);
		CHECK(b.gone);
		expect(&a, DISCONNECTED);
		IS(disconnect(&a), 0);
	}
	stop();
	if (until_established()) {
		refuses(&b, RDMA_CM_EVENT_DISCONNECTED);
		IS(disconnect(&a), 0);
		expect(&b, DISCONNECTED);
		CHECK(b.gone);
		refuses(&a, RDMA_CM_EVENT_TIMEWAIT_EXIT);
		expect(&a, DISCONNECTED);
		expect(&a, TIMEWAIT_EXIT);
		CHECK(a.gone);
	}
	stop();
	if (until_request()) {
		refuses(&a, RDMA_CM_EVENT_REJECTED);
		IS(reject(&b), 0);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
		CHECK(a.gone);
		is_in(&b, REJECTED);
	}
	stop();
}

/* Whoever destroys an identifier waits for a callback that runs, and none comes after. */
static int linger(struct side *side)
{
	msleep(50);
	return 0;
}

void destruction(void)
{
	int told;

	if (start() && IS(resolve(&a), 0))
		end(&a);
	stop();
	if (IS(create(&a, RDMA_PS_TCP, IB_QPT_RC), 0)) {
		IS(rdma_resolve_addr(a.id, NULL, at((address & ~0xffU) | 99, 1), 60000), 0);
		end(&a);
		IS(a.told, 0);
	}
	if (until_resolved() && IS(resolve_route(&a), 0))
		end(&a);
	stop();
	if (start()) {
		a.on = RDMA_CM_EVENT_ADDR_RESOLVED;
		a.act = linger;
		IS(resolve(&a), 0);
		wait_event_timeout(a.wait, atomic_read(&a.inside), HZ / 10);
		end(&a);
		IS(atomic_read(&a.inside), 0);
		told = a.told;
		msleep(20);
		IS(a.told, told);
	}
	stop();
	if (until_request()) {
		end(&a);
		expect_status(&b, REJECTED, IB_CM_REJ_TIMEOUT);
	}
	stop();
	if (until_request()) {
		/* The listener may go before. */
		end(&l);
		end(&b);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	if (until_response()) {
		end(&a);
		expect_status(&b, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	if (until_response()) {
		end(&b);
		expect_status(&a, REJECTED, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	if (until_established()) {
		end(&a);
		if (expect(&b, DISCONNECTED))
			IS(disconnect(&b), 0);
	}
	stop();
	if (until_established()) {
		end(&b);
		if (expect(&a, DISCONNECTED))
			IS(disconnect(&a), 0);
	}
	stop();
	if (until_established() && IS(disconnect(&a), 0) && expect(&b, DISCONNECTED)) {
		end(&b);
		expect(&a, DISCONNECTED);
	}
	stop();
	if (until_disconnected())
		end(&a);
	stop();
}

static struct side rc, ud;

/* An address that leads to a link-layer address, which nobody has (consumer.sh). */
static bool ask_nobody(struct side *side, enum rdma_ucm_port_space ps, enum ib_qp_type type)
{
	if (!IS(create(side, ps, type), 0))
		return false;
	side->active = true;
	return IS(rdma_resolve_addr(side->id, NULL, at((address & ~0xffU) | 98, 1), 2000), 0) &&
	       expect(side, ADDR_RESOLVED) && IS(resolve_route(side), 0) &&
	       expect(side, ROUTE_RESOLVED) && IS(connect(side), 0);
}

/* It takes more than a minute until these are answered, so that the other tests run meanwhile. */
void silence_begins(void)
{
	ask_nobody(&rc, RDMA_PS_TCP, IB_QPT_RC);
	ask_nobody(&ud, RDMA_PS_UDP, IB_QPT_UD);
	is_in(&rc, REQ_SENT);
	rc.calls = true;
	refuses(&ud, RDMA_CM_EVENT_UNREACHABLE);
}

void silence_ends(void)
{
	expect_status(&ud, UNREACHABLE, -ETIMEDOUT);
	CHECK(ud.gone);
	if (expect_status(&rc, UNREACHABLE, -ETIMEDOUT))
		is_in(&rc, UNREACHABLE);
	end(&rc);
	end(&ud);
}

/* The peer may have gone. */
static int go_on(struct side *side)
{
	switch (side->last.event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		side->on = RDMA_CM_EVENT_ROUTE_RESOLVED;
		resolve_route(side);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		side->on = RDMA_CM_EVENT_CONNECT_RESPONSE;
		connect_locked(side);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		accept_nothing(side);
		break;
	default:
		side->on = RDMA_CM_EVENT_ESTABLISHED;
		accept(side);
	}
	return 0;
}

/* Connections that are made and destroyed at once, while messages are on their way. */
void haste(void)
{
	int i;

	for (i = 0; i < 200 && good; i++) {
		if (!start())
			return;
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = go_on;
		a.on = RDMA_CM_EVENT_ADDR_RESOLVED;
		a.act = go_on;
		IS(resolve(&a), 0);
		usleep_range(i * 40, i * 40 + 50);
		end(&l);
		end(&a);
		/* Whoever has seen the request has it to the end. */
		end(&b);
	}
}
