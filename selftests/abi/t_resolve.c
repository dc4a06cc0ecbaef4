// SPDX-License-Identifier: GPL-2.0
/* RESOLVE_ADDR, RESOLVE_IP and RESOLVE_ROUTE. */
#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 0x77));
}

static void address_resolved(const union addr *dst, bool ip_command)
{
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = new_id(f);
	union addr src;

	if (ip_command)
		REQUIRE_OK(resolve_ip(f, id, NULL, dst, 2000));
	else
		REQUIRE_OK(resolve_addr(f, id, NULL, dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, &ev);
	CHECK_EQ(0, ev.status);
	CHECK_EQ(id, ev.id);
	CHECK_EQ(0x77, ev.uid);
	/* Bound to a device, with the route's source and a port. */
	REQUIRE_OK(query_addr(f, id, &resp));
	CHECK_EQ(addr_size(dst), resp.src_size);
	CHECK_EQ(addr_size(dst), resp.dst_size);
	CHECK(resp.node_guid != 0);
	CHECK_EQ(1, resp.port_num);
	memcpy(&src, &resp.src_addr, sizeof(src));
	CHECK_EQ(dst->sa.sa_family, src.sa.sa_family);
	CHECK(addr_port(&src) != 0);
	CHECK_MEM(dst, &resp.dst_addr, addr_size(dst));
}

TEST(resolve, own_address)
{
	union addr dst = addr4(ADDR4, 7471);

	address_resolved(&dst, false);
	address_resolved(&dst, true);
}

TEST(resolve, own_address_ipv6)
{
	union addr dst = global6(7471);

	address_resolved(&dst, false);
	address_resolved(&dst, true);
}

TEST(resolve, own_linklocal_address)
{
	union addr dst = linklocal6(7471);

	address_resolved(&dst, false);
}

/* Resolved without asking the network: at the first device, and with the P_Key of its port. */
TEST(resolve, wildcard_and_loopback_addresses)
{
	const struct {
		union addr dst, src;
		uint16_t ps;
	} cases[] = {
		{ addr4("0.0.0.0", 7471), addr4("127.0.0.1", 0), PS_TCP },
		{ addr4("127.0.0.1", 7471), addr4("127.0.0.1", 0), PS_TCP },
		{ addr6("::", 7471), addr6("::1", 0), PS_TCP },
		{ addr6("::1", 7471), addr6("::1", 0), PS_TCP },
		{ addr4("127.0.0.1", 7471), addr4("127.0.0.1", 0), PS_UDP },
		{ addr_ib(0x01060000 | 7471, ~0ull), addr_ib(0, 0), PS_IB },
	};
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_query_route_resp route;
	struct sockaddr_ib gid;
	union addr src;
	int f = fd();

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool native = cases[i].dst.sa.sa_family == AF_IB;
		uint32_t id = REQUIRE_ID(create_id(f, cases[i].ps, 0x77));

		NEED_ADDR(f, id, NULL, &cases[i].dst);
		REQUIRE_OK(query_addr(f, id, &resp));
		CHECK(resp.node_guid != 0);
		CHECK_EQ(1, resp.port_num);
		CHECK_EQ(0xffff, ntohs(resp.pkey));
		CHECK_EQ(addr_size(&cases[i].dst), resp.src_size);
		CHECK_MEM(&cases[i].dst, &resp.dst_addr, addr_size(&cases[i].dst));
		memcpy(&src, &resp.src_addr, sizeof(src));
		CHECK(addr_port(&src) != 0);
		if (native) {
			src.ib.sid = 0;
			src.ib.sid_mask = 0;
		} else {
			src.in.sin_port = 0;
		}
		if (native)
			CHECK_MEM(addr6("::1", 0).in6.sin6_addr.s6_addr, src.ib.gid, 16);
		else
			CHECK_MEM(&cases[i].src, &src, addr_size(&src));

		REQUIRE_OK(query_gid(f, id, &resp));
		CHECK_EQ(0xffff, ntohs(resp.pkey));
		memcpy(&gid, &resp.src_addr, sizeof(gid));
		CHECK_EQ(native ? 0 : 0xffff, ntohs(gid.pkey));
		REQUIRE_OK(query_route(f, id, &route));
		CHECK_EQ(0, route.num_paths);
	}
}

TEST(resolve, peer_address)
{
	union addr dst = addr4("10.0.0.2", 7471);
	union addr dst6 = addr6(FAR6, 7471);

	address_resolved(&dst, false);
	address_resolved(&dst6, false);
}

TEST(resolve, with_source)
{
	union addr src = addr4(ADDR4, 0), dst = addr4("10.0.0.2", 7471), got;
	struct rdma_ucm_query_addr_resp resp;
	int f = fd();
	uint32_t id = new_id(f);

	NEED_ADDR(f, id, &src, &dst);
	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&got, &resp.src_addr, sizeof(got));
	CHECK_EQ(src.in.sin_addr.s_addr, got.in.sin_addr.s_addr);
	CHECK(got.in.sin_port != 0);
}

