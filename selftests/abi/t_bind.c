// SPDX-License-Identifier: GPL-2.0
/* BIND and BIND_IP: addresses, and who may have which port. */
#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 1));
}

static long bind_sized(int f, uint32_t id, const union addr *a, uint16_t size, uint16_t reserved)
{
	struct rdma_ucm_bind req = { .id = id, .addr_size = size, .reserved = reserved };

	memcpy(&req.addr, a, sizeof(*a));
	return cm_cmd(f, RDMA_USER_CM_CMD_BIND, &req, sizeof(req), 0);
}

TEST(bind, all_families)
{
	int f = fd();
	union addr v4 = addr4(ADDR4, 0), v6 = global6(0);

	CHECK_OK(bind_addr(f, new_id(f), &v4));
	CHECK_OK(bind_addr(f, new_id(f), &v6));
	v4 = addr4("0.0.0.0", 0);
	v6 = addr6("::", 0);
	CHECK_OK(bind_addr(f, new_id(f), &v4));
	CHECK_OK(bind_addr(f, new_id(f), &v6));
}

TEST(bind, ip_families)
{
	int f = fd();
	union addr v4 = addr4(ADDR4, 0), v6 = global6(0), bad = { 0 };

	CHECK_OK(bind_ip(f, new_id(f), &v4));
	CHECK_OK(bind_ip(f, new_id(f), &v6));
	for (int family = 0; family < 64; family++) {
		if (family == AF_INET || family == AF_INET6)
			continue;
		bad.sa.sa_family = family;
		CHECK_ERR(EINVAL, bind_ip(f, 0, &bad));
	}
	bad.sa.sa_family = 0xffff;
	CHECK_ERR(EINVAL, bind_ip(f, 0, &bad));
}

TEST(bind, unknown_families)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr bad = { 0 };

	for (int family = 0; family < 64; family++) {
		if (family == AF_INET || family == AF_INET6 || family == AF_IB)
			continue;
		bad.sa.sa_family = family;
		for (int size = 0; size <= 128; size += 4)
			CHECK_ERR(EINVAL, bind_sized(f, id, &bad, size, 0));
	}
	CHECK_OK(bind4(f, id, ADDR4, 0));
}

TEST(bind, exact_size)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr a[3] = {
		addr4(ADDR4, 0), addr6("::", 0),
		addr_ib(0x01060000, 0xffffffffffff0000),
	};

	for (int i = 0; i < 3; i++)
		for (unsigned int size = 0; size < 200; size++)
			if (size != addr_size(&a[i]))
				CHECK_ERR(EINVAL, bind_sized(f, id, &a[i], size, 0));
	CHECK_OK(bind_sized(f, id, &a[0], 16, 0));
}

TEST(bind, reserved)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr a = addr4(ADDR4, 0);

	CHECK_ERR(EINVAL, bind_sized(f, id, &a, 16, 1));
	CHECK_ERR(EINVAL, bind_sized(f, id, &a, 16, 0x8000));
	/* Even before the id is looked up. */
	CHECK_ERR(EINVAL, bind_sized(f, 0xffffffff, &a, 16, 1));
	CHECK_ERR(EINVAL, bind_sized(f, 0xffffffff, &a, 15, 0));
	CHECK_OK(bind_sized(f, id, &a, 16, 0));
}

TEST(bind, twice)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr a = addr4(ADDR4, 0);

	CHECK_OK(bind_addr(f, id, &a));
	CHECK_ERR(EINVAL, bind_addr(f, id, &a));
	CHECK_ERR(EINVAL, bind_ip(f, id, &a));
}

TEST(bind, not_local)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr v6 = addr6("2001:db8::1", 0);

	CHECK_ERR(EADDRNOTAVAIL, bind4(f, id, "192.0.2.1", 0));
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, id, "10.0.0.250", 0));
	/* In network 0 only one address is the wildcard. */
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, id, "0.0.0.1", 0));
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, id, "0.255.255.255", 0));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, id, &v6));
	/* Nothing was kept. */
	CHECK_OK(bind4(f, id, ADDR4, 0));
}

