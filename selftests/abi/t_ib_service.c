// SPDX-License-Identifier: GPL-2.0
/* RESOLVE_IB_SERVICE: services that the administrator of a subnet knows. */
#include "ib.h"

#define QUERY_SERVICE 3

static const uint8_t none[16];

/* A line for the administrator. */
static const char *record(const char *device, uint64_t sid, const char *name, const char *data)
{
	static char lines[4][400];
	static int turn;
	char gid[64];

	turn = (turn + 1) % 4;
	inet_ntop(AF_INET6, port_of(device).gid, gid, sizeof(gid));
	snprintf(lines[turn], sizeof(lines[0]), "record id=0x%llx,name=%s,gid=%s,pkey=0xffff,data8=%s\n",
		 (unsigned long long)sid, name, gid, data);
	return lines[turn];
}

static uint32_t bound_ip(int f, uint64_t uid)
{
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, uid));

	REQUIRE_OK(bind4(f, id, IB4, 0));
	return id;
}

static uint32_t bound(int f, uint64_t uid)
{
	union addr a = native("ib_a", SID_TCP, PKEY);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, uid));

	REQUIRE_OK(bind_addr(f, id, &a));
	return id;
}

/* Answers of all sizes: whole records, and nothing at all where none has room. */
static void check_records(int line, int f, uint32_t id, const struct ib_user_service_rec *want, uint32_t n)
{
	uint8_t got[2048];

	for (uint32_t out = 0; out < 8 + (n + 2) * sizeof(*want); out++) {
		uint32_t fit = out < 8 ? 0 : (out - 8) / sizeof(*want);
		size_t written = fit == 0 ? 0 : 8 + (fit < n ? fit : n) * sizeof(*want);

		check_err(__FILE__, line, "query", out < 8 ? ENOSPC : 0,
			  query(f, id, QUERY_SERVICE, got, out));
		if (written) {
			check_eq(__FILE__, line, "records", n, *(uint32_t *)got);
			check_eq(__FILE__, line, "reserved", 0, *(uint32_t *)(got + 4));
			if (!check_mem(__FILE__, line, "records", want, got + 8, written - 8))
				return;
		}
		for (size_t i = written; i < out; i++)
			if (!check_eq(__FILE__, line, "what is not written", 0xee, got[i]))
				return;
	}
}
#define CHECK_RECORDS(f, id, want, n) check_records(__LINE__, f, id, want, n)

static struct ib_user_service_rec wanted(const char *device, uint64_t sid, const char *name)
{
	struct ib_user_service_rec r = {
		.id = htobe64(sid), .pkey = htons(PKEY), .lease = 0xffffffff,
	};

	memcpy(r.gid, port_of(device).gid, 16);
	strncpy((char *)r.name, name, sizeof(r.name));
	return r;
}

TEST(ib, service)
{
	struct rdma_ucm_query_addr_resp addr, gid;
	struct ib_user_service_rec want;
	struct ib_uverbs_qp_attr attr;
	struct port a, b;
	union addr dst;
	uint32_t id;
	int f;

	need_ib();
	a = port_of("ib_a");
	b = port_of("ib_b");
	sa("%s%s", record("ib_a", 0x1111, "other", ""), record("ib_b", SID_TCP | 7860, "seven", "070605"));
	want = wanted("ib_b", SID_TCP | 7860, "seven");
	memcpy(want.data_8, (uint8_t []){ 7, 6, 5 }, 3);
	dst = native("ib_b", SID_TCP | 7860, PKEY);
	dst.ib.sid_mask = 0;
	for (uint32_t flags = BY_ID; flags <= (BY_ID | BY_NAME); flags++) {
		f = fd();
		id = bound(f, 0x99);
		REQUIRE_OK(resolve_service(f, id, SID_TCP | 7860, "seven", flags));
		NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
		CHECK_RECORDS(f, id, &want, 1);
		REQUIRE_OK(query_addr(f, id, &addr));
		REQUIRE_OK(query_gid(f, id, &gid));
		CHECK_MEM(&addr, &gid, sizeof(addr));
		CHECK_EQ(48, addr.dst_size);
		CHECK_MEM(&dst, &addr.dst_addr, sizeof(dst.ib));
		CHECK_EQ(a.guid, addr.node_guid);
		CHECK_EQ(PKEY, ntohs(addr.pkey));
		CHECK_ENDS(f, id, a.gid, b.gid, PKEY);
		CHECK_OK(init_qp_attr(f, id, INIT, &attr));
		CHECK(no_event(f, 10));
		CHECK_EQ(1, REQUIRE_ID(destroy_id(f, id)));
		close(f);
	}
}

