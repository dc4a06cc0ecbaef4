// SPDX-License-Identifier: GPL-2.0
/* Connections over InfiniBand, and datagram services. */
#include "ib.h"

/* enum ib_qp_attr_mask */
#define INIT_MASK (1 << 0 | 1 << 3 | 1 << 4 | 1 << 5)
#define RTR_MASK (1 << 0 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15)
#define RTS_MASK (1 << 0 | 1 << 16 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 9)

static struct ib_uverbs_qp_attr get(int f, uint32_t id, uint32_t state)
{
	struct ib_uverbs_qp_attr attr;

	REQUIRE_OK(init_qp_attr(f, id, state, &attr));
	CHECK_EQ(state, attr.qp_state);
	return attr;
}

/* The way to a port. */
static struct ib_uverbs_ah_attr way_to(const char *device)
{
	return (struct ib_uverbs_ah_attr){
		.dlid = port_of(device).lid, .static_rate = 16, .port_num = 1,
	};
}

static void fill(struct rdma_ucm_conn_param *param, uint8_t len)
{
	/* What begins with anything else could be a header of addresses. */
	for (int i = 0; i < 256; i++)
		param->private_data[i] = i >= len ? 0xdd : i < 2 ? 0 : 0x40 + i;
	param->private_data_len = len;
}

static void check_request(int line, const struct pair *p, uint8_t len)
{
	struct rdma_ucm_event_resp want = {
		.uid = p->listener_uid, .id = p->request.id, .event = EV_CONNECT_REQUEST,
	};
	struct rdma_ucm_conn_param *param = &want.param.conn;

	param->qp_num = p->cparam.qp_num;
	memcpy(param->private_data, p->cparam.private_data, p->cparam.private_data_len);
	param->private_data_len = len;
	param->responder_resources = p->cparam.initiator_depth;
	param->initiator_depth = p->cparam.responder_resources;
	param->flow_control = p->cparam.flow_control;
	param->retry_count = p->cparam.retry_count;
	param->rnr_retry_count = p->cparam.rnr_retry_count;
	param->srq = p->cparam.srq;
	check_mem(__FILE__, line, "request", &want, &p->request, sizeof(want));
}

/* The path that the server has learned from the request. */
static struct record servers_path(uint64_t sid, uint16_t pkey)
{
	struct record r = record_of("ib_b", "ib_a", sid, pkey);

	r.r[49] = 0x80;
	/* Of the client's acknowledgement timeout. */
	r.r[56] = 0x80 | 15;
	return r;
}

