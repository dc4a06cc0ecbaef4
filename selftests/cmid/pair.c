// SPDX-License-Identifier: GPL-2.0
/* Two ends, and how far they have come. */
#include "cmid.h"

/* Each listener has its own, so that no late request is for another. */
u16 port = 20000;
struct side a, b, l;

/* A listener, and an end that may speak to it. */
static bool pair(enum rdma_ucm_port_space ps, enum ib_qp_type type)
{
	init_side(&b);
	port++;
	if (!IS(create(&l, ps, type), 0))
		return false;
	l.child = &b;
	if (!IS(rdma_bind_addr(l.id, at(address, port)), 0) || !IS(listen(&l), 0) ||
	    !IS(create(&a, ps, type), 0)) {
		end(&l);
		return false;
	}
	a.active = true;
	return true;
}

bool listener(enum rdma_ucm_port_space ps, enum ib_qp_type type)
{
	return pair(ps, type);
}

bool start(void)
{
	return pair(RDMA_PS_TCP, IB_QPT_RC);
}

void stop(void)
{
	end(&l);
	end(&a);
	end(&b);
}

bool until_resolved(void)
{
	return start() && IS(resolve(&a), 0) && expect(&a, ADDR_RESOLVED);
}

bool until_route(void)
{
	return until_resolved() && IS(resolve_route(&a), 0) && expect(&a, ROUTE_RESOLVED);
}

bool until_request(void)
{
	return until_route() && IS(connect(&a), 0) && expect(&b, CONNECT_REQUEST);
}

/* Up to an answer that nobody has confirmed. */
bool until_response(void)
{
	return until_request() && IS(accept_locked(&b), 0) && expect(&a, CONNECT_RESPONSE);
}

bool until_established(void)
{
	return until_response() && IS(confirm(&a), 0) && expect(&b, ESTABLISHED);
}

bool until_disconnected(void)
{
	return until_established() && IS(disconnect(&a), 0) && expect(&b, DISCONNECTED) &&
	       IS(disconnect(&b), 0) && expect(&a, DISCONNECTED);
}