TEST(bind, address_without_rdma)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr v6 = addr6("fd77::1", 0);
	long got;

	REQUIRE_EQ(0, system("ip addr add 10.77.0.1/32 dev lo; ip addr add fd77::1/128 dev lo nodad"));
	got = bind4(f, id, "10.77.0.1", 0);
	CHECK_ERR(ENODEV, got);
	got = bind_addr(f, id, &v6);
	CHECK_ERR(ENODEV, got);
	CHECK_EQ(0, system("ip addr del 10.77.0.1/32 dev lo; ip addr del fd77::1/128 dev lo"));
	CHECK_OK(bind4(f, id, ADDR4, 0));
}

TEST(bind, linklocal_needs_scope)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr a = linklocal6(0), b = a;

	b.in6.sin6_scope_id = 0;
	CHECK_ERR(EINVAL, bind_addr(f, id, &b));
	CHECK_OK(bind_addr(f, id, &a));
}

TEST(bind, linklocal_of_no_interface)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr a = linklocal6(0);

	a.in6.sin6_scope_id = 9999;
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
}

TEST(bind, loopback_is_wildcard)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr v6 = addr6("::1", 0);

	CHECK_OK(bind4(f, id, "127.0.0.1", 7600));
	/* Any other address is taken with it. */
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, new_id(f), ADDR4, 7600));
	CHECK_OK(bind4(f, new_id(f), "127.1.2.3", 0));
	CHECK_OK(bind_addr(f, new_id(f), &v6));
}

TEST(bind, reserved_ports_need_capability)
{
	int f = fd();

	CHECK_OK(bind4(f, new_id(f), ADDR4, 1023));
	CHECK_OK(bind4(f, new_id(f), ADDR4, 1));
	REQUIRE_EQ(0, setuid(65534));
	f = fd();
	CHECK_ERR(EACCES, bind4(f, new_id(f), ADDR4, 1022));
	CHECK_ERR(EACCES, bind4(f, new_id(f), "0.0.0.0", 2));
	CHECK_OK(bind4(f, new_id(f), ADDR4, 1024));
	/* Nobody can tell from the answer that root has it. */
	CHECK_ERR(EACCES, bind4(f, new_id(f), ADDR4, 1023));
}

/* --- conflicts --- */

struct owner {
	union addr addr;
	int reuse, afonly;	/* -1: not set */
};

static uint32_t id_with(int f, const struct owner *o)
{
	uint32_t id = new_id(f);

	if (o->reuse != -1)
		REQUIRE_OK(set_option(f, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR,
				      &o->reuse, 4));
	if (o->afonly != -1)
		REQUIRE_OK(set_option(f, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
				      &o->afonly, 4));
	return id;
}

static void conflict(int line, const char *what, int want, struct owner first, struct owner second)
{
	int f = fd();
	uint32_t a = id_with(f, &first), b = id_with(f, &second);

	REQUIRE_OK(bind_addr(f, a, &first.addr));
	check_err(__FILE__, line, what, want, bind_addr(f, b, &second.addr));
	/* Free again when the owner is gone. */
	REQUIRE_OK(destroy_id(f, a));
	if (want)
		CHECK_OK(bind_addr(f, b, &second.addr));
	close(f);
}

