// SPDX-License-Identifier: GPL-2.0
/* Datagram services over InfiniBand. */
#include "ib.h"

static void datagrams(const union addr *a, const union addr *src, uint16_t ps, uint32_t qkey, int most)
{
	struct rdma_ucm_event_resp want = { .event = EV_ESTABLISHED }, ev;
	struct rdma_ucm_ud_param ud = { .private_data_len = 136, .qkey = qkey };
	struct rdma_ucm_query_addr_resp client, server;
	struct pair p = { .ps = ps };

	ib_pair_routed(&p, a, src);
	p.cparam.private_data_len = most + 1;
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	fill_data(&p.cparam, most);
	ib_requested(&p);
	CHECK_EQ(most, p.request.param.ud.private_data_len);
	CHECK_MEM(p.cparam.private_data, p.request.param.ud.private_data, most);
	CHECK_EQ(0, p.request.param.ud.qp_num);
	REQUIRE_OK(query_addr(p.cfd, p.client, &client));
	REQUIRE_OK(query_addr(p.sfd, p.server, &server));
	CHECK_EQ(port_of("ib_b").guid, server.node_guid);
	CHECK_MEM(&client.dst_addr, &server.src_addr, addr_size(a));
	if (a->sa.sa_family == AF_IB) {
		union addr none = { .ib.family = AF_IB };

		CHECK_MEM(&none, &server.dst_addr, sizeof(none.ib));
	} else {
		CHECK_MEM(&client.src_addr, &server.dst_addr, addr_size(a));
	}
	fill_data(&p.sparam, 136);
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	want.id = p.client;
	want.uid = p.client_uid;
	ud.qp_num = p.sparam.qp_num;
	ud.ah_attr = way_to("ib_b");
	memcpy(ud.private_data, p.sparam.private_data, 136);
	memcpy(&want.param, &ud, sizeof(ud));
	CHECK_MEM(&want, &ev, sizeof(ev));
	CHECK_EQ(qkey, qp_attr(p.cfd, p.client, INIT).qkey);
	CHECK_EQ(qkey, qp_attr(p.sfd, p.server, RTS).qkey);
	CHECK(no_event(p.sfd, 20));
}

TEST(ib, datagrams_ipv4)
{
	union addr a = addr4(PEER4, 0);

	need_ib();
	datagrams(&a, NULL, PS_UDP, QKEY, 180);
}

TEST(ib, datagrams_ipv6)
{
	union addr a = addr6(PEER6, 0);

	need_ib();
	datagrams(&a, NULL, PS_UDP, QKEY, 180);
}

TEST(ib, datagrams_of_ipoib)
{
	union addr a = addr4(PEER4, 0);

	need_ib();
	datagrams(&a, NULL, PS_IPOIB, IPOIB_QKEY, 180);
}

TEST(ib, datagrams_native)
{
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_UDP, PKEY);
	src = native("ib_a", SID_UDP, PKEY);
	datagrams(&a, &src, PS_UDP, QKEY, 216);
}

TEST(ib, datagrams_global_route)
{
	struct rdma_ucm_ud_param *ud;
	union addr a = addr4(PEER4, 0);
	struct rdma_ucm_event_resp ev;
	struct ib_uverbs_ah_attr way;
	struct pair p = { .ps = PS_UDP };

	need_ib();
	ib_listen(&p, &a);
	sa("hop-limit 64");
	ib_routed(&p, NULL);
	ib_requested(&p);
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	way = way_to("ib_b");
	way.is_global = 1;
	way.grh.hop_limit = 64;
	memcpy(way.grh.dgid, port_of("ib_b").gid, 16);
	ud = (void *)&ev.param;
	CHECK_MEM(&way, &ud->ah_attr, sizeof(way));
}

/* If no port space implies it, the server names its Q_Key. */
static void own_qkey(bool client_has_one)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { .ps = PS_UDP };
	struct rdma_ucm_ud_param *ud = (void *)&ev.param;
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_UDP, PKEY);
	src = native("ib_a", SID_UDP, PKEY);
	ib_pair_routed(&p, &a, &src);
	if (client_has_one)
		CHECK_EQ(QKEY, qp_attr(p.cfd, p.client, INIT).qkey);
	ib_requested(&p);
	p.sparam.qkey = 0x7777;
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	if (client_has_one) {
		NEED_EVENT(p.cfd, EV_ADDR_ERROR, &ev);
		CHECK_EQ((uint32_t)-EINVAL, ev.status);
	} else {
		NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
		CHECK_EQ(0x7777, ud->qkey);
		/* A user that asks for the attributes gets the usual one again. */
		CHECK_EQ(QKEY, qp_attr(p.cfd, p.client, INIT).qkey);
	}
	CHECK_EQ(QKEY, qp_attr(p.sfd, p.server, INIT).qkey);
}

TEST(ib, datagrams_q_key)
{
	own_qkey(false);
}

TEST(ib, datagrams_q_key_mismatch)
{
	own_qkey(true);
}

TEST(ib, datagrams_refused)
{
	union addr a = addr4(PEER4, 0), any = addr_ib(SID_UDP | 7840, ~0ull), dst, src;
	struct rdma_ucm_event_resp ev;
	struct pair p = { .ps = PS_UDP };
	int f;

	ib_pair_routed(&p, &a, NULL);
	ib_requested(&p);
	fill_data(&p.sparam, 136);
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, p.sparam.private_data, 137, 0));
	REQUIRE_OK(reject_id(p.sfd, p.server, p.sparam.private_data, 136, 0));
	NEED_EVENT(p.cfd, EV_UNREACHABLE, &ev);
	CHECK_EQ(2, ev.status);
	CHECK_MEM(p.sparam.private_data, ev.param.ud.private_data, 136);

	/* The question of a native address does not say to which GID it is. */
	f = ib_listener(PS_UDP, &any);
	src = native("ib_a", SID_UDP, PKEY);
	dst = native("ib_b", SID_UDP | 7840, PKEY);
	CHECK_REJECTED(&dst, &src, PS_UDP, 2);
	CHECK(no_event(f, 20));
}
