// SPDX-License-Identifier: GPL-2.0
/*
 * Native InfiniBand addresses. A RoCE port has GIDs, and so a native address can be
 * resolved over it; but there is no route to one.
 */
#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id_type(f, PS_IB, QPT_RC, 0x77));
}

/* The GID of an IPv4 address as a native one. */
static union addr native(const char *ip, uint16_t pkey)
{
	union addr a = addr_ib(0x01060000 | 7650, ~0ull);
	union addr v4 = addr4(ip, 0);

	a.ib.pkey = htons(pkey);
	a.ib.gid[10] = a.ib.gid[11] = 0xff;
	memcpy(a.ib.gid + 12, &v4.in.sin_addr, 4);
	return a;
}

/* Resolved, and what is known then. */
static void resolved(int line, int f, uint32_t id, const union addr *dst, uint16_t pkey,
		     union addr *src)
{
	struct rdma_ucm_query_addr_resp addr, gid;
	struct rdma_ucm_query_route_resp route;
	uint8_t zeros[16] = { 0 };
	union addr got;

	need_event(__FILE__, line, f, EV_ADDR_RESOLVED, NULL);
	REQUIRE_OK(query_addr(f, id, &addr));
	check_eq(__FILE__, line, "sizes", 48 << 16 | 48, addr.src_size << 16 | addr.dst_size);
	check_eq(__FILE__, line, "port", 1, addr.port_num);
	check_eq(__FILE__, line, "pkey", pkey, ntohs(addr.pkey));
	memcpy(&got, &addr.dst_addr, sizeof(got));
	check_mem(__FILE__, line, "destination", &dst->ib, &got.ib, sizeof(got.ib));
	memcpy(src, &addr.src_addr, sizeof(*src));
	check_eq(__FILE__, line, "family", AF_IB, src->ib.family);
	REQUIRE_OK(query_gid(f, id, &gid));
	check_mem(__FILE__, line, "GIDs", &addr, &gid, sizeof(addr));
	REQUIRE_OK(query_route(f, id, &route));
	check_eq(__FILE__, line, "paths", 0, route.num_paths);
	check_mem(__FILE__, line, "dgid", zeros, route.ib_route[0].dgid, 16);
	check_mem(__FILE__, line, "sgid", zeros, route.ib_route[0].sgid, 16);
	check_eq(__FILE__, line, "pkey", 0xffff, ntohs(route.ib_route[0].pkey));
}
#define NEED_RESOLVED(f, id, dst, pkey, src) resolved(__LINE__, f, id, dst, pkey, src)

TEST(native, own_gid)
{
	struct rdma_ucm_conn_param param = conn_param();
	union addr dst = native(ADDR4, 0xffff), far = native(FAR4, 0xffff), src;
	/* The first device that has a GID of this subnet is taken, and each has one. */
	bool near_is_first = device_index("rxe0") < device_index("rxe1");
	struct ib_uverbs_qp_attr attr;
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE(device_index("rxe0") >= 0 && device_index("rxe1") >= 0);
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_RESOLVED(f, id, &dst, 0xffff, &src);
	CHECK_MEM(near_is_first ? dst.ib.gid : far.ib.gid, src.ib.gid, 16);
	CHECK_EQ(0xffff, ntohs(src.ib.pkey));
	CHECK(addr_port(&src) != 0);
	CHECK_OK(init_qp_attr(f, id, 1, &attr));
	/* Where does it lead? */
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
	CHECK_ERR(EINVAL, connect_id(f, id, &param));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &dst, 2000));
}

TEST(native, gid_of_the_same_subnet)
{
	union addr dst = native("10.0.0.99", 0xffff), src;
	uint8_t prefix[8] = { 0 };
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_RESOLVED(f, id, &dst, 0xffff, &src);
	CHECK_MEM(prefix, src.ib.gid, 8);
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
}