static void connection(const union addr *a, const union addr *src, uint16_t pkey, int index)
{
	struct rdma_ucm_query_addr_resp client, server;
	bool native = a->sa.sa_family == AF_IB;
	struct pair p = { .listener_uid = 0x1122334455667788 };
	struct ib_uverbs_ah_attr to_a, to_b;
	struct ib_uverbs_qp_attr c, s;
	struct record path;
	uint64_t sid;

	to_a = way_to("ib_a");
	to_b = way_to("ib_b");
	ib_pair_routed(&p, a, src);
	sid = SID_TCP | addr_port(&p.addr);
	p.cparam.responder_resources = 5;
	p.cparam.initiator_depth = 3;
	p.cparam.retry_count = 6;
	p.cparam.rnr_retry_count = 2;
	p.cparam.srq = 1;
	fill(&p.cparam, 20);
	ib_requested(&p);
	check_request(__LINE__, &p, native ? 92 : 56);

	/* Its addresses. */
	REQUIRE_OK(query_addr(p.cfd, p.client, &client));
	REQUIRE_OK(query_addr(p.sfd, p.server, &server));
	CHECK_EQ(port_of("ib_b").guid, server.node_guid);
	CHECK_EQ(1, server.port_num);
	CHECK_EQ(pkey, ntohs(server.pkey));
	if (native) {
		union addr want = p.addr;

		want.ib.scope_id = 0;
		want.ib.flowinfo = 0;
		CHECK_MEM(&want, &server.src_addr, sizeof(want.ib));
		/* Not of which service the client is. */
		memcpy(&want, &client.src_addr, sizeof(want));
		want.ib.sid = want.ib.sid_mask = want.ib.flowinfo = want.ib.scope_id = 0;
		CHECK_MEM(&want, &server.dst_addr, sizeof(want.ib));
	} else {
		CHECK_MEM(&client.dst_addr, &server.src_addr, addr_size(a));
		CHECK_MEM(&client.src_addr, &server.dst_addr, addr_size(a));
	}
	path = servers_path(sid, pkey);
	CHECK_PATH(p.sfd, p.server, &path);
	path = record_of("ib_a", "ib_b", sid, pkey);
	CHECK_PATH(p.cfd, p.client, &path);

	c = get(p.cfd, p.client, INIT);
	s = get(p.sfd, p.server, INIT);
	CHECK_EQ(INIT_MASK, c.qp_attr_mask);
	CHECK_EQ(INIT_MASK, s.qp_attr_mask);
	CHECK_EQ(index, c.pkey_index);
	CHECK_EQ(index, s.pkey_index);
	CHECK_EQ(1, c.port_num);
	CHECK_EQ(1, s.port_num);
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, RTR, &c));

	fill(&p.sparam, 196);
	ib_accepted(&p);
	CHECK_EQ(196, p.response.param.conn.private_data_len);
	CHECK_MEM(p.sparam.private_data, p.response.param.conn.private_data, 196);
	c = get(p.cfd, p.client, RTR);
	s = get(p.sfd, p.server, RTR);
	CHECK_EQ(RTR_MASK, c.qp_attr_mask);
	CHECK_EQ(RTR_MASK, s.qp_attr_mask);
	CHECK_EQ(5, c.path_mtu);
	CHECK_EQ(5, s.path_mtu);
	CHECK_EQ(p.sparam.qp_num, c.dest_qp_num);
	CHECK_EQ(p.cparam.qp_num, s.dest_qp_num);
	CHECK_MEM(&to_b, &c.ah_attr, sizeof(to_b));
	CHECK_MEM(&to_a, &s.ah_attr, sizeof(to_a));
	ib_established(&p);
	c = get(p.cfd, p.client, RTS);
	s = get(p.sfd, p.server, RTS);
	CHECK_EQ(RTS_MASK, c.qp_attr_mask);
	CHECK_EQ(RTS_MASK, s.qp_attr_mask);
	CHECK_EQ(16, c.timeout);
	CHECK_EQ(16, s.timeout);
	CHECK_EQ(6, c.retry_cnt);
	CHECK_EQ(get(p.cfd, p.client, RTR).rq_psn, s.sq_psn);
	CHECK_EQ(get(p.sfd, p.server, RTR).rq_psn, c.sq_psn);

	CHECK_ERR(EISCONN, notify_id(p.cfd, p.client, 4));
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_PLAIN(p.sfd, EV_DISCONNECTED, p.server, p.server_uid, 0);
	REQUIRE_OK(disconnect_id(p.sfd, p.server));
	NEED_PLAIN(p.cfd, EV_DISCONNECTED, p.client, p.client_uid, 0);
	NEED_PLAIN(p.cfd, EV_TIMEWAIT_EXIT, p.client, p.client_uid, 0);
	NEED_PLAIN(p.sfd, EV_TIMEWAIT_EXIT, p.server, p.server_uid, 0);
}

TEST(ib, connection_ipv4)
{
	union addr a = addr4(PEER4, 0);

	need_ib();
	connection(&a, NULL, PKEY, 0);
}

TEST(ib, connection_ipv6)
{
	union addr a = addr6(PEER6, 0);

	need_ib();
	connection(&a, NULL, PKEY, 0);
}

TEST(ib, connection_native)
{
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_TCP, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	connection(&a, &src, PKEY, 0);
}

TEST(ib, connection_native_p_key)
{
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_TCP, OTHER_PKEY);
	src = native("ib_a", SID_TCP, OTHER_PKEY);
	connection(&a, &src, OTHER_PKEY, 1);
}

TEST(ib, connection_to_itself)
{
	union addr a = addr4(IB4, 0);
	struct ib_uverbs_ah_attr way;
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };

	need_ib();
	way = way_to("ib_a");
	pair_established(&p, &a);
	attr = get(p.cfd, p.client, RTR);
	CHECK_MEM(&way, &attr.ah_attr, sizeof(way));
	attr = get(p.sfd, p.server, RTR);
	CHECK_MEM(&way, &attr.ah_attr, sizeof(way));
}

