// SPDX-License-Identifier: GPL-2.0
/* InfiniBand: resolving addresses. */
#include "ib.h"

static const uint8_t none[16];

static void resolved(const union addr *src, const union addr *dst, const char *own, const char *peer)
{
	struct rdma_ucm_query_addr_resp addr;
	uint32_t id;
	int f;

	f = fd();
	id = ib_id(f);
	REQUIRE_OK(resolve_addr(f, id, src, dst, 2000));
	NEED_PLAIN(f, EV_ADDR_RESOLVED, id, 0x77, 0);
	CHECK_PORT(f, id, own, port_of(peer).gid, SID_TCP | bound_port(f, id), SID_TCP | addr_port(dst));
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(addr_size(dst), addr.dst_size);
	CHECK_MEM(dst, &addr.dst_addr, addr_size(dst));
	CHECK_ERR(EINVAL, resolve_addr(f, id, src, dst, 2000));
	CHECK_ERR(EINVAL, listen_id(f, id, 0));
	CHECK_ERR(EINVAL, resolve_service(f, id, 1, "", BY_ID));
	CHECK(no_event(f, 20));
}

TEST(ib, resolved_ipv4)
{
	union addr dst = addr4(PEER4, 7471), src = addr4(IB4, 0);

	need_ib();
	resolved(NULL, &dst, "ib_a", "ib_b");
	resolved(&src, &dst, "ib_a", "ib_b");
}

TEST(ib, resolved_ipv6)
{
	union addr dst = addr6(PEER6, 7471), src = addr6(IB6, 0);

	need_ib();
	resolved(NULL, &dst, "ib_a", "ib_b");
	resolved(&src, &dst, "ib_a", "ib_b");
}

TEST(ib, resolved_own_address)
{
	union addr dst = addr4(IB4, 7471), dst6 = addr6(IB6, 7471);

	need_ib();
	resolved(NULL, &dst, "ib_a", "ib_a");
	resolved(NULL, &dst6, "ib_a", "ib_a");
}

TEST(ib, resolved_in_the_namespace)
{
	union addr dst = addr4(IB4, 7471);

	need_ib();
	in_peer();
	resolved(NULL, &dst, "ib_b", "ib_a");
	at_home();
}

TEST(ib, resolved_absent)
{
	union addr dst = addr4("10.78.0.77", 7471), there = addr4(PEER4, 7471);
	struct port port;
	uint32_t id;
	int f;

	need_ib();
	port = port_of("ib_a");
	f = fd();
	id = ib_id(f);
	REQUIRE_OK(bind4(f, id, IB4, 0));
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 300));
	CHECK_REFUSED(f, id);
	NEED_PLAIN(f, EV_ADDR_ERROR, id, 0x77, -ETIMEDOUT);
	CHECK_ENDS(f, id, port.gid, none, PKEY);
	NEED_ADDR(f, id, NULL, &there);
	CHECK_ENDS(f, id, port.gid, port_of("ib_b").gid, PKEY);
}

/*
 * Without an address of its own it is the first device that is ready, which is one of RoCE; with one it is
 * that port itself. Nobody answers to such an address.
 */
TEST(ib, loopback_addresses)
{
	union addr dsts[] = { addr4("127.0.0.1", 7802), addr6("::1", 7802) };
	union addr srcs[] = { addr4(IB4, 0), addr6(IB6, 0) };
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_event_resp ev;
	struct record want;
	struct port port, roce;
	int f;

	need_ib();
	port = port_of("ib_a");
	roce = port_of("rxe0");
	f = fd();
	for (int i = 0; i < 2; i++) {
		uint32_t id = ib_id(f);

		NEED_ADDR(f, id, NULL, &dsts[i]);
		REQUIRE_OK(query_addr(f, id, &addr));
		CHECK_EQ(roce.guid, addr.node_guid);
		CHECK_ERR(ENODEV, resolve_route(f, id, 1000));

		id = ib_id(f);
		NEED_ADDR(f, id, &srcs[i], &dsts[i]);
		CHECK_PORT(f, id, "ib_a", port.gid, SID_TCP | bound_port(f, id), SID_TCP | 7802);
		REQUIRE_OK(query_addr(f, id, &addr));
		CHECK_MEM(&dsts[i], &addr.dst_addr, addr_size(&dsts[i]));
		NEED_ROUTE(f, id);
		want = record_of("ib_a", "ib_a", SID_TCP | 7802, PKEY);
		CHECK_PATH(f, id, &want);
		REQUIRE_OK(connect_id(f, id, &param));
		NEED_EVENT(f, EV_REJECTED, &ev);
		CHECK_EQ(8, ev.status);
	}
}

