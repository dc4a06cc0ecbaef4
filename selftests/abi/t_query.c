// SPDX-License-Identifier: GPL-2.0
/* QUERY and QUERY_ROUTE: what is answered, and that every byte of it is defined. */
#include "abi.h"

enum { ROUTE = -1 };	/* the command of its own */

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 1));
}

static long ask(int f, uint32_t id, int option, void *resp, uint16_t out)
{
	struct rdma_ucm_query req = { .response = ptr(resp), .id = id, .option = option };

	if (option == ROUTE) {
		req.option = 0;
		return cm_cmd(f, RDMA_USER_CM_CMD_QUERY_ROUTE, &req, sizeof(req), out);
	}
	return cm_cmd(f, RDMA_USER_CM_CMD_QUERY, &req, sizeof(req), out);
}

/*
 * Ask twice with buffers of different contents. Bytes that are the same in both answers were
 * written, and bytes that kept the contents were not: nothing may be neither, all of the first len
 * bytes must be written, and none behind them.
 */
static void defined(int line, int f, uint32_t id, int option, uint16_t out, size_t len)
{
	uint8_t *a = edge_fill(out + 64, 0xa5), *b = edge_fill(out + 64, 0x5a);

	if (!check_err(__FILE__, line, "query", 0, ask(f, id, option, a, out)) ||
	    !check_err(__FILE__, line, "query", 0, ask(f, id, option, b, out)))
		return;
	for (size_t i = 0; i < out + 64u; i++) {
		bool written = a[i] == b[i];
		bool kept = a[i] == 0xa5 && b[i] == 0x5a;

		if (i < len && !written) {
			fail(__FILE__, line, "option %d: byte %zu of %zu: %s", option, i, len,
			     kept ? "not written" : "differs between two answers");
			return;
		}
		if (i >= len && !kept) {
			fail(__FILE__, line, "option %d: byte %zu: written beyond %zu",
			     option, i, len);
			return;
		}
	}
}
#define DEFINED(f, id, option, out, len) defined(__LINE__, f, id, option, out, len)

static void all_defined(int f, uint32_t id, size_t paths)
{
	DEFINED(f, id, ROUTE, 200, 200);
	DEFINED(f, id, ROUTE, 204, 204);
	DEFINED(f, id, ROUTE, 208, 208);
	DEFINED(f, id, ROUTE, 4096, 208);
	DEFINED(f, id, RDMA_USER_CM_QUERY_ADDR, 272, 272);
	DEFINED(f, id, RDMA_USER_CM_QUERY_ADDR, 279, 279);
	DEFINED(f, id, RDMA_USER_CM_QUERY_ADDR, 280, 280);
	DEFINED(f, id, RDMA_USER_CM_QUERY_ADDR, 4096, 280);
	DEFINED(f, id, RDMA_USER_CM_QUERY_GID, 272, 272);
	DEFINED(f, id, RDMA_USER_CM_QUERY_GID, 280, 280);
	DEFINED(f, id, RDMA_USER_CM_QUERY_GID, 4096, 280);
	DEFINED(f, id, RDMA_USER_CM_QUERY_PATH, 8, 8);
	/* Only whole records. */
	DEFINED(f, id, RDMA_USER_CM_QUERY_PATH, 79, 8);
	DEFINED(f, id, RDMA_USER_CM_QUERY_PATH, 80, 8 + (paths ? 72 : 0));
	DEFINED(f, id, RDMA_USER_CM_QUERY_PATH, 4096, 8 + paths * 72);
}

TEST(query, defined_when_new)
{
	int f = fd();

	all_defined(f, new_id(f), 0);
}

TEST(query, defined_when_bound)
{
	int f = fd();
	union addr v6 = global6(0), any = addr4("0.0.0.0", 0);
	uint32_t id = new_id(f);

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	all_defined(f, id, 0);
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &v6));
	all_defined(f, id, 0);
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &any));
	all_defined(f, id, 0);
	REQUIRE_OK(listen_id(f, id, 0));
	all_defined(f, id, 0);
}

