// SPDX-License-Identifier: GPL-2.0
/* InfiniBand: which listener a request is for, and what it is told. */
#include "ib.h"

TEST(ib, nobody_listens)
{
	union addr v4 = addr4(PEER4, 7831), v6 = addr6(PEER6, 7831), gid, src;

	need_ib();
	gid = native("ib_b", SID_TCP | 7831, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	CHECK_REJECTED(&v4, NULL, PS_TCP, 8);
	CHECK_REJECTED(&v6, NULL, PS_TCP, 8);
	CHECK_REJECTED(&gid, &src, PS_TCP, 8);
	CHECK_REJECTED(&v4, NULL, PS_UDP, 1);
	gid.ib.sid = htobe64(SID_UDP | 7831);
	src.ib.sid = htobe64(SID_UDP);
	CHECK_REJECTED(&gid, &src, PS_UDP, 1);
}

TEST(ib, listener_at_one_port)
{
	union addr a, dst, src;
	int f;

	need_ib();
	a = native("ib_a", SID_TCP | 7832, PKEY);
	dst = native("ib_b", SID_TCP | 7832, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	f = ib_listener(PS_TCP, &a);
	CHECK_REJECTED(&dst, &src, PS_TCP, 8);
	CHECK(no_event(f, 20));
}

/*
 * A request from an IP address is one to a listener with a native one as well, which takes the header for
 * what the program sent.
 */
TEST(ib, native_listener_and_ip)
{
	union addr any = addr_ib(SID_TCP | 7833, ~0ull), v4 = addr4(PEER4, 7833);
	union addr own = addr4(IB4, 7833), at_gid = addr4(IB4, 7834), a, b, got;
	struct rdma_ucm_query_addr_resp server;
	struct rdma_ucm_event_resp ev;
	uint32_t id;
	int f, g, c;

	need_ib();
	a = native("ib_a", SID_TCP | 7834, PKEY);
	f = ib_listener(PS_TCP, &any);
	CHECK_REJECTED(&v4, NULL, PS_TCP, 28);
	c = fd();
	for (int i = 0; i < 2; i++) {
		struct rdma_ucm_conn_param param = conn_param();

		id = routed_client(c, 1, i ? &at_gid : &own);
		g = i ? ib_listener(PS_TCP, &a) : f;
		fill_data(&param, 56);
		REQUIRE_OK(connect_id(c, id, &param));
		NEED_EVENT(g, EV_CONNECT_REQUEST, &ev);
		CHECK_EQ(92, ev.param.conn.private_data_len);
		CHECK_EQ(0, ev.param.conn.private_data[0]);
		CHECK_EQ(0x40, ev.param.conn.private_data[1]);
		CHECK_MEM(&own.in.sin_addr, ev.param.conn.private_data + 32, 4);
		CHECK_MEM(param.private_data, ev.param.conn.private_data + 36, 56);
		REQUIRE_OK(query_addr(g, ev.id, &server));
		memcpy(&got, &server.src_addr, sizeof(got));
		b = native("ib_a", SID_TCP | (7833 + i), PKEY);
		CHECK_MEM(&b, &got, sizeof(b.ib));
		REQUIRE_OK(destroy_id(g, ev.id));
		NEED_EVENT(c, EV_REJECTED, &ev);
	}
}

/* And the reverse. */
TEST(ib, ip_listener_and_native)
{
	union addr any4 = addr4("0.0.0.0", 7835), any6 = addr6("::", 7836), own = addr4(IB4, 7837);
	union addr dst, src;
	int f[3];

	need_ib();
	src = native("ib_a", SID_TCP, PKEY);
	dst = native("ib_a", SID_TCP | 7835, PKEY);
	f[0] = ib_listener(PS_TCP, &any4);
	f[1] = ib_listener(PS_TCP, &any6);
	f[2] = ib_listener(PS_TCP, &own);
	for (int i = 0; i < 3; i++) {
		dst.ib.sid = htobe64(SID_TCP | (7835 + i));
		CHECK_REJECTED(&dst, &src, PS_TCP, 28);
		CHECK(no_event(f[i], 20));
	}
}

TEST(ib, native_wildcard_listener)
{
	union addr any = addr_ib(SID_TCP, ~0xffffull), src;
	struct rdma_ucm_query_addr_resp server;
	struct pair p = { 0 };

	need_ib();
	src = native("ib_a", SID_TCP, PKEY);
	ib_listen(&p, &any);
	memcpy(p.addr.ib.gid, port_of("ib_b").gid, 16);
	p.addr.ib.pkey = htons(PKEY);
	ib_routed(&p, &src);
	ib_requested(&p);
	CHECK_REQUEST(&p, 92);
	REQUIRE_OK(query_addr(p.sfd, p.server, &server));
	CHECK_MEM(&p.addr, &server.src_addr, sizeof(p.addr.ib));
	CHECK_EQ(port_of("ib_b").guid, server.node_guid);
	ib_accepted(&p);
	ib_established(&p);
}

TEST(ib, ip_wildcard_listeners)
{
	union addr any4 = addr4("0.0.0.0", 0), any6 = addr6("::", 0);
	union addr dsts[] = { addr4(PEER4, 0), addr6(PEER6, 0), addr4(PEER4, 0) };

	need_ib();
	for (int i = 0; i < 3; i++) {
		struct rdma_ucm_query_addr_resp server, client;
		struct pair p = { 0 };

		ib_listen(&p, i == 0 ? &any4 : &any6);
		dsts[i].in.sin_port = htons(addr_port(&p.addr));
		p.addr = dsts[i];
		ib_routed(&p, NULL);
		ib_requested(&p);
		REQUIRE_OK(query_addr(p.sfd, p.server, &server));
		REQUIRE_OK(query_addr(p.cfd, p.client, &client));
		CHECK_MEM(&client.dst_addr, &server.src_addr, addr_size(&dsts[i]));
		CHECK_MEM(&client.src_addr, &server.dst_addr, addr_size(&dsts[i]));
		close(p.cfd);
		close(p.sfd);
	}
}

/* A request that claims to be from an IP address is treated as such: nobody can tell. */
TEST(ib, native_request_with_ip_header)
{
	union addr a = addr4(PEER4, 0), from = addr4(IB4, 1234), dst, src, want;
	struct rdma_ucm_query_addr_resp server;
	struct pair p = { 0 };
	uint8_t *data = p.cparam.private_data;

	need_ib();
	ib_listen(&p, &a);
	want = p.addr;
	src = native("ib_a", SID_TCP, PKEY);
	dst = native("ib_b", SID_TCP | addr_port(&p.addr), PKEY);
	p.addr = dst;
	ib_routed(&p, &src);
	fill_data(&p.cparam, 92);
	memset(data, 0, 36);
	data[1] = 0x40;
	memcpy(data + 2, &from.in.sin_port, 2);
	memcpy(data + 16, &from.in.sin_addr, 4);
	memcpy(data + 32, &want.in.sin_addr, 4);
	ib_requested(&p);
	CHECK_EQ(56, p.request.param.conn.private_data_len);
	CHECK_MEM(data + 36, p.request.param.conn.private_data, 56);
	REQUIRE_OK(query_addr(p.sfd, p.server, &server));
	CHECK_MEM(&want, &server.src_addr, sizeof(want.in));
	CHECK_MEM(&from, &server.dst_addr, sizeof(from.in));
}

/* Addresses of nobody here, or none at all, are refused. */
TEST(ib, native_request_with_wrong_header)
{
	static const struct { uint8_t family; int last; } cases[] = {
		{ 0x40, 99 }, { 0x60, 2 }, { 0x50, 2 }, { 0x04, 2 },
	};
	union addr a = addr4(PEER4, 0), from = addr4(IB4, 1234), src, to;

	need_ib();
	src = native("ib_a", SID_TCP, PKEY);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rdma_ucm_event_resp ev;
		struct pair p = { 0 };
		uint8_t *data = p.cparam.private_data;

		ib_listen(&p, &a);
		to = p.addr;
		p.addr = native("ib_b", SID_TCP | addr_port(&to), PKEY);
		ib_routed(&p, &src);
		p.cparam.private_data_len = 92;
		data[1] = cases[i].family;
		memcpy(data + 2, &from.in.sin_port, 2);
		memcpy(data + 16, &from.in.sin_addr, 4);
		memcpy(data + 32, &to.in.sin_addr, 4);
		data[35] = cases[i].last;
		REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
		NEED_EVENT(p.cfd, EV_REJECTED, &ev);
		CHECK_EQ(28, ev.status);
		CHECK(no_event(p.sfd, 10));
		close(p.cfd);
		close(p.sfd);
	}
}

/* The first byte is that of the version of a header, though there is none. */
TEST(ib, native_request_loses_a_byte)
{
	struct pair p = { 0 }, q = { .ps = PS_UDP };
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_TCP, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	ib_pair_routed(&p, &a, &src);
	fill_data(&p.cparam, 10);
	p.cparam.private_data[0] = 0x77;
	ib_requested(&p);
	p.cparam.private_data[0] = 0;
	CHECK_REQUEST(&p, 92);

	a = native("ib_b", SID_UDP, PKEY);
	src = native("ib_a", SID_UDP, PKEY);
	ib_pair_routed(&q, &a, &src);
	fill_data(&q.cparam, 1);
	q.cparam.private_data[0] = 0x77;
	ib_requested(&q);
	CHECK_EQ(0, q.request.param.ud.private_data[0]);
}
