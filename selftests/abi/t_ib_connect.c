// SPDX-License-Identifier: GPL-2.0
/* Connections over InfiniBand. */
#include "ib.h"

/* enum ib_qp_attr_mask */
#define INIT_MASK (1 << 0 | 1 << 3 | 1 << 4 | 1 << 5)
#define RTR_MASK (1 << 0 | 1 << 7 | 1 << 8 | 1 << 20 | 1 << 12 | 1 << 17 | 1 << 15)
#define RTS_MASK (1 << 0 | 1 << 16 | 1 << 10 | 1 << 11 | 1 << 13 | 1 << 9)

/* The path that the server has learned from the request. */
static struct record servers_path(uint64_t sid, uint16_t pkey)
{
	struct record r = record_of("ib_b", "ib_a", sid, pkey);

	r.r[49] = 0x80;
	/* The client's acknowledgement timeout. */
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
	fill_data(&p.cparam, 20);
	ib_requested(&p);
	CHECK_REQUEST(&p, native ? 92 : 56);

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

	c = qp_attr(p.cfd, p.client, INIT);
	s = qp_attr(p.sfd, p.server, INIT);
	CHECK_EQ(INIT_MASK, c.qp_attr_mask);
	CHECK_EQ(INIT_MASK, s.qp_attr_mask);
	CHECK_EQ(index, c.pkey_index);
	CHECK_EQ(index, s.pkey_index);
	CHECK_EQ(1, c.port_num);
	CHECK_EQ(1, s.port_num);
	CHECK_ERR(EINVAL, init_qp_attr(p.cfd, p.client, RTR, &c));

	fill_data(&p.sparam, 196);
	ib_accepted(&p);
	CHECK_EQ(196, p.response.param.conn.private_data_len);
	CHECK_MEM(p.sparam.private_data, p.response.param.conn.private_data, 196);
	c = qp_attr(p.cfd, p.client, RTR);
	s = qp_attr(p.sfd, p.server, RTR);
	CHECK_EQ(RTR_MASK, c.qp_attr_mask);
	CHECK_EQ(RTR_MASK, s.qp_attr_mask);
	CHECK_EQ(5, c.path_mtu);
	CHECK_EQ(5, s.path_mtu);
	CHECK_EQ(p.sparam.qp_num, c.dest_qp_num);
	CHECK_EQ(p.cparam.qp_num, s.dest_qp_num);
	CHECK_MEM(&to_b, &c.ah_attr, sizeof(to_b));
	CHECK_MEM(&to_a, &s.ah_attr, sizeof(to_a));
	ib_established(&p);
	c = qp_attr(p.cfd, p.client, RTS);
	s = qp_attr(p.sfd, p.server, RTS);
	CHECK_EQ(RTS_MASK, c.qp_attr_mask);
	CHECK_EQ(RTS_MASK, s.qp_attr_mask);
	CHECK_EQ(16, c.timeout);
	CHECK_EQ(16, s.timeout);
	CHECK_EQ(6, c.retry_cnt);
	CHECK_EQ(qp_attr(p.cfd, p.client, RTR).rq_psn, s.sq_psn);
	CHECK_EQ(qp_attr(p.sfd, p.server, RTR).rq_psn, c.sq_psn);

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
	attr = qp_attr(p.cfd, p.client, RTR);
	CHECK_MEM(&way, &attr.ah_attr, sizeof(way));
	attr = qp_attr(p.sfd, p.server, RTR);
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
	attr = qp_attr(p.cfd, p.client, RTR);
	CHECK_MEM(&to_b, &attr.ah_attr, sizeof(to_b));
	attr = qp_attr(p.sfd, p.server, RTR);
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
	attr = qp_attr(p.cfd, p.client, RTR);
	way = way_to("ib_b");
	way.sl = 5;
	way.static_rate = 3;
	CHECK_MEM(&way, &attr.ah_attr, sizeof(way));
	CHECK_EQ(2, attr.path_mtu);
	attr = qp_attr(p.sfd, p.server, RTR);
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

		NEED_ADDR(f, id, NULL, &dst);
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
	fill_data(&p.cparam, most);
	ib_requested(&p);
	CHECK_REQUEST(&p, most);
	p.sparam.private_data_len = 149;
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, p.sparam.private_data, 149, 0));
	fill_data(&p.sparam, 148);
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
