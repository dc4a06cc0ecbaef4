// SPDX-License-Identifier: GPL-2.0
/* InfiniBand: routes, which the subnet administrator or the program has found. */
#include "ib.h"

static uint32_t resolved_id(int f, const union addr *src, const union addr *dst)
{
	uint32_t id = ib_id(f);

	NEED_ADDR(f, id, src, dst);
	return id;
}

TEST(ib, route)
{
	union addr dsts[] = { addr4(PEER4, 7807), addr6(PEER6, 7807), addr4(IB4, 7807) };
	struct record want;
	int f;

	need_ib();
	f = fd();
	for (int i = 0; i < 3; i++) {
		uint32_t id = resolved_id(f, NULL, &dsts[i]);

		CHECK_ERR(EINVAL, resolve_route(f, id, 0));
		REQUIRE_OK(resolve_route(f, id, 2000));
		NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
		want = record_of("ib_a", i == 2 ? "ib_a" : "ib_b", SID_TCP | 7807, PKEY);
		CHECK_PATH(f, id, &want);
		CHECK_ERR(EINVAL, resolve_route(f, id, 2000));
		CHECK_ERR(EINVAL, set_path(f, id, &want));
		CHECK_EQ(2, REQUIRE_ID(destroy_id(f, id)));
	}
}

