// SPDX-License-Identifier: GPL-2.0
/* An InfiniBand device goes away below ids in all states. */
#include "ib.h"

/* The device has gone, and the id with it. */
static void gone(int line, int f, uint32_t id, uint32_t events)
{
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_conn_param param = conn_param();

	for (int i = 0; i < 200 && query_addr(f, id, &addr) != -ENXIO; i++)
		usleep(10000);
	check_err(__FILE__, line, "query", ENXIO, query_addr(f, id, &addr));
	check_err(__FILE__, line, "route", ENXIO, resolve_route(f, id, 1000));
	check_err(__FILE__, line, "service", ENXIO, resolve_service(f, id, 1, "", BY_ID));
	check_err(__FILE__, line, "join", ENXIO, join4(f, id, 1, GROUP, FULL));
	check_err(__FILE__, line, "connect", ENXIO, connect_id(f, id, &param));
	check_eq(__FILE__, line, "events", events, REQUIRE_ID(destroy_id(f, id)));
}
#define CHECK_GONE(f, id, events) gone(__LINE__, f, id, events)

TEST_LIMIT(ib, removal_bound, 60)
{
	union addr a;
	uint32_t ids[2];
	int f[2];

	plug_ib();
	a = native("ib_c", SID_TCP | 7870, PKEY);
	for (int i = 0; i < 2; i++) {
		f[i] = fd();
		ids[i] = REQUIRE_ID(create_id(f[i], PS_TCP, 0x44 + i));
	}
	REQUIRE_OK(bind4(f[0], ids[0], PLUG_IB4, 0));
	REQUIRE_OK(bind_addr(f[1], ids[1], &a));
	REQUIRE_OK(listen_id(f[1], ids[1], 0));
	unplug_ib();
	for (int i = 0; i < 2; i++) {
		NEED_PLAIN(f[i], EV_DEVICE_REMOVAL, ids[i], 0x44 + i, 0);
		CHECK_GONE(f[i], ids[i], 1);
	}
	/* Its address is nobody's. */
	CHECK_ERR(ENODEV, bind_addr(f[0], REQUIRE_ID(create_id(f[0], PS_TCP, 1)), &a));
}

/* Nobody answers any more. */
TEST_LIMIT(ib, removal_of_queries, 60)
{
	union addr src, dst;
	uint32_t route, service, routed;
	int f, g;

	plug_ib();
	src = native("ib_c", SID_TCP, PKEY);
	dst = native("ib_a", SID_TCP | 7871, PKEY);
	f = fd();
	g = fd();
	routed = REQUIRE_ID(create_id(g, PS_TCP, 3));
	NEED_ADDR(g, routed, &src, &dst);
	NEED_ROUTE(g, routed);
	sa("path silent\nservice silent");
	route = REQUIRE_ID(create_id(f, PS_TCP, 1));
	NEED_ADDR(f, route, &src, &dst);
	REQUIRE_OK(resolve_route(f, route, 60000));
	service = REQUIRE_ID(create_id(f, PS_TCP, 2));
	REQUIRE_OK(bind_addr(f, service, &src));
	REQUIRE_OK(resolve_service(f, service, 1, "", BY_ID));
	unplug_ib();
	NEED_PLAIN(g, EV_DEVICE_REMOVAL, routed, 3, 0);
	CHECK_GONE(g, routed, 3);
	/* Their requests have no other answer. */
	for (int i = 0; i < 2; i++) {
		struct rdma_ucm_event_resp ev;

		NEED_EVENT(f, EV_DEVICE_REMOVAL, &ev);
	}
	CHECK_GONE(f, route, 2);
	CHECK_GONE(f, service, 1);
	CHECK(no_event(f, 50));
}

TEST_LIMIT(ib, removal_of_a_client, 60)
{
	union addr a, src;
	struct pair p = { 0 };

	plug_ib();
	a = native("ib_a", SID_TCP, PKEY);
	src = native("ib_c", SID_TCP, PKEY);
	ib_pair_established(&p, &a, &src);
	unplug_ib();
	NEED_PLAIN(p.cfd, EV_DEVICE_REMOVAL, p.client, p.client_uid, 0);
	CHECK_GONE(p.cfd, p.client, 4);
}

TEST_LIMIT(ib, removal_of_a_server, 60)
{
	union addr a, src;
	struct pair p = { 0 };

	plug_ib();
	a = native("ib_c", SID_TCP, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	ib_pair_established(&p, &a, &src);
	unplug_ib();
	NEED_EVENT(p.sfd, EV_DEVICE_REMOVAL, NULL);
	NEED_EVENT(p.sfd, EV_DEVICE_REMOVAL, NULL);
	CHECK_GONE(p.sfd, p.server, 2);
	CHECK_GONE(p.sfd, p.listener, 2);
}

TEST_LIMIT(ib, removal_of_groups, 60)
{
	struct rdma_ucm_event_resp ev;
	uint32_t id, mc, joining;
	int f;

	plug_ib();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_UDP, 0x55));
	REQUIRE_OK(bind4(f, id, PLUG_IB4, 0));
	mc = REQUIRE_ID(join4(f, id, 1, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	sa("mcast delay=500");
	joining = REQUIRE_ID(join4(f, id, 2, "239.9.8.7", FULL));
	unplug_ib();
	/* Before that it may be told that its groups are lost. */
	do
		REQUIRE_OK(wait_event(f, &ev, 10000));
	while (ev.event == EV_MULTICAST_ERROR || ev.event == EV_MULTICAST_JOIN);
	CHECK_EQ(EV_DEVICE_REMOVAL, ev.event);
	for (int i = 0; i < 200 && leave(f, joining) == -ENXIO; i++)
		usleep(10000);
	(void)mc;
	sa("%s", "");
	close(f);
}

TEST_LIMIT(ib, removal_below_a_wildcard, 90)
{
	union addr any = addr_ib(SID_TCP | 7872, ~0ull), src, dst;
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	uint32_t client;
	int f, c;

	need_ib();
	f = ib_listener(PS_TCP, &any);
	for (int i = 0; i < 2; i++) {
		plug_ib();
		c = fd();
		src = native("ib_a", SID_TCP, PKEY);
		dst = native("ib_c", SID_TCP | 7872, PKEY);
		client = REQUIRE_ID(create_id(c, PS_TCP, 1));
		NEED_ADDR(c, client, &src, &dst);
		NEED_ROUTE(c, client);
		param.qp_num = fake_qpn();
		REQUIRE_OK(connect_id(c, client, &param));
		NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
		REQUIRE_OK(destroy_id(f, ev.id));
		NEED_EVENT(c, EV_REJECTED, NULL);
		close(c);
		unplug_ib();
		CHECK(no_event(f, 10));
	}
}