TEST(native, bound_before)
{
	union addr any = addr_ib(0x01060000, 0xffffffffffff0000);
	union addr dst = native(ADDR4, 0xffff), src;
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &any));
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_RESOLVED(f, id, &dst, 0, &src);
	CHECK_EQ(0x0106, be64toh(src.ib.sid) >> 16);
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
}

TEST(native, gid_of_nobody)
{
	union addr dst = native(ADDR4, 0xffff), src;
	int f = fd();
	uint32_t id = new_id(f);

	dst.ib.gid[0] = 0x77;
	CHECK_ERR(ENODEV, resolve_addr(f, id, NULL, &dst, 2000));
	CHECK_ERR(ENODEV, resolve_addr(f, id, NULL, &dst, 2000));
	CHECK(no_event(f, 50));
	/* The id is bound, and can be tried again. */
	dst.ib.gid[0] = 0;
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_RESOLVED(f, id, &dst, 0xffff, &src);
}

TEST(native, pkey)
{
	static const struct {
		uint16_t pkey;
		int err;
	} cases[] = {
		{ 0xffff, 0 }, { 0x7fff, 0 }, { 0, ENODEV }, { 0x8001, ENODEV }, { 0x1234, ENODEV },
	};
	int f = fd();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union addr dst = native(ADDR4, cases[i].pkey);
		uint32_t id = new_id(f);

		CHECK_ERR(cases[i].err, resolve_addr(f, id, NULL, &dst, 2000));
		if (!cases[i].err)
			NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	}
}

TEST(native, wildcard)
{
	union addr dst = addr_ib(0x01060000 | 7651, ~0ull);
	int f = fd();
	uint32_t id = new_id(f);

	/* The loopback address of native addresses. */
	NEED_ADDR(f, id, NULL, &dst);
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
}

TEST(native, families_do_not_mix)
{
	union addr dst = native(ADDR4, 0xffff), v4 = addr4(ADDR4, 7652);
	union addr any = addr_ib(0, 0);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &v4));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &dst, 2000));
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &any));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &v4, 2000));
}

TEST(native, own_source)
{
	union addr src = native(ADDR4, 0xffff), dst = native(ADDR4, 0xffff);
	int f = fd();

	CHECK_ERR(ENODEV, resolve_addr(f, new_id(f), &src, &dst, 2000));
	CHECK_ERR(ENODEV, bind_addr(f, new_id(f), &src));
}

TEST(native, datagram_id)
{
	union addr dst = native(ADDR4, 0xffff), src;
	struct ib_uverbs_qp_attr attr;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	dst.ib.sid = htobe64(0x01110000 | 7653);
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_RESOLVED(f, id, &dst, 0xffff, &src);
	CHECK_OK(init_qp_attr(f, id, 1, &attr));
	CHECK_EQ(0x01234567, attr.qkey);
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
}

/* A listener with a native wildcard hears requests from IP addresses, and cannot take them. */
static void listener(uint16_t space, uint8_t type, enum event event, int status)
{
	union addr any = addr_ib((uint64_t)space << 16, 0xffffffffffff0000), dst;
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_event_resp ev;
	int f = fd(), c = fd();
	uint32_t id = REQUIRE_ID(create_id_type(f, PS_IB, type, 1)), client;

	REQUIRE_OK(bind_addr(f, id, &any));
	REQUIRE_OK(listen_id(f, id, 0));
	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&any, &resp.src_addr, sizeof(any));
	dst = addr4(ADDR4, addr_port(&any));
	client = REQUIRE_ID(create_id_type(c, space, type, 1));
	route_id(c, client, &dst);
	REQUIRE_OK(connect_id(c, client, &param));
	NEED_EVENT(c, event, &ev);
	CHECK_EQ(status, ev.status);
	CHECK(no_event(f, 50));
}

TEST(native, connection_to_a_listener)
{
	listener(PS_TCP, QPT_RC, EV_REJECTED, 28);
}

TEST(native, question_to_a_listener)
{
	listener(PS_UDP, QPT_UD, EV_UNREACHABLE, 2);
}