TEST(ib, service_records)
{
	struct ib_user_service_rec want[3];
	uint32_t id;
	int f;

	need_ib();
	sa("%s%s%s", record("ib_b", 0x5001, "many", ""), record("ib_a", 0x5002, "many", ""),
	   record("ib_b", 0x5003, "many", ""));
	want[0] = wanted("ib_b", 0x5001, "many");
	want[1] = wanted("ib_a", 0x5002, "many");
	want[2] = wanted("ib_b", 0x5003, "many");
	f = fd();
	for (int how = 0; how < 2; how++) {
		/* No condition: all that there are. Conditions that nobody knows are none. */
		id = bound(f, 0x99);
		REQUIRE_OK(resolve_service(f, id, 1, "many", how ? 0xfffffffc : BY_NAME));
		NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
		CHECK_RECORDS(f, id, want, 3);
	}
}

TEST(ib, service_names)
{
	/* 63 letters, and 64. */
	char name[65] = "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl";
	struct ib_user_service_rec want;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	sa("%s", record("ib_b", 0x5004, name, ""));
	/* There has to be an end. */
	id = bound(f, 0x99);
	REQUIRE_OK(resolve_service(f, id, 1, name, BY_NAME));
	NEED_PLAIN(f, EV_ADDRINFO_ERROR, id, 0x99, -ENODATA);
	name[63] = 0;
	sa("%s", record("ib_b", 0x5004, name, ""));
	want = wanted("ib_b", 0x5004, name);
	id = bound(f, 0x99);
	REQUIRE_OK(resolve_service(f, id, 1, name, BY_NAME));
	NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
	CHECK_RECORDS(f, id, &want, 1);
	/* Bytes behind the end do not count. */
	memcpy(name, "short\0garbage", 13);
	sa("%s", record("ib_b", 0x5005, "short", ""));
	want = wanted("ib_b", 0x5005, "short");
	id = bound(f, 0x99);
	{
		struct service req = { .id = id, .flags = BY_NAME };

		memcpy(req.name, name, 64);
		REQUIRE_OK(cm_cmd(f, CMD_RESOLVE_IB_SERVICE, &req, sizeof(req), 0));
	}
	NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
	CHECK_RECORDS(f, id, &want, 1);
	/* A name of no letter. */
	sa("%s", record("ib_b", 0x5006, "", ""));
	id = bound(f, 0x99);
	REQUIRE_OK(resolve_service(f, id, 1, "", BY_NAME));
	NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
}

TEST(ib, service_errors)
{
	uint8_t answer[200];
	struct port a;
	uint32_t id;
	int f;

	need_ib();
	a = port_of("ib_a");
	f = fd();
	id = bound(f, 0x99);
	REQUIRE_OK(resolve_service(f, id, 0x123456, "", BY_ID));
	NEED_PLAIN(f, EV_ADDRINFO_ERROR, id, 0x99, -ENODATA);
	CHECK_ERR(ENODATA, query(f, id, QUERY_SERVICE, answer, sizeof(answer)));
	CHECK_ENDS(f, id, a.gid, none, PKEY);
	sa("service refuse");
	REQUIRE_OK(resolve_service(f, id, 0x123456, "", BY_ID));
	NEED_PLAIN(f, EV_ADDRINFO_ERROR, id, 0x99, -EINVAL);
	sa("service silent");
	REQUIRE_OK(resolve_service(f, id, 0x123456, "", BY_ID));
	NEED_PLAIN(f, EV_ADDRINFO_ERROR, id, 0x99, -ETIMEDOUT);
	sa("service drop=2\n%s", record("ib_b", 0x123456, "x", ""));
	REQUIRE_OK(resolve_service(f, id, 0x123456, "", BY_ID));
	NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
	CHECK_OK(query(f, id, QUERY_SERVICE, answer, sizeof(answer)));
}

TEST(ib, service_states)
{
	union addr any = addr_ib(SID_TCP, ~0xffffull), dst, roce = addr4(ADDR4, 0);
	uint32_t id;
	int f;

	need_ib();
	sa("%s", record("ib_b", 0x5007, "x", ""));
	f = fd();
	CHECK_ERR(ENOENT, resolve_service(f, 0xffffffff, 0x5007, "", BY_ID));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	CHECK_ERR(EINVAL, resolve_service(f, id, 0x5007, "", BY_ID));
	REQUIRE_OK(bind_addr(f, id, &any));
	CHECK_ERR(EINVAL, resolve_service(f, id, 0x5007, "", BY_ID));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_OK(bind_addr(f, id, &roce));
	CHECK_ERR(EOPNOTSUPP, resolve_service(f, id, 0x5007, "", BY_ID));
	id = bound(f, 1);
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_ERR(EINVAL, resolve_service(f, id, 0x5007, "", BY_ID));
	id = bound(f, 1);
	REQUIRE_OK(resolve_service(f, id, 0x5007, "", BY_ID));
	NEED_EVENT(f, EV_ADDRINFO_RESOLVED, NULL);
	/* That was it: only the route is left. */
	CHECK_ERR(EINVAL, resolve_service(f, id, 0x5007, "", BY_ID));
	dst = native("ib_b", SID_TCP | 7862, PKEY);
	CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &dst, 1000));
	CHECK_ERR(EINVAL, listen_id(f, id, 0));
	CHECK_ERR(EINVAL, resolve_route(f, id, 0));
	CHECK(no_event(f, 10));
}