/* A path to another subnet has a global route header. */
static void global(const union addr *a, const union addr *src, int hops)
{
	struct ib_uverbs_ah_attr to_a, to_b;
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	struct record path;
	uint64_t sid;

	to_a = way_to("ib_a");
	to_b = way_to("ib_b");
	need_ib();
	ib_listen(&p, a);
	sa("hop-limit %d", hops);
	ib_routed(&p, src);
	ib_requested(&p);
	ib_accepted(&p);
	ib_established(&p);
	sid = SID_TCP | addr_port(&p.addr);
	path = record_of("ib_a", "ib_b", sid, PKEY);
	path.r[47] = hops;
	CHECK_PATH(p.cfd, p.client, &path);
	/* The server knows neither how many there are left nor, beyond a subnet, its own LID. */
	path = servers_path(sid, PKEY);
	path.r[47] = 255;
	if (hops > 1)
		path.r[43] = 0;
	CHECK_PATH(p.sfd, p.server, &path);
	to_a.is_global = to_b.is_global = 1;
	to_a.grh.hop_limit = 255;
	to_b.grh.hop_limit = hops;
	memcpy(to_a.grh.dgid, port_of("ib_a").gid, 16);
	memcpy(to_b.grh.dgid, port_of("ib_b").gid, 16);
	attr = get(p.cfd, p.client, RTR);
	CHECK_MEM(&to_b, &attr.ah_attr, sizeof(to_b));
	attr = get(p.sfd, p.server, RTR);
	CHECK_MEM(&to_a, &attr.ah_attr, sizeof(to_a));
	sa("%s", "");
}

TEST(ib, global_route)
{
	union addr a = addr4(PEER4, 0);

	need_ib();
	global(&a, NULL, 64);
}

TEST(ib, global_route_of_one_hop)
{
	union addr a = addr6(PEER6, 0);

	need_ib();
	global(&a, NULL, 1);
}

TEST(ib, global_route_native)
{
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_TCP, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	global(&a, &src, 255);
}

TEST(ib, service_level)
{
	union addr a = addr4(PEER4, 0);
	struct ib_uverbs_ah_attr way;
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	struct record r;

	need_ib();
	ib_listen(&p, &a);
	ib_resolved(&p, NULL);
	r = record_of("ib_a", "ib_b", 0, PKEY);
	r.r[53] |= 5;
	r.r[54] = 0x80 | 2;
	r.r[55] = 0x80 | 3;
	REQUIRE_OK(set_path(p.cfd, p.client, &r));
	NEED_EVENT(p.cfd, EV_ROUTE_RESOLVED, NULL);
	ib_requested(&p);
	ib_accepted(&p);
	attr = get(p.cfd, p.client, RTR);
	way = way_to("ib_b");
	way.sl = 5;
	way.static_rate = 3;
	CHECK_MEM(&way, &attr.ah_attr, sizeof(way));
	CHECK_EQ(2, attr.path_mtu);
	attr = get(p.sfd, p.server, RTR);
	way = way_to("ib_a");
	way.sl = 5;
	way.static_rate = 3;
	CHECK_MEM(&way, &attr.ah_attr, sizeof(way));
	CHECK_EQ(2, attr.path_mtu);
	ib_established(&p);
}

/* Nobody has this LID; nobody waits for an answer either. */
TEST(ib, request_to_nobody_is_destroyed)
{
	union addr dst = addr4(PEER4, 7830);
	struct rdma_ucm_conn_param param = conn_param();
	struct record r;
	int f;

	need_ib();
	r = record_of("ib_a", "ib_b", 0, PKEY);
	r.r[41] = 99;
	f = fd();
	for (int i = 0; i < 3; i++) {
		uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

		REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
		NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
		REQUIRE_OK(set_path(f, id, &r));
		NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
		REQUIRE_OK(connect_id(f, id, &param));
		CHECK(no_event(f, 20 * i));
		CHECK_EQ(2, REQUIRE_ID(destroy_id(f, id)));
	}
}

