// SPDX-License-Identifier: GPL-2.0
/* Questions about datagrams, and groups. */
#include "cmid.h"

#define FULL_MEMBER BIT(0)
#define SEND_ONLY_FULL_MEMBER BIT(3)

static bool until_question(void)
{
	return listener(RDMA_PS_UDP, IB_QPT_UD) && IS(resolve(&a), 0) &&
	       expect(&a, ADDR_RESOLVED) && IS(resolve_route(&a), 0) && expect(&a, ROUTE_RESOLVED) &&
	       IS(disconnect(&a), -EINVAL) && IS(connect(&a), 0) && expect(&b, CONNECT_REQUEST);
}

static int accept_question(struct side *side)
{
	if (IS(create_qp(side), 0)) {
		struct ib_qp_init_attr init;
		struct ib_qp_attr attr;

		IS(ib_query_qp(side->id->qp, &attr, IB_QP_STATE, &init), 0);
		IS(attr.qp_state, IB_QPS_RTS);
	}
	return accept(side);
}

void datagrams(void)
{
	struct rdma_conn_param param;
	int ret;

	if (until_question()) {
		CHECK(!memcmp(b.data, "said", 5));
		IS(connect(&a), -EINVAL);
		IS(accept_locked(&b), 0);
		if (expect(&a, ESTABLISHED)) {
			IS(a.last.param.ud.qp_num, b.qpn);
			IS(a.last.param.ud.qkey, RDMA_UDP_QKEY);
			IS(a.last.param.ud.private_data_len, SIDR_REP_DATA);
			IS(a.last.param.ud.ah_attr.type, RDMA_AH_ATTR_TYPE_ROCE);
		}
		/* There is nothing to end. */
		IS(disconnect(&a), 0);
		IS(disconnect(&b), 0);
		is_quiet(&a);
		is_quiet(&b);
	}
	stop();
	/* With a queue pair, and a key. */
	if (listener(RDMA_PS_UDP, IB_QPT_UD)) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = accept_question;
		IS(resolve(&a), 0);
		expect(&a, ADDR_RESOLVED);
		IS(resolve_route(&a), 0);
		expect(&a, ROUTE_RESOLVED);
		IS(connect(&a), 0);
		expect(&b, CONNECT_REQUEST);
		if (expect(&a, ESTABLISHED))
			IS(a.last.param.ud.qp_num, b.id->qp->qp_num);
	}
	stop();
	if (until_question()) {
		param = param_of(&b);
		param.qkey = 0x1234;
		rdma_lock_handler(b.id);
		ret = rdma_accept(b.id, &param);
		rdma_unlock_handler(b.id);
		IS(ret, 0);
		if (expect(&a, ESTABLISHED))
			IS(a.last.param.ud.qkey, 0x1234);
	}
	stop();
	/* Refused: in words, by what the callback returns, by the end of the identifier. */
	if (until_question()) {
		IS(reject(&b), 0);
		expect_status(&a, UNREACHABLE, IB_SIDR_REJECT);
	}
	stop();
	if (until_question()) {
		end(&b);
		expect_status(&a, UNREACHABLE, IB_SIDR_REJECT);
	}
	stop();
	if (listener(RDMA_PS_UDP, IB_QPT_UD)) {
		b.on = RDMA_CM_EVENT_CONNECT_REQUEST;
		b.act = refuse;
		IS(resolve(&a), 0);
		expect(&a, ADDR_RESOLVED);
		IS(resolve_route(&a), 0);
		expect(&a, ROUTE_RESOLVED);
		IS(connect(&a), 0);
		expect_status(&a, UNREACHABLE, IB_SIDR_REJECT);
	}
	stop();
	/* Nobody is asked. */
	if (listener(RDMA_PS_UDP, IB_QPT_UD)) {
		end(&l);
		IS(resolve(&a), 0);
		expect(&a, ADDR_RESOLVED);
		IS(resolve_route(&a), 0);
		expect(&a, ROUTE_RESOLVED);
		IS(connect(&a), 0);
		expect_status(&a, UNREACHABLE, IB_SIDR_UNSUPPORTED);
	}
	stop();
}

static void join(u8 state)
{
	int name;

	if (!IS(create(&a, RDMA_PS_UDP, IB_QPT_UD), 0) || !IS(bind(&a), 0))
		return end(&a);
	IS(rdma_join_multicast(a.id, at(0xef010203, 0), state, &name), 0);
	if (expect(&a, MULTICAST_JOIN)) {
		CHECK(a.last.param.ud.private_data == &name);
		IS(a.last.param.ud.qp_num, 0xffffff);
		IS(a.last.param.ud.qkey, RDMA_UDP_QKEY);
	}
	rdma_leave_multicast(a.id, at(0xef010203, 0));
	rdma_leave_multicast(a.id, at(0xef010204, 0));
	end(&a);
}

void groups(void)
{
	join(FULL_MEMBER);
	join(SEND_ONLY_FULL_MEMBER);

	/* Whoever leaves need not be told before. */
	if (!IS(create(&a, RDMA_PS_UDP, IB_QPT_UD), 0))
		return;
	IS(rdma_join_multicast(a.id, at(0xef010203, 0), FULL_MEMBER, NULL), -EINVAL);
	IS(bind(&a), 0);
	IS(rdma_join_multicast(a.id, at(0, 0), FULL_MEMBER, NULL), -EINVAL);
	IS(rdma_join_multicast(a.id, at(0xef010203, 0), FULL_MEMBER, NULL), 0);
	end(&a);
}