#define OWNER(a, r, o) ((struct owner){ a, r, o })
#define CONFLICT(want, first, second) \
	conflict(__LINE__, #first " then " #second, want, OWNER first, OWNER second)

TEST(bind, conflicts_of_ipv4)
{
	union addr a = addr4(ADDR4, 7601), any = addr4("0.0.0.0", 7601);
	union addr other = addr4(ADDR4, 7602);

	CONFLICT(EADDRINUSE, (a, -1, -1), (a, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any, -1, -1), (a, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (a, -1, -1), (any, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any, -1, -1), (any, -1, -1));
	CONFLICT(0, (a, -1, -1), (other, -1, -1));
}

TEST(bind, conflicts_with_reuseaddr)
{
	union addr a = addr4(ADDR4, 7603), any = addr4("0.0.0.0", 7603);

	CONFLICT(0, (a, 1, -1), (a, 1, -1));
	CONFLICT(0, (any, 1, -1), (a, 1, -1));
	CONFLICT(0, (a, 1, -1), (any, 1, -1));
	CONFLICT(EADDRINUSE, (a, 1, -1), (a, 0, -1));
	CONFLICT(EADDRINUSE, (a, 0, -1), (a, 1, -1));
	CONFLICT(EADDRNOTAVAIL, (any, -1, -1), (a, 1, -1));
	CONFLICT(0, (a, 77, -1), (a, -3, -1));
}

TEST(bind, conflicts_of_families)
{
	union addr a = addr4(ADDR4, 7604), any4 = addr4("0.0.0.0", 7604);
	union addr b = global6(7604), any6 = addr6("::", 7604);

	CONFLICT(EADDRINUSE, (b, -1, -1), (b, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any6, -1, -1), (b, -1, -1));
	CONFLICT(0, (a, -1, -1), (b, -1, -1));
	/* An IPv4 id is for IPv4 only from the start, an IPv6 id if it says so. */
	CONFLICT(EADDRNOTAVAIL, (any4, -1, -1), (any6, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any6, -1, -1), (any4, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any6, -1, -1), (a, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any4, -1, -1), (b, -1, -1));
	CONFLICT(0, (any4, -1, -1), (any6, -1, 1));
	CONFLICT(0, (any6, -1, 1), (any4, -1, -1));
	CONFLICT(0, (any6, -1, 1), (a, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any6, -1, 0), (any4, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any6, -1, 1), (any4, -1, 0));
	CONFLICT(EADDRNOTAVAIL, (any6, -1, 1), (b, -1, 1));
}

TEST(bind, bindv6only)
{
	union addr any4 = addr4("0.0.0.0", 7605), any6 = addr6("::", 7605);

	REQUIRE_EQ(0, system("sysctl -q -w net.ipv6.bindv6only=1"));
	CONFLICT(0, (any4, -1, -1), (any6, -1, -1));
	CONFLICT(EADDRNOTAVAIL, (any4, -1, -1), (any6, -1, 0));
	CHECK_EQ(0, system("sysctl -q -w net.ipv6.bindv6only=0"));
	CONFLICT(EADDRNOTAVAIL, (any4, -1, -1), (any6, -1, -1));
}

TEST(bind, conflicts_of_linklocal)
{
	union addr a = linklocal6(7606);

	CONFLICT(EADDRINUSE, (a, -1, -1), (a, -1, -1));
}

TEST(bind, port_spaces_are_separate)
{
	static const uint16_t spaces[] = { PS_TCP, PS_UDP, PS_IPOIB };
	int f = fd();

	for (int i = 0; i < 2; i++) {
		uint32_t id = REQUIRE_ID(create_id(f, spaces[i], 1));

		CHECK_OK(bind4(f, id, ADDR4, 7607));
		id = REQUIRE_ID(create_id(f, spaces[i], 1));
		CHECK_ERR(EADDRINUSE, bind4(f, id, ADDR4, 7607));
	}
}

TEST(bind, ipoib_space_on_ethernet)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IPOIB, 1));

	CHECK_ERR(EINVAL, bind4(f, id, ADDR4, 0));
}

TEST(bind, another_namespace)
{
	int f = fd();
	union addr any = addr4("0.0.0.0", 7608);

	REQUIRE_OK(bind_addr(f, new_id(f), &any));
	in_peer();
	/* An id belongs to the namespace it was created in, not its file. */
	CHECK_OK(bind_addr(f, new_id(f), &any));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, new_id(f), &any));
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, new_id(f), ADDR4, 0));
	CHECK_OK(bind4(f, new_id(f), "10.0.0.2", 0));
}

TEST(bind, failed_bind_leaves_id_unbound)
{
	int f = fd();
	uint32_t a = new_id(f), b = new_id(f);
	struct rdma_ucm_query_addr_resp resp;

	REQUIRE_OK(bind4(f, a, ADDR4, 7609));
	for (int i = 0; i < 3; i++)
		CHECK_ERR(EADDRINUSE, bind4(f, b, ADDR4, 7609));
	REQUIRE_OK(query_addr(f, b, &resp));
	CHECK_EQ(0, resp.node_guid);
	CHECK_EQ(0, resp.port_num);
	CHECK_OK(bind4(f, b, ADDR4, 7610));
	CHECK_EQ(7610, bound_port(f, b));
}

