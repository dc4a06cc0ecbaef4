// SPDX-License-Identifier: GPL-2.0
/* InfiniBand: binding, and resolving addresses. */
#include <net/if.h>

#include "ib.h"

static const uint8_t none[16];

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 0x77));
}

/* The device is that, and the ends are as QUERY has them for an address of IP. */
static void at_port(int line, int f, uint32_t id, const char *device, const uint8_t *dgid,
		    uint64_t sid, uint64_t dsid)
{
	struct rdma_ucm_query_addr_resp addr, gid, want = {
		.port_num = 1, .pkey = htons(PKEY), .src_size = 48, .dst_size = 48,
	};
	struct sockaddr_ib ib = { .family = AF_IB, .pkey = htons(PKEY) };
	struct port port = port_of(device);

	want.node_guid = port.guid;
	REQUIRE_OK(query_addr(f, id, &addr));
	check_eq(__FILE__, line, "port", 1, addr.port_num);
	check_eq(__FILE__, line, "pkey", PKEY, ntohs(addr.pkey));
	check_eq(__FILE__, line, "guid", port.guid, addr.node_guid);
	REQUIRE_OK(query_gid(f, id, &gid));
	/* Every byte; which number the device has is its own business. */
	want.ibdev_index = addr.ibdev_index;
	memcpy(ib.gid, port.gid, 16);
	ib.sid = htobe64(sid);
	memcpy(&want.src_addr, &ib, sizeof(ib));
	memcpy(ib.gid, dgid, 16);
	ib.sid = htobe64(dsid);
	memcpy(&want.dst_addr, &ib, sizeof(ib));
	check_mem(__FILE__, line, "GIDs", &want, &gid, sizeof(want));
	check_ends(__FILE__, line, f, id, port.gid, dgid, PKEY);
}
#define AT_PORT(f, id, device, dgid, sid, dsid) at_port(__LINE__, f, id, device, dgid, sid, dsid)

static uint16_t port_number(int f, uint32_t id)
{
	struct rdma_ucm_query_addr_resp addr;
	union addr a;

	REQUIRE_OK(query_addr(f, id, &addr));
	memcpy(&a, &addr.src_addr, sizeof(a));
	return addr_port(&a);
}

/* --- binding --- */

static void bound_ip(const union addr *a)
{
	struct ib_uverbs_qp_attr attr;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, a));
	AT_PORT(f, id, "ib_a", none, SID_TCP | port_number(f, id), SID_TCP);
	for (int state = RESET; state <= ERR; state++) {
		REQUIRE_OK(init_qp_attr(f, id, state, &attr));
		CHECK_EQ(1 << 0 | 1 << 3 | 1 << 4 | 1 << 5, attr.qp_attr_mask);
		CHECK_EQ(0, attr.pkey_index);
		CHECK_EQ(1, attr.port_num);
		CHECK_EQ(0, attr.qp_access_flags);
	}
}

TEST(ib, bound_ipv4)
{
	union addr a = addr4(IB4, 0);

	bound_ip(&a);
}

TEST(ib, bound_ipv6)
{
	union addr a = addr6(IB6, 0);

	bound_ip(&a);
}

TEST(ib, bound_link_local)
{
	union addr a = addr6("fe80::", 0);
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	memcpy((uint8_t *)&a.in6.sin6_addr + 8, port_of("ib_a").gid + 8, 8);
	/* As IPv6 has it for IPoIB. */
	((uint8_t *)&a.in6.sin6_addr)[8] ^= 2;
	id = new_id(f);
	CHECK_ERR(EINVAL, bind_addr(f, id, &a));
	a.in6.sin6_scope_id = if_nametoindex(ipoib_of("ib_a"));
	REQUIRE_OK(bind_addr(f, id, &a));
	AT_PORT(f, id, "ib_a", none, SID_TCP | port_number(f, id), SID_TCP);
}