/* The administrator answers every query. */
TEST(ib, route_classes)
{
	union addr dst = addr4(PEER4, 7808), dst6 = addr6(PEER6, 7808), src = addr6(IB6, 0);
	struct record want;
	uint8_t tos = 0x68;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = resolved_id(f, NULL, &dst);
	REQUIRE_OK(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	NEED_ROUTE(f, id);
	want = record_of("ib_a", "ib_b", SID_TCP | 7808, PKEY);
	want.r[52] = tos >> 4, want.r[53] = tos << 4;
	CHECK_PATH(f, id, &want);

	/* The flow label of an IPv6 address has the class before it; the option does not matter. */
	src.in6.sin6_flowinfo = htonl(0x05512345);
	id = resolved_id(f, &src, &dst6);
	REQUIRE_OK(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	NEED_ROUTE(f, id);
	want = record_of("ib_a", "ib_b", SID_TCP | 7808, PKEY);
	want.r[48] = 0x55;
	CHECK_PATH(f, id, &want);

	src = native("ib_a", SID_TCP, PKEY);
	src.ib.flowinfo = htonl(0x0aa00000);
	dst = native("ib_b", SID_TCP | 7808, PKEY);
	id = resolved_id(f, &src, &dst);
	NEED_ROUTE(f, id);
	want.r[48] = 0xaa;
	CHECK_PATH(f, id, &want);
}

TEST(ib, route_error)
{
	union addr dst = addr4(PEER4, 7809);
	struct record want;
	struct port port, peer;
	uint32_t id;
	int f;

	need_ib();
	port = port_of("ib_a");
	peer = port_of("ib_b");
	f = fd();
	id = resolved_id(f, NULL, &dst);
	sa("path refuse");
	for (int i = 0; i < 3; i++) {
		REQUIRE_OK(resolve_route(f, id, 2000));
		NEED_PLAIN(f, EV_ROUTE_ERROR, id, 0x77, -EINVAL);
		CHECK_ENDS(f, id, port.gid, peer.gid, PKEY);
	}
	sa("path silent");
	/* Small, and smaller than there are tries. */
	for (int ms = 200; ms > 0; ms = ms == 200 ? 3 : 0) {
		REQUIRE_OK(resolve_route(f, id, ms));
		NEED_PLAIN(f, EV_ROUTE_ERROR, id, 0x77, -ETIMEDOUT);
		CHECK_ENDS(f, id, port.gid, peer.gid, PKEY);
	}
	sa("path drop=3");
	REQUIRE_OK(resolve_route(f, id, 3000));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	want = record_of("ib_a", "ib_b", SID_TCP | 7809, PKEY);
	CHECK_PATH(f, id, &want);
}

/* An answer that comes when nobody waits for it is for nobody. */
TEST(ib, route_late)
{
	union addr dst = addr4(PEER4, 7810);
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = resolved_id(f, NULL, &dst);
	sa("path delay=2000");
	REQUIRE_OK(resolve_route(f, id, 100));
	NEED_PLAIN(f, EV_ROUTE_ERROR, id, 0x77, -ETIMEDOUT);
	CHECK(no_event(f, 2200));
	sa("path delay=200");
	REQUIRE_OK(resolve_route(f, id, 4000));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	CHECK_EQ(3, REQUIRE_ID(destroy_id(f, id)));
}

TEST(ib, route_queried)
{
	union addr dst = addr4(PEER4, 7811);
	struct ib_uverbs_qp_attr attr;
	struct port port, peer;
	uint8_t tos = 1, answer[8];
	uint32_t id;
	int f, other;

	need_ib();
	port = port_of("ib_a");
	peer = port_of("ib_b");
	f = fd();
	other = fd();
	id = resolved_id(f, NULL, &dst);
	sa("path delay=1500");
	REQUIRE_OK(resolve_route(f, id, 10000));
	CHECK_REFUSED(f, id);
	CHECK_ENDS(f, id, port.gid, peer.gid, PKEY);
	CHECK_PORT(f, id, "ib_a", peer.gid, SID_TCP | bound_port(f, id), SID_TCP | 7811);
	CHECK_OK(init_qp_attr(f, id, RTR, &attr));
	CHECK_EQ(1 << 0 | 1 << 3 | 1 << 4 | 1 << 5, attr.qp_attr_mask);
	CHECK_OK(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	CHECK_ERR(ENODATA, query(f, id, 3, answer, 8));
	CHECK_EQ(1, REQUIRE_ID(migrate_id(other, id, f)));
	NEED_PLAIN(other, EV_ROUTE_RESOLVED, id, 0x77, 0);
	CHECK(no_event(f, 0));
}

/* The id that has asked may be gone when the answer comes. */
TEST(ib, route_destroyed)
{
	union addr dst = addr4(PEER4, 7812);
	int f;

	need_ib();
	f = fd();
	sa("path silent");
	for (int i = 0; i < 4; i++) {
		uint32_t id = resolved_id(f, NULL, &dst);

		REQUIRE_OK(resolve_route(f, id, 60000));
		CHECK_EQ(1, REQUIRE_ID(destroy_id(f, id)));
	}
	sa("path delay=200");
	for (int i = 0; i < 4; i++) {
		uint32_t id = resolved_id(f, NULL, &dst);

		REQUIRE_OK(resolve_route(f, id, 60000));
		usleep(10000 * i);
		CHECK_EQ(1, REQUIRE_ID(destroy_id(f, id)));
	}
	CHECK(no_event(f, 400));
}

TEST(ib, route_closed)
{
	union addr dst = addr4(PEER4, 7813);

	need_ib();
	for (int i = 0; i < 6; i++) {
		int f = fd();

		for (int j = 0; j < 3; j++) {
			uint32_t id = resolved_id(f, NULL, &dst);

			sa(i & 1 ? "path silent" : "path delay=50");
			REQUIRE_OK(resolve_route(f, id, 60000));
		}
		usleep(20000 * i);
		close(f);
		sa("%s", "");
	}
	usleep(200000);
}

TEST(ib, route_no_uid)
{
	union addr dst = addr4(PEER4, 7814);
	struct record want;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_TCP, 0));
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	usleep(300000);
	REQUIRE_OK(resolve_route(f, id, 2000));
	CHECK(no_event(f, 500));
	want = record_of("ib_a", "ib_b", SID_TCP | 7814, PKEY);
	CHECK_PATH(f, id, &want);
}

TEST(ib, route_of_many)
{
	union addr dst = addr4(PEER4, 7815);
	enum { N = 200 };
	uint32_t ids[N];
	int f;

	need_ib();
	f = fd();
	for (int i = 0; i < N; i++)
		ids[i] = resolved_id(f, NULL, &dst);
	for (int i = 0; i < N; i++)
		REQUIRE_OK(resolve_route(f, ids[i], 20000));
	for (int i = 0; i < N; i++)
		NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
}

static struct record odd_path(void)
{
	struct record r = record_of("ib_a", "ib_b", 0x1112131415161718, PKEY);

	r.r[44] = 0x05, r.r[45] = 0x12, r.r[46] = 0x34;	/* flow label */
	r.r[48] = 0x50;				/* traffic class */
	r.r[49] = 0x80 | 5;			/* reversible, 5 paths */
	r.r[52] = 0x12, r.r[53] = 0x30;		/* QoS class */
	r.r[54] = 0x40 | 3;			/* less than MTU 1024 */
	r.r[55] = 0xc0 | 7;			/* the largest rate */
	r.r[56] = 16;				/* more than the life time */
	r.r[57] = 9;				/* preference */
	return r;
}

TEST(ib, given_path_is_shown)
{
	union addr dst = addr4(PEER4, 7816);
	struct record r;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = resolved_id(f, NULL, &dst);
	r = odd_path();
	/* LIDs of nobody, and a hop limit. */
	r.r[40] = 0x12, r.r[42] = 0x34, r.r[47] = 77, r.r[53] |= 6;
	REQUIRE_OK(set_path(f, id, &r));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	CHECK_PATH(f, id, &r);
	r.r[44] |= 0x80;
	id = resolved_id(f, NULL, &dst);
	REQUIRE_OK(set_path(f, id, &r));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	CHECK_PATH(f, id, &r);
}

TEST(ib, given_path_connects)
{
	union addr a = addr4(PEER4, 0);
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	struct record r;

	need_ib();
	r = odd_path();
	ib_listen(&p, &a);
	ib_resolved(&p, NULL);
	REQUIRE_OK(set_path(p.cfd, p.client, &r));
	NEED_EVENT(p.cfd, EV_ROUTE_RESOLVED, NULL);
	ib_requested(&p);
	ib_accepted(&p);
	REQUIRE_OK(init_qp_attr(p.cfd, p.client, RTR, &attr));
	CHECK_EQ(3, attr.path_mtu);
	CHECK_EQ(port_of("ib_b").lid, attr.ah_attr.dlid);
	CHECK_EQ(7, attr.ah_attr.static_rate);
	CHECK_EQ(0, attr.ah_attr.is_global);
	ib_established(&p);
}

TEST(ib, given_path_p_key)
{
	union addr dst = addr4(PEER4, 7817);
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_query_addr_resp addr;
	struct ib_uverbs_qp_attr attr;
	struct record r;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = resolved_id(f, NULL, &dst);
	r = record_of("ib_a", "ib_b", 0, 0x1234);
	REQUIRE_OK(set_path(f, id, &r));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(PKEY, ntohs(addr.pkey));
	CHECK_ERR(ENOENT, connect_id(f, id, &param));
	CHECK_ERR(ENOENT, connect_id(f, id, &param));
	CHECK_OK(init_qp_attr(f, id, INIT, &attr));

	/* The hop limit of the path is used. Nobody listens. */
	id = resolved_id(f, NULL, &dst);
	r = record_of("ib_a", "ib_b", 0, OTHER_PKEY);
	REQUIRE_OK(set_path(f, id, &r));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
	CHECK_OK(init_qp_attr(f, id, INIT, &attr));
	CHECK_EQ(0, attr.pkey_index);
	REQUIRE_OK(connect_id(f, id, &param));
	NEED_EVENT(f, EV_REJECTED, NULL);
	CHECK_ERR(EINVAL, init_qp_attr(f, id, INIT, &attr));
}