TEST(query, defined_when_bound_to_ib)
{
	union addr a = addr_ib(0x01060000, 0xffffffffffff0000);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IB, 1));

	REQUIRE_OK(bind_addr(f, id, &a));
	DEFINED(f, id, RDMA_USER_CM_QUERY_ADDR, 280, 280);
	DEFINED(f, id, RDMA_USER_CM_QUERY_GID, 280, 280);
	DEFINED(f, id, RDMA_USER_CM_QUERY_PATH, 4096, 8);
	DEFINED(f, id, ROUTE, 208, 208);
}

TEST(query, defined_when_resolved)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_resolved_addr(&p, &a);
	all_defined(p.cfd, p.client, 0);
	NEED_ROUTE(p.cfd, p.client);
	all_defined(p.cfd, p.client, 1);
}

TEST(query, defined_when_connected)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	all_defined(p.cfd, p.client, 1);
	all_defined(p.sfd, p.server, 1);
	all_defined(p.sfd, p.listener, 0);
}

TEST(query, defined_when_connected_ipv6)
{
	struct pair p = { 0 };
	union addr a = global6(0);

	pair_established(&p, &a);
	all_defined(p.cfd, p.client, 1);
	all_defined(p.sfd, p.server, 1);
}

TEST(query, answer_sizes)
{
	static const struct { int option; uint16_t min; } sizes[] = {
		{ RDMA_USER_CM_QUERY_ADDR, 272 }, { RDMA_USER_CM_QUERY_PATH, 8 },
		{ RDMA_USER_CM_QUERY_GID, 272 }, { 3, 8 }, { ROUTE, 200 },
	};
	uint8_t buf[512];
	int f = fd();
	uint32_t id = new_id(f);

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (int out = 0; out < sizes[i].min; out++)
			CHECK_ERR(ENOSPC, ask(f, id, sizes[i].option, buf, out));
}

TEST(query, unknown_options)
{
	uint8_t buf[512];
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_ERR(ENOSYS, ask(f, id, 4, buf, sizeof(buf)));
	CHECK_ERR(ENOSYS, ask(f, id, 0xffff, buf, sizeof(buf)));
	CHECK_ERR(ENOSYS, ask(f, id, -2, buf, sizeof(buf)));
	/* The id comes first, but an option's own size after that. */
	CHECK_ERR(ENOENT, ask(f, 0xffffffff, 4, buf, 0));
	CHECK_ERR(ENOSYS, ask(f, id, 4, buf, 0));
}

TEST(query, id_before_answer_size)
{
	uint8_t buf[512];
	int f = fd();

	/* Unlike other commands: the size depends on the option. */
	CHECK_ERR(ENOENT, ask(f, 0xffffffff, RDMA_USER_CM_QUERY_ADDR, buf, 0));
	CHECK_ERR(ENOSPC, ask(f, 0xffffffff, ROUTE, buf, 0));
}

TEST(query, route_ignores_option)
{
	struct rdma_ucm_query_route_resp *resp = edge(sizeof(*resp));
	int f = fd();
	struct rdma_ucm_query req = { .response = ptr(resp), .id = new_id(f), .option = 77 };

	CHECK_OK(cm_cmd(f, RDMA_USER_CM_CMD_QUERY_ROUTE, &req, sizeof(req), sizeof(*resp)));
}

TEST(query, no_service_records)
{
	uint8_t buf[512];
	int f = fd();

	CHECK_ERR(ENODATA, ask(f, new_id(f), 3, buf, sizeof(buf)));
}

TEST(query, new_id_is_empty)
{
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp route;
	uint8_t zeros[280] = { 0 };
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_MEM(zeros, &addr, sizeof(addr));
	REQUIRE_OK(query_route(f, id, &route));
	CHECK_MEM(zeros, &route, sizeof(route));
}

TEST(query, bound_id)
{
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp route;
	union addr want = addr4(ADDR4, 7660);
	uint8_t zeros[128] = { 0 };
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &want));
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(16, addr.src_size);
	/* The other end's address has a family from now on, and nothing else. */
	CHECK_EQ(16, addr.dst_size);
	CHECK_MEM(&want, &addr.src_addr, 128);
	CHECK_MEM(&want, &addr.dst_addr, 2);
	CHECK_MEM(zeros, (char *)&addr.dst_addr + 2, 126);
	CHECK(addr.node_guid != 0);
	CHECK_EQ(1, addr.port_num);
	CHECK_EQ(0, addr.pkey);
	CHECK_EQ(0, addr.reserved);
	CHECK_EQ(0, addr.reserved1);
	REQUIRE_OK(query_route(f, id, &route));
	CHECK_EQ(addr.node_guid, route.node_guid);
	CHECK_EQ(addr.ibdev_index, route.ibdev_index);
	CHECK_EQ(1, route.port_num);
	CHECK_EQ(0, route.num_paths);
	CHECK_MEM(&want, &route.src_addr, 16);
	CHECK_MEM(zeros, (char *)&route.src_addr + 16, 12);
	CHECK_MEM(&addr.dst_addr, &route.dst_addr, 28);
}

