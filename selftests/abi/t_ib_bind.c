// SPDX-License-Identifier: GPL-2.0
/* InfiniBand: binding, by IP address and by GID. */
#include <net/if.h>

#include "ib.h"

static const uint8_t none[16];

static void bound_ip(const union addr *a)
{
	struct ib_uverbs_qp_attr attr;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	id = ib_id(f);
	REQUIRE_OK(bind_addr(f, id, a));
	CHECK_PORT(f, id, "ib_a", none, SID_TCP | bound_port(f, id), SID_TCP);
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
	id = ib_id(f);
	CHECK_ERR(EINVAL, bind_addr(f, id, &a));
	a.in6.sin6_scope_id = if_nametoindex(ipoib_of("ib_a"));
	REQUIRE_OK(bind_addr(f, id, &a));
	CHECK_PORT(f, id, "ib_a", none, SID_TCP | bound_port(f, id), SID_TCP);
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
	CHECK_PORT(f, id, "ib_a", none, 0x20000 | bound_port(f, id), 0x20000);
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
		/* The destination has only the family. */
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
		uint32_t id = ib_id(f);

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
	id = ib_id(f);
	a = native("ib_a", SID_TCP, PKEY);
	a.ib.gid[15] ^= 0x40;
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
	/* A GID of a RoCE port is not one of InfiniBand. */
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
	id = ib_id(f);
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
	REQUIRE_OK(bind_addr(f, ib_id(f), &v4));
	CHECK_ERR(EADDRINUSE, bind_addr(f, ib_id(f), &v4));
	/* The address has another family, and so is another address. */
	CHECK_OK(bind_addr(f, ib_id(f), &gid));
	CHECK_ERR(EADDRINUSE, bind_addr(f, ib_id(f), &gid));
	gid = native("ib_b", SID_TCP | 7801, PKEY);
	CHECK_OK(bind_addr(f, ib_id(f), &gid));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, ib_id(f), &any));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, ib_id(f), &any_ib));
	v4 = addr4(ADDR4, 7801);
	CHECK_OK(bind_addr(f, ib_id(f), &v4));
}