/* The kind of interface has to be that of the port space. */
TEST(ib, bound_for_ipoib)
{
	struct ib_uverbs_qp_attr attr;
	union addr any = addr4("0.0.0.0", 0);
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_IPOIB, 1));
	CHECK_ERR(EINVAL, bind4(f, id, ADDR4, 0));
	id = REQUIRE_ID(create_id(f, PS_IPOIB, 0x77));
	REQUIRE_OK(bind4(f, id, IB4, 0));
	AT_PORT(f, id, "ib_a", none, 0x20000 | port_number(f, id), 0x20000);
	REQUIRE_OK(init_qp_attr(f, id, INIT, &attr));
	CHECK_EQ(IPOIB_QKEY, attr.qkey);
	CHECK_EQ(1 << 0 | 1 << 4 | 1 << 5 | 1 << 6, attr.qp_attr_mask);
	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	REQUIRE_OK(bind4(f, id, IB4, 0));
	REQUIRE_OK(init_qp_attr(f, id, INIT, &attr));
	CHECK_EQ(QKEY, attr.qkey);
	id = REQUIRE_ID(create_id(f, PS_IPOIB, 1));
	REQUIRE_OK(bind_addr(f, id, &any));
	CHECK_ERR(EINVAL, init_qp_attr(f, id, INIT, &attr));
}

TEST(ib, bound_gid)
{
	static const struct { uint16_t ps; uint64_t sid; } spaces[] = {
		{ PS_IB, SID_IB }, { PS_IB, SID_TCP }, { PS_IB, SID_UDP }, { PS_TCP, SID_TCP },
		{ PS_UDP, SID_UDP },
	};
	struct rdma_ucm_query_addr_resp addr, gid;
	struct port port;
	union addr got;
	int f;

	need_ib();
	port = port_of("ib_a");
	f = fd();
	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
		uint32_t id = REQUIRE_ID(create_id_type(f, spaces[i].ps, QPT_RC, 1));
		union addr a = native("ib_a", spaces[i].sid, PKEY);

		a.ib.flowinfo = htonl(0x12345);
		a.ib.scope_id = 0x1122334455667788;
		REQUIRE_OK(bind_addr(f, id, &a));
		REQUIRE_OK(query_addr(f, id, &addr));
		REQUIRE_OK(query_gid(f, id, &gid));
		CHECK_EQ(1, addr.port_num);
		CHECK_EQ(port.guid, addr.node_guid);
		CHECK_EQ(PKEY, ntohs(addr.pkey));
		memcpy(&got, &addr.src_addr, sizeof(got));
		CHECK(addr_port(&got) != 0);
		a.ib.sid = htobe64(spaces[i].sid | addr_port(&got));
		a.ib.sid_mask = ~0ull;
		CHECK_MEM(&a, &addr.src_addr, sizeof(a.ib));
		/* Of the destination there is the family. */
		a = (union addr){ .ib.family = AF_IB };
		CHECK_MEM(&a, &addr.dst_addr, sizeof(a.ib));
		CHECK_MEM(&addr, &gid, sizeof(addr));
		CHECK_ENDS(f, id, port.gid, none, PKEY);
	}
}

TEST(ib, bound_gid_p_keys)
{
	static const struct { uint16_t pkey; int err, index; } cases[] = {
		{ PKEY, 0, 0 }, { 0x7fff, 0, 0 }, { OTHER_PKEY, 0, 1 }, { 1, 0, 1 },
		{ 0, ENOENT, 0 }, { 0x1234, ENOENT, 0 },
	};
	struct ib_uverbs_qp_attr attr;
	int f;

	need_ib();
	f = fd();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union addr a = native("ib_a", SID_TCP, cases[i].pkey);
		struct rdma_ucm_query_addr_resp addr;
		uint32_t id = new_id(f);

		/* Nobody looks before it is used. */
		REQUIRE_OK(bind_addr(f, id, &a));
		REQUIRE_OK(query_addr(f, id, &addr));
		CHECK_EQ(cases[i].pkey, ntohs(addr.pkey));
		CHECK_ENDS(f, id, a.ib.gid, none, cases[i].pkey);
		CHECK_ERR(cases[i].err, init_qp_attr(f, id, INIT, &attr));
		if (!cases[i].err)
			CHECK_EQ(cases[i].index, attr.pkey_index);
	}
}