/* The GID of an IPv4 address. */
static void mapped(uint8_t gid[16], const union addr *a)
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &a->in.sin_addr, 4);
}

TEST(query, gids)
{
	struct rdma_ucm_query_addr_resp gid;
	struct sockaddr_ib src, dst;
	struct pair p = { 0 };
	union addr a = any_port4();
	uint8_t want[16];

	pair_routed(&p, &a);
	REQUIRE_OK(query_gid(p.cfd, p.client, &gid));
	memcpy(&src, &gid.src_addr, sizeof(src));
	memcpy(&dst, &gid.dst_addr, sizeof(dst));
	CHECK_EQ(48, gid.src_size);
	CHECK_EQ(48, gid.dst_size);
	CHECK_EQ(AF_IB, src.family);
	CHECK_EQ(AF_IB, dst.family);
	mapped(want, &p.addr);
	CHECK_MEM(want, src.gid, 16);
	CHECK_MEM(want, dst.gid, 16);
	/* An Ethernet interface has no partition. */
	CHECK_EQ(0, src.pkey);
	CHECK_EQ(0, dst.pkey);
	CHECK_EQ(0x01060000 | addr_port(&p.addr), be64toh(dst.sid));
	CHECK_EQ(0x0106, be64toh(src.sid) >> 16);
	CHECK_EQ(0, src.sid_mask);
	CHECK_EQ(0, dst.sid_mask);
	CHECK_EQ(0, src.scope_id);
	CHECK_EQ(0, src.flowinfo);
}

TEST(query, gids_of_ib_address)
{
	struct rdma_ucm_query_addr_resp gid, addr;
	union addr a = addr_ib(0x01060000, 0xffffffffffff0000);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IB, 1));

	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(query_gid(f, id, &gid));
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(48, gid.src_size);
	CHECK_MEM(&addr.src_addr, &gid.src_addr, 48);
}

TEST(query, path)
{
	struct { struct rdma_ucm_query_path_resp h; struct ib_path_rec_data d[2]; } r = { 0 };
	struct pair p = { 0 };
	union addr a = any_port4();
	const uint8_t *rec = (const void *)r.d[0].path_rec;
	uint8_t want[16];

	pair_resolved_addr(&p, &a);
	REQUIRE_OK(query(p.cfd, p.client, RDMA_USER_CM_QUERY_PATH, &r, sizeof(r)));
	CHECK_EQ(0, r.h.num_paths);
	NEED_ROUTE(p.cfd, p.client);
	/* The number of paths does not depend on the room for them. */
	REQUIRE_OK(query(p.cfd, p.client, RDMA_USER_CM_QUERY_PATH, &r, 8));
	CHECK_EQ(1, r.h.num_paths);
	CHECK_EQ(0, r.h.reserved);
	REQUIRE_OK(query(p.cfd, p.client, RDMA_USER_CM_QUERY_PATH, &r, sizeof(r)));
	CHECK_EQ(1, r.h.num_paths);
	CHECK_EQ(0x2b, r.d[0].flags);
	CHECK_EQ(0, r.d[0].reserved);
	/* A PathRecord as on the wire: service id, dgid, sgid, lids, ... */
	mapped(want, &p.addr);
	CHECK_MEM(want, rec + 8, 16);
	CHECK_MEM(want, rec + 24, 16);
	CHECK_EQ(0xffff, rec[50] << 8 | rec[51]);	/* pkey */
	CHECK_EQ(16, rec[56] & 0x3f);			/* packet life time */
}