/* --- ephemeral ports --- */

TEST(bind, ephemeral_port)
{
	int f = fd(), low, high;
	FILE *range = fopen("/proc/sys/net/ipv4/ip_local_port_range", "r");

	REQUIRE(range && fscanf(range, "%d %d", &low, &high) == 2);
	for (int i = 0; i < 50; i++) {
		uint32_t id = new_id(f);
		uint16_t port;

		REQUIRE_OK(bind4(f, id, i & 1 ? ADDR4 : "0.0.0.0", 0));
		port = bound_port(f, id);
		CHECK(port >= low && port <= high);
		CHECK_ERR(i & 1 ? EADDRINUSE : EADDRNOTAVAIL,
			  bind4(f, new_id(f), ADDR4, port));
	}
}

TEST(bind, ephemeral_ports_used_up)
{
	int f = fd(), n;

	REQUIRE_EQ(0, system("cp /proc/sys/net/ipv4/ip_local_port_range /run/range;"
			     "echo 40000 40003 > /proc/sys/net/ipv4/ip_local_port_range"));
	for (n = 0; n < 10; n++) {
		uint32_t id = new_id(f);
		long ret = bind4(f, id, "0.0.0.0", 0);

		if (ret < 0) {
			CHECK_ERR(EADDRNOTAVAIL, ret);
			break;
		}
		CHECK(bound_port(f, id) >= 40000 && bound_port(f, id) <= 40003);
	}
	CHECK_EQ(4, n);
	CHECK_EQ(0, system("cat /run/range > /proc/sys/net/ipv4/ip_local_port_range"));
}

TEST(bind, ephemeral_ports_are_shared)
{
	int f = fd(), n = 0;

	/* Different addresses do not conflict, so a port can have two owners. */
	REQUIRE_EQ(0, system("cp /proc/sys/net/ipv4/ip_local_port_range /run/range;"
			     "echo 40010 40013 > /proc/sys/net/ipv4/ip_local_port_range"));
	for (n = 0; n < 20; n++) {
		union addr a = n & 1 ? global6(0) : addr4(ADDR4, 0);

		if (bind_addr(f, new_id(f), &a) < 0)
			break;
	}
	CHECK_EQ(8, n);
	CHECK_EQ(0, system("cat /run/range > /proc/sys/net/ipv4/ip_local_port_range"));
}

TEST(bind, port_free_after_destroy_and_close)
{
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_OK(bind4(f, id, ADDR4, 7611));
	REQUIRE_OK(destroy_id(f, id));
	CHECK_OK(bind4(f, new_id(f), ADDR4, 7611));
	close(f);
	f = fd();
	CHECK_OK(bind4(f, new_id(f), ADDR4, 7611));
}

TEST(bind, port_free_after_close_of_many)
{
	enum { MANY = 600 };
	uint16_t ports[MANY];
	int f = fd();

	for (int i = 0; i < MANY; i++) {
		uint32_t id = new_id(f);

		REQUIRE_OK(bind4(f, id, ADDR4, 0));
		ports[i] = bound_port(f, id);
		/* Some listen, others could. */
		if (i % 16 == 0)
			REQUIRE_OK(listen_id(f, id, 1));
	}
	close(f);
	f = fd();
	for (int i = 0; i < MANY; i++) {
		uint32_t id = new_id(f);

		REQUIRE_OK(bind4(f, id, ADDR4, ports[i]));
		REQUIRE_OK(listen_id(f, id, 1));
	}
}

/* --- AF_IB: what librdmacm does first of all --- */

static long bind_ib(int f, uint16_t ps, uint64_t sid, uint64_t mask)
{
	union addr a = addr_ib(sid, mask);
	uint32_t id = REQUIRE_ID(create_id(f, ps, 1));

	return bind_addr(f, id, &a);
}