TEST(ib, bound_gid_of_nobody)
{
	struct rdma_ucm_query_addr_resp addr;
	union addr a;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = new_id(f);
	a = native("ib_a", SID_TCP, PKEY);
	a.ib.gid[15] ^= 0x40;
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
	/* That of a RoCE port is none of InfiniBand. */
	a = native("rxe0", SID_TCP, PKEY);
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(0, addr.port_num);
	/* The service has to be of the port space. */
	a = native("ib_a", SID_UDP, PKEY);
	CHECK_ERR(EPROTONOSUPPORT, bind_addr(f, id, &a));
	a = native("ib_a", SID_TCP, PKEY);
	REQUIRE_OK(bind_addr(f, id, &a));
}

TEST(ib, bound_gid_of_any)
{
	struct rdma_ucm_query_addr_resp addr;
	union addr any = addr_ib(SID_TCP, ~0xffffull);
	struct ib_uverbs_qp_attr attr;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &any));
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(0, addr.port_num);
	CHECK_EQ(0, addr.node_guid);
	CHECK_ERR(EINVAL, init_qp_attr(f, id, INIT, &attr));
	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
}

/* Both devices have the first prefix, and one port space. */
TEST(ib, ports_of_addresses)
{
	union addr gid, v4 = addr4(IB4, 7801), any = addr4("0.0.0.0", 7801);
	union addr any_ib = addr_ib(SID_TCP | 7801, ~0ull);
	int f;

	need_ib();
	f = fd();
	gid = native("ib_a", SID_TCP | 7801, PKEY);
	REQUIRE_OK(bind_addr(f, new_id(f), &v4));
	CHECK_ERR(EADDRINUSE, bind_addr(f, new_id(f), &v4));
	/* Of another family, and so another address. */
	CHECK_OK(bind_addr(f, new_id(f), &gid));
	CHECK_ERR(EADDRINUSE, bind_addr(f, new_id(f), &gid));
	gid = native("ib_b", SID_TCP | 7801, PKEY);
	CHECK_OK(bind_addr(f, new_id(f), &gid));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, new_id(f), &any));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, new_id(f), &any_ib));
	v4 = addr4(ADDR4, 7801);
	CHECK_OK(bind_addr(f, new_id(f), &v4));
}

/* --- resolving --- */