TEST(query, route_ipv4)
{
	struct rdma_ucm_query_route_resp r;
	struct pair p = { 0 };
	union addr a = any_port4();
	uint8_t want[16];

	pair_resolved_addr(&p, &a);
	mapped(want, &p.addr);
	/* Before the route is known: what the addresses say. */
	REQUIRE_OK(query_route(p.cfd, p.client, &r));
	CHECK_EQ(0, r.num_paths);
	CHECK_MEM(want, r.ib_route[0].dgid, 16);
	CHECK_MEM(want, r.ib_route[0].sgid, 16);
	CHECK_EQ(0xffff, r.ib_route[0].pkey);
	CHECK_EQ(0, r.ib_route[0].packet_life_time);
	NEED_ROUTE(p.cfd, p.client);
	REQUIRE_OK(query_route(p.cfd, p.client, &r));
	CHECK_EQ(1, r.num_paths);
	CHECK_MEM(want, r.ib_route[0].dgid, 16);
	CHECK_MEM(want, r.ib_route[0].sgid, 16);
	CHECK_EQ(0xffff, r.ib_route[0].pkey);
	CHECK_EQ(16, r.ib_route[0].packet_life_time);
	CHECK_EQ(3, r.ib_route[0].mtu);		/* 1024 of 1500 */
	CHECK_EQ(0, r.ib_route[0].slid);
	CHECK_EQ(0, r.ib_route[0].sl);
	CHECK_EQ(1, r.port_num);
	CHECK_EQ(addr_port(&p.addr), ntohs(r.dst_addr.sin6_port));
}

TEST(query, route_ipv6)
{
	struct rdma_ucm_query_route_resp r;
	struct pair p = { 0 };
	union addr a = global6(0);

	pair_routed(&p, &a);
	REQUIRE_OK(query_route(p.cfd, p.client, &r));
	CHECK_EQ(1, r.num_paths);
	CHECK_MEM(&a.in6.sin6_addr, r.ib_route[0].dgid, 16);
	CHECK_MEM(&a.in6.sin6_addr, r.ib_route[0].sgid, 16);
	CHECK_MEM(&a.in6.sin6_addr, &r.src_addr.sin6_addr, 16);
	CHECK_MEM(&p.addr, &r.dst_addr, 24);
}

/*
 * The fields of a route of the own and of a neighbour's address that a program
 * can see, against what C says: path records are made up for RoCE.
 */
static void path_fields(const char *dst_ip, uint8_t hop_limit)
{
	struct rdma_ucm_query_route_resp r;
	union addr dst = addr4(dst_ip, 7471), src;
	int f = fd();
	uint32_t id = routed_client(f, 1, &dst), sport;
	const struct ib_user_path_rec *rec = &r.ib_route[0];

	REQUIRE_OK(query_route(f, id, &r));
	memcpy(&src, &r.src_addr, sizeof(r.src_addr));
	sport = addr_port(&src);
	CHECK_EQ(1, rec->reversible);
	CHECK_EQ(2, rec->mtu_selector);
	CHECK_EQ(3, rec->mtu);
	CHECK_EQ(2, rec->rate_selector);
	CHECK_EQ(2, rec->packet_life_time_selector);
	CHECK_EQ(0, rec->numb_path);
	CHECK_EQ(0, rec->preference);
	CHECK_EQ(0, rec->traffic_class);
	CHECK_EQ(0, rec->dlid);
	CHECK_EQ(0, rec->raw_traffic);
	CHECK_EQ(hop_limit, rec->hop_limit);
	CHECK_EQ((sport * 31 + 7471) & 0xfffff, ntohl(rec->flow_label));
}

TEST(query, path_fields_of_own_address)
{
	path_fields(ADDR4, 64);
}

TEST(query, path_fields_of_neighbour)
{
	path_fields("10.0.0.2", 64);
}

/* For a peer that is not known yet only the family is set, in the GIDs too. */
TEST(query, gid_of_a_peer_that_is_not_known)
{
	static const uint8_t nobody[16] = { [10] = 0xff, [11] = 0xff };
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query_addr_resp resp;
	int f = fd();
	uint32_t id = new_id(f);
	union addr dst;

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	REQUIRE_OK(query_gid(f, id, &resp));
	memcpy(&dst, &resp.dst_addr, sizeof(dst));
	CHECK_MEM(nobody, dst.ib.gid, sizeof(nobody));
	REQUIRE_OK(query_route(f, id, &route));
	CHECK_MEM(nobody, route.ib_route[0].dgid, sizeof(nobody));
}