TEST(resolve, with_source_port)
{
	union addr src = addr4(ADDR4, 7620), dst = addr4("10.0.0.2", 7471), got;
	struct rdma_ucm_query_addr_resp resp;
	int f = fd();
	uint32_t id = new_id(f);

	NEED_ADDR(f, id, &src, &dst);
	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&got, &resp.src_addr, sizeof(got));
	CHECK_EQ(7620, addr_port(&got));
	/* That is a bind: nobody else gets the port. */
	CHECK_ERR(EADDRINUSE, bind4(f, new_id(f), ADDR4, 7620));
}

TEST(resolve, from_wildcard_source)
{
	union addr src = addr4("0.0.0.0", 7621), dst = addr4("10.0.0.2", 7471), got;
	struct rdma_ucm_query_addr_resp resp;
	int f = fd();
	uint32_t id = new_id(f);

	NEED_ADDR(f, id, &src, &dst);
	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&got, &resp.src_addr, sizeof(got));
	CHECK_EQ(inet_addr(ADDR4), got.in.sin_addr.s_addr);
	CHECK_EQ(7621, addr_port(&got));
}

TEST(resolve, bound_id)
{
	union addr dst = addr4("10.0.0.2", 7471);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	NEED_ADDR(f, id, NULL, &dst);
}

TEST(resolve, source_not_local)
{
	union addr src = addr4("192.0.2.1", 0), dst = addr4("10.0.0.2", 7471);
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_ERR(EADDRNOTAVAIL, resolve_addr(f, id, &src, &dst, 2000));
	CHECK_OK(bind4(f, id, ADDR4, 0));
}

TEST(resolve, families_differ)
{
	union addr src = addr4(ADDR4, 0), dst = global6(7471);
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_ERR(EINVAL, resolve_addr(f, id, &src, &dst, 2000));
	CHECK(no_event(f, 100));
	/* Its source stays bound: the right family works. */
	dst = addr4("10.0.0.2", 7471);
	CHECK_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
}

static long resolve_sized(int f, uint32_t id, const union addr *src, uint16_t src_size,
			  const union addr *dst, uint16_t dst_size, uint32_t reserved)
{
	struct rdma_ucm_resolve_addr req = {
		.id = id, .timeout_ms = 1000, .src_size = src_size, .dst_size = dst_size,
		.reserved = reserved,
	};

	memcpy(&req.src_addr, src, sizeof(*src));
	memcpy(&req.dst_addr, dst, sizeof(*dst));
	return cm_cmd(f, RDMA_USER_CM_CMD_RESOLVE_ADDR, &req, sizeof(req), 0);
}

TEST(resolve, exact_sizes)
{
	union addr a = addr4(ADDR4, 7471), none = { 0 };
	int f = fd();
	uint32_t id = new_id(f);

	for (int size = 0; size < 200; size++) {
		if (size != 16)
			CHECK_ERR(EINVAL, resolve_sized(f, id, &none, 0, &a, size, 0));
		if (size != 16 && size != 0)
			CHECK_ERR(EINVAL, resolve_sized(f, id, &a, size, &a, 16, 0));
	}
	CHECK_ERR(EINVAL, resolve_sized(f, id, &none, 0, &a, 16, 1));
	CHECK_ERR(EINVAL, resolve_sized(f, id, &none, 0, &a, 16, 0x80000000));
	/* Before the id is looked up. */
	CHECK_ERR(EINVAL, resolve_sized(f, 0xffffffff, &none, 0, &a, 15, 0));
	CHECK_OK(resolve_sized(f, id, &none, 0, &a, 16, 0));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
}