TEST(ib, service_queried)
{
	uint8_t answer[200];
	struct port a;
	uint32_t id;
	int f;

	need_ib();
	a = port_of("ib_a");
	f = fd();
	sa("service delay=1200\n%s", record("ib_b", 0x5008, "x", ""));
	id = bound(f, 0x99);
	REQUIRE_OK(resolve_service(f, id, 0x5008, "", BY_ID));
	CHECK_REFUSED(f, id);
	CHECK_ENDS(f, id, a.gid, none, PKEY);
	CHECK_ERR(ENODATA, query(f, id, QUERY_SERVICE, answer, sizeof(answer)));
	NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
	for (int i = 0; i < 6; i++) {
		int g = fd();

		sa(i & 1 ? "service silent\n%s" : "service delay=40\n%s", record("ib_b", 0x5008, "x", ""));
		id = bound(g, 0x99);
		REQUIRE_OK(resolve_service(g, id, 0x5008, "", BY_ID));
		usleep(15000 * i);
		if (i < 3)
			REQUIRE_ID(destroy_id(g, id));
		close(g);
	}
}

/* A listener serves the service. */
TEST(ib, service_connects)
{
	union addr a;
	struct record want;
	struct pair p = { 0 };

	need_ib();
	a = native("ib_b", SID_TCP, PKEY);
	ib_listen(&p, &a);
	sa("%s", record("ib_b", SID_TCP | addr_port(&p.addr), "there", ""));
	p.cfd = fd();
	p.client = bound(p.cfd, p.client_uid);
	REQUIRE_OK(resolve_service(p.cfd, p.client, 0, "there", BY_NAME));
	NEED_PLAIN(p.cfd, EV_ADDRINFO_RESOLVED, p.client, p.client_uid, 0);
	REQUIRE_OK(resolve_route(p.cfd, p.client, 2000));
	NEED_PLAIN(p.cfd, EV_ROUTE_RESOLVED, p.client, p.client_uid, 0);
	want = record_of("ib_a", "ib_b", SID_TCP | addr_port(&p.addr), PKEY);
	CHECK_PATH(p.cfd, p.client, &want);
	ib_requested(&p);
	ib_accepted(&p);
	ib_established(&p);
}

/* After a route could not be found, the address is one like any other. */
TEST(ib, service_without_route)
{
	uint32_t id;
	int f;
	struct record r;

	need_ib();
	f = fd();
	sa("path refuse\n%s", record("ib_b", SID_TCP | 7863, "x", ""));
	id = bound(f, 0x99);
	REQUIRE_OK(resolve_service(f, id, 0, "x", BY_NAME));
	NEED_EVENT(f, EV_ADDRINFO_RESOLVED, NULL);
	r = record_of("ib_a", "ib_b", SID_TCP | 7863, PKEY);
	CHECK_ERR(EINVAL, set_path(f, id, &r));
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_PLAIN(f, EV_ROUTE_ERROR, id, 0x99, -EINVAL);
	CHECK_ERR(EINVAL, resolve_service(f, id, 0, "x", BY_NAME));
	REQUIRE_OK(set_path(f, id, &r));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x99, 0);
}

/* The own address is one of IP, that of the service is native: there is a route. */
TEST(ib, service_of_an_ip_address)
{
	struct rdma_ucm_query_addr_resp addr;
	struct record want;
	union addr dst;
	uint32_t id;
	int f;

	need_ib();
	f = fd();
	sa("%s", record("ib_b", SID_TCP | 7864, "x", ""));
	id = bound_ip(f, 0x99);
	REQUIRE_OK(resolve_service(f, id, 0, "x", BY_NAME));
	NEED_PLAIN(f, EV_ADDRINFO_RESOLVED, id, 0x99, 0);
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(16, addr.src_size);
	CHECK_EQ(48, addr.dst_size);
	dst = native("ib_b", SID_TCP | 7864, PKEY);
	dst.ib.sid_mask = 0;
	CHECK_MEM(&dst, &addr.dst_addr, sizeof(dst.ib));
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x99, 0);
	want = record_of("ib_a", "ib_b", SID_TCP | 7864, PKEY);
	CHECK_PATH(f, id, &want);
}