static union addr resolved_native(int line, int f, uint32_t id, const union addr *src,
				  const union addr *dst, const char *own, uint16_t pkey)
{
	struct rdma_ucm_query_addr_resp addr, gid;
	struct port port = port_of(own);
	union addr got;

	REQUIRE_OK(resolve_addr(f, id, src, dst, 2000));
	need_plain(__FILE__, line, f, EV_ADDR_RESOLVED, id, 0x77, 0);
	REQUIRE_OK(query_addr(f, id, &addr));
	REQUIRE_OK(query_gid(f, id, &gid));
	check_mem(__FILE__, line, "GIDs", &addr, &gid, sizeof(addr));
	check_eq(__FILE__, line, "guid", port.guid, addr.node_guid);
	check_eq(__FILE__, line, "pkey", pkey, ntohs(addr.pkey));
	check_mem(__FILE__, line, "destination", dst, &addr.dst_addr, sizeof(dst->ib));
	memcpy(&got, &addr.src_addr, sizeof(got));
	check_mem(__FILE__, line, "gid", port.gid, got.ib.gid, 16);
	check_ends(__FILE__, line, f, id, port.gid, dst->ib.gid, pkey);
	return got;
}

TEST(ib, resolved_native)
{
	union addr src, dst, got;
	struct record want;
	uint32_t id;
	int f;

	need_ib();
	src = native("ib_a", SID_TCP, PKEY);
	dst = native("ib_b", SID_TCP | 7803, PKEY);
	dst.ib.flowinfo = htonl(0x777);
	dst.ib.scope_id = 99;
	f = fd();
	id = ib_id(f);
	got = resolved_native(__LINE__, f, id, &src, &dst, "ib_a", PKEY);
	CHECK_EQ(~0ull, got.ib.sid_mask);
	CHECK_EQ(SID_TCP >> 16, be64toh(got.ib.sid) >> 16);
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	want = record_of("ib_a", "ib_b", SID_TCP | 7803, PKEY);
	CHECK_PATH(f, id, &want);
}

/* Only ports of InfiniBand have this P_Key: the first of them is the source. */
TEST(ib, resolved_native_without_source)
{
	union addr dst, got;
	struct record want;
	uint32_t id;
	int f;

	need_ib();
	dst = native("ib_b", SID_TCP | 7804, OTHER_PKEY);
	f = fd();
	id = ib_id(f);
	got = resolved_native(__LINE__, f, id, NULL, &dst, "ib_a", OTHER_PKEY);
	CHECK_EQ(OTHER_PKEY, ntohs(got.ib.pkey));
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	want = record_of("ib_a", "ib_b", SID_TCP | 7804, OTHER_PKEY);
	CHECK_PATH(f, id, &want);

	/* A port of RoCE is as good as one of InfiniBand, but leads nowhere. */
	dst.ib.pkey = htons(PKEY);
	id = ib_id(f);
	NEED_ADDR(f, id, NULL, &dst);
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
}

TEST(ib, resolved_native_of_nobody)
{
	union addr dst, src;
	uint32_t id;
	int f;

	need_ib();
	dst = native("ib_b", SID_TCP | 7805, OTHER_PKEY);
	dst.ib.gid[0] = 0x20;
	f = fd();
	id = ib_id(f);
	CHECK_ERR(ENODEV, resolve_addr(f, id, NULL, &dst, 2000));
	dst.ib.pkey = htons(0x8002);
	CHECK_ERR(ENODEV, resolve_addr(f, ib_id(f), NULL, &dst, 2000));
	/* With a source of its own it is resolved, and the administrator knows no path. */
	src = native("ib_a", SID_TCP, PKEY);
	id = ib_id(f);
	NEED_ADDR(f, id, &src, &dst);
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_PLAIN(f, EV_ROUTE_ERROR, id, 0x77, -EINVAL);
	CHECK_ENDS(f, id, src.ib.gid, dst.ib.gid, PKEY);
}

TEST(ib, families_do_not_mix)
{
	union addr v4 = addr4(PEER4, 7806), v6 = addr6(PEER6, 7806), own = addr4(IB4, 0);
	union addr gid, peer;
	uint32_t id;
	int f;

	need_ib();
	gid = native("ib_a", SID_TCP, PKEY);
	peer = native("ib_b", SID_TCP | 7806, PKEY);
	f = fd();
	id = ib_id(f);
	REQUIRE_OK(bind_addr(f, id, &own));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &peer, 1000));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &v6, 1000));
	REQUIRE_OK(resolve_addr(f, id, NULL, &v4, 1000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	id = ib_id(f);
	REQUIRE_OK(bind_addr(f, id, &gid));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &v4, 1000));
	REQUIRE_OK(resolve_addr(f, id, NULL, &peer, 1000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	id = ib_id(f);
	CHECK_ERR(EINVAL, resolve_addr(f, id, &gid, &v4, 1000));
}