TEST(resolve, bad_families)
{
	union addr a = addr4(ADDR4, 7471), bad = { 0 };
	int f = fd();
	uint32_t id = new_id(f);

	for (int family = 0; family < 50; family++) {
		if (family == AF_INET || family == AF_INET6)
			continue;
		bad.sa.sa_family = family;
		CHECK_ERR(EINVAL, resolve_ip(f, id, NULL, &bad, 1000));
		if (family)
			CHECK_ERR(EINVAL, resolve_ip(f, id, &bad, &a, 1000));
		if (family != AF_IB)
			CHECK_ERR(EINVAL, resolve_sized(f, id, &a, 16, &bad, 16, 0));
	}
	CHECK_OK(resolve_ip(f, id, NULL, &a, 1000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
}

TEST(resolve, no_route_to_network)
{
	union addr dst = addr4("192.0.2.1", 7471), dst6 = addr6("2001:db8::1", 7471);
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_ERR(ENETUNREACH, resolve_addr(f, id, NULL, &dst, 1000));
	/* An ephemeral port was bound on the way, and stays. */
	CHECK_ERR(EINVAL, bind4(f, id, ADDR4, 0));
	CHECK_ERR(ENETUNREACH, resolve_addr(f, id, NULL, &dst, 1000));
	dst = addr4("10.0.0.2", 7471);
	CHECK_OK(resolve_addr(f, id, NULL, &dst, 1000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	CHECK_ERR(ENETUNREACH, resolve_addr(f, new_id(f), NULL, &dst6, 1000));
}

TEST(resolve, silent_neighbour)
{
	union addr dst = absent4(7471);
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = new_id(f);

	for (int i = 0; i < 2; i++) {
		REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 100));
		NEED_EVENT(f, EV_ADDR_ERROR, &ev);
		CHECK_EQ(-ETIMEDOUT, (int)ev.status);
		CHECK_EQ(id, ev.id);
		CHECK_EQ(0x77, ev.uid);
	}
	/* It can be used for another address. */
	dst = addr4("10.0.0.2", 7471);
	NEED_ADDR(f, id, NULL, &dst);
}

TEST(resolve, silent_neighbour_timeout_zero)
{
	union addr dst = absent4(7471);
	struct rdma_ucm_event_resp ev;
	int f = fd();

	REQUIRE_OK(resolve_addr(f, new_id(f), NULL, &dst, 0));
	NEED_EVENT(f, EV_ADDR_ERROR, &ev);
	CHECK_EQ(-ETIMEDOUT, (int)ev.status);
}

TEST(resolve, own_address_timeout_zero)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();

	REQUIRE_OK(resolve_addr(f, new_id(f), NULL, &dst, 0));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
}

TEST(resolve, destroy_while_resolving)
{
	union addr dst = absent4(7471);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 100000));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
	CHECK(no_event(f, 200));
}

/*
 * An id that ends just when its neighbour answers, and then one whose neighbour
 * never does: nobody hears of either.
 */
TEST_LIMIT(resolve, destroy_when_the_neighbour_answers, 120)
{
	union addr dst = addr4("10.0.0.2", 7471), absent = absent4(7471);
	int f = fd();

	for (int round = 0; round < 20; round++) {
		uint32_t first = new_id(f), second = new_id(f);

		REQUIRE_EQ(0, system("ip neigh flush dev v0"));
		REQUIRE_OK(resolve_addr(f, first, NULL, &dst, 1000));
		usleep(round * 500);
		REQUIRE_ID(destroy_id(f, first));
		REQUIRE_OK(resolve_addr(f, second, NULL, &absent, 1000));
		CHECK_EQ(0, REQUIRE_ID(destroy_id(f, second)));
	}
	/* An event of the first id is destroyed with it. */
	CHECK(no_event(f, 2000));
}

TEST(resolve, close_while_resolving)
{
	union addr dst = absent4(7471);
	int f = fd();

	for (int i = 0; i < 20; i++)
		REQUIRE_OK(resolve_addr(f, new_id(f), NULL, &dst, 100000));
	close(f);
}

TEST(resolve, while_resolving)
{
	union addr dst = absent4(7471);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 1000));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &dst, 1000));
	CHECK_ERR(EINVAL, listen_id(f, id, 0));
	CHECK_ERR(EINVAL, bind4(f, id, ADDR4, 0));
	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
}

TEST(resolve, address_twice)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = new_id(f);

	NEED_ADDR(f, id, NULL, &dst);
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &dst, 2000));
	CHECK_ERR(EINVAL, resolve_ip(f, id, NULL, &dst, 2000));
	/* It is still resolved. */
	CHECK_OK(resolve_route(f, id, 2000));
}

TEST(resolve, listening_id)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &dst, 2000));
}

TEST(resolve, datagram_id)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	route_id(f, id, &dst);
}

/* --- routes --- */

TEST(route, resolved)
{
	union addr dst = addr4(ADDR4, 7471);
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = new_id(f);

	NEED_ADDR(f, id, NULL, &dst);
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, &ev);
	CHECK_EQ(0, ev.status);
	CHECK_EQ(id, ev.id);
	CHECK_EQ(0x77, ev.uid);
}

TEST(route, timeout_zero)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = new_id(f);

	NEED_ADDR(f, id, NULL, &dst);
	CHECK_ERR(EINVAL, resolve_route(f, id, 0));
	CHECK_OK(resolve_route(f, id, 1));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
}

TEST(route, twice)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = routed_client(f, 1, &dst);

	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
}

TEST(route, without_address)
{
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
}

TEST(route, loopback_address)
{
	union addr dst = addr4("127.0.0.1", 7471);
	int f = fd();
	uint32_t id = new_id(f);

	/* An address without a network interface: nothing for RoCE to send on. */
	NEED_ADDR(f, id, NULL, &dst);
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
}