TEST(bind, ib_probe)
{
	struct rdma_ucm_query_addr_resp resp;
	union addr a = addr_ib(0x01060000, 0xffffffffffff0000), got;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IB, 1));

	CHECK_OK(bind_addr(f, id, &a));
	REQUIRE_OK(query_addr(f, id, &resp));
	CHECK_EQ(48, resp.src_size);
	memcpy(&got, &resp.src_addr, sizeof(got));
	CHECK_EQ(AF_IB, got.ib.family);
	CHECK(addr_port(&got) != 0);
	CHECK_EQ(0x0106, be64toh(got.ib.sid) >> 16);
	CHECK_EQ(~0ull, be64toh(got.ib.sid_mask));
}

TEST(bind, ib_service_ids)
{
	int f = fd();
	const uint64_t mask = 0xffffffffffff0000;

	CHECK_OK(bind_ib(f, PS_IB, 0x013f0000, mask));
	CHECK_OK(bind_ib(f, PS_IB, 0x01060000, mask));
	CHECK_OK(bind_ib(f, PS_IB, 0x01110000, mask));
	CHECK_OK(bind_ib(f, PS_TCP, 0x01060000, mask));
	CHECK_OK(bind_ib(f, PS_UDP, 0x01110000, mask));
	CHECK_ERR(EPROTONOSUPPORT, bind_ib(f, PS_TCP, 0x01110000, mask));
	CHECK_ERR(EPROTONOSUPPORT, bind_ib(f, PS_UDP, 0x01060000, mask));
	CHECK_ERR(EPROTONOSUPPORT, bind_ib(f, PS_TCP, 0x013f0000, mask));
	CHECK_ERR(EPROTONOSUPPORT, bind_ib(f, PS_IB, 0x00020000, mask));
	CHECK_ERR(EPROTONOSUPPORT, bind_ib(f, PS_IB, 0x101060000, mask));
	CHECK_ERR(EPROTONOSUPPORT, bind_ib(f, PS_IPOIB, 0x00020000, mask));
}

TEST(bind, ib_shares_the_port_space)
{
	int f = fd();

	CHECK_OK(bind_ib(f, PS_IB, 0x01060000 | 7612, ~0ull));
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, new_id(f), ADDR4, 7612));
	CHECK_ERR(EADDRNOTAVAIL, bind_ib(f, PS_TCP, 0x01060000 | 7612, ~0ull));
	CHECK_OK(bind_ib(f, PS_IB, 0x013f0000 | 7612, ~0ull));
}

TEST(bind, ib_port_under_its_mask)
{
	struct rdma_ucm_query_addr_resp resp;
	union addr a = addr_ib(0x01060000 | 7613, 0xffffffffffffff00), got;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IB, 1));

	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&got, &resp.src_addr, sizeof(got));
	CHECK_EQ(0x01060000 | (7613 & 0xff00), be64toh(got.ib.sid));
}

TEST(bind, ib_without_a_mask)
{
	struct rdma_ucm_query_addr_resp resp;
	union addr a = addr_ib(0, 0), got;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IB, 1));

	/* No bit of the service id counts: it is of the id's own port space. */
	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&got, &resp.src_addr, sizeof(got));
	CHECK(addr_port(&got) != 0);
	CHECK_EQ(0x013f0000 | addr_port(&got), be64toh(got.ib.sid));
	CHECK_EQ(~0ull, be64toh(got.ib.sid_mask));
	CHECK_OK(bind_ib(f, PS_TCP, 0, 0));
	CHECK_OK(bind_ib(f, PS_UDP, 0, 0));
	CHECK_ERR(EPROTONOSUPPORT, bind_ib(f, PS_IPOIB, 0, 0));
}

TEST(bind, ib_of_no_device)
{
	union addr a = addr_ib(0x01060000, 0xffffffffffff0000);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IB, 1));

	memset(a.ib.gid, 0x77, 16);
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
	a = addr_ib(0x01060000, 0xffffffffffff0000);
	CHECK_OK(bind_addr(f, id, &a));
}