static void private_data(const union addr *a, const union addr *src, int most)
{
	struct pair p = { 0 };
	struct rdma_ucm_event_resp ev;

	ib_pair_routed(&p, a, src);
	for (int len = most + 1; len < 256; len++) {
		p.cparam.private_data_len = len;
		CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	}
	CHECK(no_event(p.sfd, 20));
	fill(&p.cparam, most);
	ib_requested(&p);
	check_request(__LINE__, &p, most);
	p.sparam.private_data_len = 149;
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, p.sparam.private_data, 149, 0));
	fill(&p.sparam, 148);
	REQUIRE_OK(reject_id(p.sfd, p.server, p.sparam.private_data, 148, 0));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
	CHECK_EQ(148, ev.param.conn.private_data_len);
	CHECK_MEM(p.sparam.private_data, ev.param.conn.private_data, 148);
	CHECK_EQ(0, ev.param.conn.private_data[148]);
}

TEST(ib, private_data_of_ip)
{
	union addr a = addr4(PEER4, 0);

	need_ib();
	private_data(&a, NULL, 56);
}

TEST(ib, private_data_native)
{
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_TCP, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	private_data(&a, &src, 92);
}

/* Who has asked, and gets this answer. */
static void rejected(int line, const union addr *dst, const union addr *src, uint16_t ps, int reason)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, ps, 0x55));

	REQUIRE_OK(resolve_addr(f, id, src, dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
	REQUIRE_OK(connect_id(f, id, &param));
	need_event(__FILE__, line, f, ps == PS_UDP ? EV_UNREACHABLE : EV_REJECTED, &ev);
	check_eq(__FILE__, line, "reason", reason, ev.status);
	close(f);
}
#define REJECTED(dst, src, ps, reason) rejected(__LINE__, dst, src, ps, reason)

TEST(ib, nobody_listens)
{
	union addr v4 = addr4(PEER4, 7831), v6 = addr6(PEER6, 7831), gid, src;

	need_ib();
	gid = native("ib_b", SID_TCP | 7831, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	REJECTED(&v4, NULL, PS_TCP, 8);
	REJECTED(&v6, NULL, PS_TCP, 8);
	REJECTED(&gid, &src, PS_TCP, 8);
	REJECTED(&v4, NULL, PS_UDP, 1);
	gid.ib.sid = htobe64(SID_UDP | 7831);
	src.ib.sid = htobe64(SID_UDP);
	REJECTED(&gid, &src, PS_UDP, 1);
}

/* A listener, and who may ask it. */
static int listener(uint16_t ps, const union addr *a)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, ps, 1));

	REQUIRE_OK(bind_addr(f, id, a));
	REQUIRE_OK(listen_id(f, id, 0));
	return f;
}

TEST(ib, listener_at_one_port)
{
	union addr a, dst, src;
	int f;

	need_ib();
	a = native("ib_a", SID_TCP | 7832, PKEY);
	dst = native("ib_b", SID_TCP | 7832, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	f = listener(PS_TCP, &a);
	REJECTED(&dst, &src, PS_TCP, 8);
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
	f = listener(PS_TCP, &any);
	REJECTED(&v4, NULL, PS_TCP, 28);
	c = fd();
	for (int i = 0; i < 2; i++) {
		struct rdma_ucm_conn_param param = conn_param();

		id = routed_client(c, 1, i ? &at_gid : &own);
		g = i ? listener(PS_TCP, &a) : f;
		fill(&param, 56);
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
	f[0] = listener(PS_TCP, &any4);
	f[1] = listener(PS_TCP, &any6);
	f[2] = listener(PS_TCP, &own);
	for (int i = 0; i < 3; i++) {
		dst.ib.sid = htobe64(SID_TCP | (7835 + i));
		REJECTED(&dst, &src, PS_TCP, 28);
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
	check_request(__LINE__, &p, 92);
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

/* What says that it is from an IP address is taken for such: nobody can tell. */
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
	fill(&p.cparam, 92);
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
	fill(&p.cparam, 10);
	p.cparam.private_data[0] = 0x77;
	ib_requested(&p);
	p.cparam.private_data[0] = 0;
	check_request(__LINE__, &p, 92);

	a = native("ib_b", SID_UDP, PKEY);
	src = native("ib_a", SID_UDP, PKEY);
	ib_pair_routed(&q, &a, &src);
	fill(&q.cparam, 1);
	q.cparam.private_data[0] = 0x77;
	ib_requested(&q);
	CHECK_EQ(0, q.request.param.ud.private_data[0]);
}

TEST(ib, established_by_notice)
{
	union addr a = addr4(PEER4, 0);
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };

	ib_pair_routed(&p, &a, NULL);
	ib_requested(&p);
	CHECK_ERR(EINVAL, notify_id(p.sfd, p.server, 4));
	ib_accepted(&p);
	/* Something has come, so the peer is ready. */
	REQUIRE_OK(notify_id(p.sfd, p.server, 4));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(p.server, ev.id);
	CHECK_EQ(p.server_uid, ev.uid);
	CHECK_ERR(EISCONN, notify_id(p.sfd, p.server, 4));
	CHECK_ERR(EINVAL, notify_id(p.sfd, p.server, 5));
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	CHECK(no_event(p.sfd, 100));
}

TEST(ib, server_goes)
{
	union addr a = addr4(PEER4, 0);
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };

	ib_pair_established(&p, &a, NULL);
	close(p.sfd);
	NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, ev.status);
}