static void resolved(const union addr *src, const union addr *dst, const char *own, const char *peer)
{
	struct rdma_ucm_query_addr_resp addr;
	uint32_t id;
	int f;

	f = fd();
	id = new_id(f);
	REQUIRE_OK(resolve_addr(f, id, src, dst, 2000));
	NEED_PLAIN(f, EV_ADDR_RESOLVED, id, 0x77, 0);
	AT_PORT(f, id, own, port_of(peer).gid, SID_TCP | port_number(f, id), SID_TCP | addr_port(dst));
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
	id = new_id(f);
	REQUIRE_OK(bind4(f, id, IB4, 0));
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 300));
	CHECK_REFUSED(f, id);
	NEED_PLAIN(f, EV_ADDR_ERROR, id, 0x77, -ETIMEDOUT);
	CHECK_ENDS(f, id, port.gid, none, PKEY);
	REQUIRE_OK(resolve_addr(f, id, NULL, &there, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
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
		uint32_t id = new_id(f);

		REQUIRE_OK(resolve_addr(f, id, NULL, &dsts[i], 2000));
		NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
		REQUIRE_OK(query_addr(f, id, &addr));
		CHECK_EQ(roce.guid, addr.node_guid);
		CHECK_ERR(ENODEV, resolve_route(f, id, 1000));

		id = new_id(f);
		REQUIRE_OK(resolve_addr(f, id, &srcs[i], &dsts[i], 2000));
		NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
		AT_PORT(f, id, "ib_a", port.gid, SID_TCP | port_number(f, id), SID_TCP | 7802);
		REQUIRE_OK(query_addr(f, id, &addr));
		CHECK_MEM(&dsts[i], &addr.dst_addr, addr_size(&dsts[i]));
		REQUIRE_OK(resolve_route(f, id, 2000));
		NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
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
	id = new_id(f);
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
	id = new_id(f);
	got = resolved_native(__LINE__, f, id, NULL, &dst, "ib_a", OTHER_PKEY);
	CHECK_EQ(OTHER_PKEY, ntohs(got.ib.pkey));
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	want = record_of("ib_a", "ib_b", SID_TCP | 7804, OTHER_PKEY);
	CHECK_PATH(f, id, &want);

	/* A port of RoCE is as good as one of InfiniBand, but leads nowhere. */
	dst.ib.pkey = htons(PKEY);
	id = new_id(f);
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
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
	id = new_id(f);
	CHECK_ERR(ENODEV, resolve_addr(f, id, NULL, &dst, 2000));
	dst.ib.pkey = htons(0x8002);
	CHECK_ERR(ENODEV, resolve_addr(f, new_id(f), NULL, &dst, 2000));
	/* With a source of its own it is resolved, and the administrator knows no path. */
	src = native("ib_a", SID_TCP, PKEY);
	id = new_id(f);
	REQUIRE_OK(resolve_addr(f, id, &src, &dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
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
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &own));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &peer, 1000));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &v6, 1000));
	REQUIRE_OK(resolve_addr(f, id, NULL, &v4, 1000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &gid));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &v4, 1000));
	REQUIRE_OK(resolve_addr(f, id, NULL, &peer, 1000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	id = new_id(f);
	CHECK_ERR(EINVAL, resolve_addr(f, id, &gid, &v4, 1000));
}

/* --- routes --- */

static uint32_t resolved_id(int f, const union addr *src, const union addr *dst)
{
	uint32_t id = new_id(f);

	REQUIRE_OK(resolve_addr(f, id, src, dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
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

/* What the administrator is asked for it answers. */
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
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
	want = record_of("ib_a", "ib_b", SID_TCP | 7808, PKEY);
	want.r[52] = tos >> 4, want.r[53] = tos << 4;
	CHECK_PATH(f, id, &want);

	/* The flow label of an IPv6 address has the class before it; the option does not matter. */
	src.in6.sin6_flowinfo = htonl(0x05512345);
	id = resolved_id(f, &src, &dst6);
	REQUIRE_OK(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
	want = record_of("ib_a", "ib_b", SID_TCP | 7808, PKEY);
	want.r[48] = 0x55;
	CHECK_PATH(f, id, &want);

	src = native("ib_a", SID_TCP, PKEY);
	src.ib.flowinfo = htonl(0x0aa00000);
	dst = native("ib_b", SID_TCP | 7808, PKEY);
	id = resolved_id(f, &src, &dst);
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
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
	AT_PORT(f, id, "ib_a", peer.gid, SID_TCP | port_number(f, id), SID_TCP | 7811);
	CHECK_OK(init_qp_attr(f, id, RTR, &attr));
	CHECK_EQ(1 << 0 | 1 << 3 | 1 << 4 | 1 << 5, attr.qp_attr_mask);
	CHECK_OK(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	CHECK_ERR(ENODATA, query(f, id, 3, answer, 8));
	CHECK_EQ(1, REQUIRE_ID(migrate_id(other, id, f)));
	NEED_PLAIN(other, EV_ROUTE_RESOLVED, id, 0x77, 0);
	CHECK(no_event(f, 0));
}

/* Whoever asked need not be there for the answer. */
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

/* --- paths that the program has found --- */

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

	/* That of the path is used. Nobody listens. */
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