TEST(ib, request_is_destroyed)
{
	union addr a = addr4(PEER4, 0);
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };

	ib_pair_routed(&p, &a, NULL);
	ib_requested(&p);
	REQUIRE_ID(destroy_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}

/* --- datagram services --- */

static void datagrams(const union addr *a, const union addr *src, uint16_t ps, uint32_t qkey, int most)
{
	struct rdma_ucm_event_resp want = { .event = EV_ESTABLISHED }, ev;
	struct rdma_ucm_ud_param ud = { .private_data_len = 136, .qkey = qkey };
	struct rdma_ucm_query_addr_resp client, server;
	struct pair p = { .ps = ps };

	ib_pair_routed(&p, a, src);
	p.cparam.private_data_len = most + 1;
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	fill(&p.cparam, most);
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
	fill(&p.sparam, 136);
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	want.id = p.client;
	want.uid = p.client_uid;
	ud.qp_num = p.sparam.qp_num;
	ud.ah_attr = way_to("ib_b");
	memcpy(ud.private_data, p.sparam.private_data, 136);
	memcpy(&want.param, &ud, sizeof(ud));
	CHECK_MEM(&want, &ev, sizeof(ev));
	CHECK_EQ(qkey, get(p.cfd, p.client, INIT).qkey);
	CHECK_EQ(qkey, get(p.sfd, p.server, RTS).qkey);
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

/* Where there is no port space that says it, the server says its Q_Key. */
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
		CHECK_EQ(QKEY, get(p.cfd, p.client, INIT).qkey);
	ib_requested(&p);
	p.sparam.qkey = 0x7777;
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	if (client_has_one) {
		NEED_EVENT(p.cfd, EV_ADDR_ERROR, &ev);
		CHECK_EQ((uint32_t)-EINVAL, ev.status);
	} else {
		NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
		CHECK_EQ(0x7777, ud->qkey);
		/* Who asks for the attributes has the usual one again. */
		CHECK_EQ(QKEY, get(p.cfd, p.client, INIT).qkey);
	}
	CHECK_EQ(QKEY, get(p.sfd, p.server, INIT).qkey);
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
	fill(&p.sparam, 136);
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, p.sparam.private_data, 137, 0));
	REQUIRE_OK(reject_id(p.sfd, p.server, p.sparam.private_data, 136, 0));
	NEED_EVENT(p.cfd, EV_UNREACHABLE, &ev);
	CHECK_EQ(2, ev.status);
	CHECK_MEM(p.sparam.private_data, ev.param.ud.private_data, 136);

	/* The question of a native address does not say to which GID it is. */
	f = listener(PS_UDP, &any);
	src = native("ib_a", SID_UDP, PKEY);
	dst = native("ib_b", SID_UDP | 7840, PKEY);
	REJECTED(&dst, &src, PS_UDP, 2);
	CHECK(no_event(f, 20));
}
