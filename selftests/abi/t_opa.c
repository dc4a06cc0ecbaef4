// SPDX-License-Identifier: GPL-2.0
/*
 * LIDs of 32 bits, as on Omni-Path: programs see them in GIDs that are made from them. The suite opa makes
 * such ports.
 */
#include "ib.h"

static void need_opa(void)
{
	need_ib();
	if (port_of("ib_a").lid <= 0xffff)
		skip("the LIDs of ib_a have 16 bits: the suite opa makes longer ones");
}

/* Makes the interface id of a GID from a LID. */
static void set_lid(uint8_t *gid, uint32_t lid)
{
	uint64_t id = htobe64(0x66aull << 40 | lid);

	memcpy(gid + 8, &id, 8);
}

/* The GID of a port, with an interface id that is made from its LID. */
static void opa_gid(const char *device, uint8_t *gid)
{
	struct port port = port_of(device);

	memcpy(gid, port.gid, 8);
	set_lid(gid, port.lid);
}

static struct record opa_record(const char *src, const char *dst, uint64_t sid)
{
	struct record record = record_of(src, dst, sid, PKEY);

	opa_gid(dst, record.r + 8);
	opa_gid(src, record.r + 24);
	memset(record.r + 40, 0, 4);
	return record;
}

/*
 * The way to a port, beside one that was given. The path bits are left out: C takes them from the wrong place
 * (differences.rst).
 */
static void check_way(const char *device, const struct ib_uverbs_ah_attr *way)
{
	struct ib_uverbs_ah_attr want = {
		.dlid = port_of(device).lid, .src_path_bits = way->src_path_bits, .static_rate = 16,
		.is_global = 1, .port_num = 1, .grh.hop_limit = 1,
	};

	opa_gid(device, want.grh.dgid);
	CHECK_MEM(&want, way, sizeof(want));
}

static void connection(const union addr *a, const union addr *src)
{
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	struct record path;
	uint64_t sid;

	ib_pair_routed(&p, a, src);
	sid = SID_TCP | addr_port(&p.addr);
	path = opa_record("ib_a", "ib_b", sid);
	CHECK_PATH(p.cfd, p.client, &path);
	ib_requested(&p);
	/* The way back has a route with GIDs: there is no other to such a LID. */
	path = opa_record("ib_b", "ib_a", sid);
	path.r[47] = 255;
	path.r[49] = 0x80;
	path.r[56] = 0x80 | 15;
	CHECK_PATH(p.sfd, p.server, &path);
	ib_accepted(&p);
	attr = qp_attr(p.cfd, p.client, RTR);
	check_way("ib_b", &attr.ah_attr);
	attr = qp_attr(p.sfd, p.server, RTR);
	check_way("ib_a", &attr.ah_attr);
	ib_established(&p);
}

TEST(opa, connection_ipv4)
{
	union addr a = addr4(PEER4, 0);

	need_opa();
	connection(&a, NULL);
}

TEST(opa, connection_ipv6)
{
	union addr a = addr6(PEER6, 0);

	need_opa();
	connection(&a, NULL);
}

TEST(opa, connection_native)
{
	union addr a, src;

	need_opa();
	a = native("ib_b", SID_TCP, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	connection(&a, &src);
}

TEST(opa, datagrams)
{
	struct rdma_ucm_event_resp ev;
	struct rdma_ucm_ud_param *ud = (void *)&ev.param;
	union addr a = addr4(PEER4, 0);
	struct pair p = { .ps = PS_UDP };

	need_opa();
	ib_pair_routed(&p, &a, NULL);
	ib_requested(&p);
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(p.sparam.qp_num, ud->qp_num);
	check_way("ib_b", &ud->ah_attr);
	CHECK(no_event(p.sfd, 20));
}

/* A path of a program, as one is shown. */
TEST(opa, given_path)
{
	union addr a = addr4(PEER4, 0);
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	struct record r;

	need_opa();
	ib_listen(&p, &a);
	ib_resolved(&p, NULL);
	r = opa_record("ib_a", "ib_b", 0x1112131415161718);
	REQUIRE_OK(set_path(p.cfd, p.client, &r));
	NEED_EVENT(p.cfd, EV_ROUTE_RESOLVED, NULL);
	CHECK_PATH(p.cfd, p.client, &r);
	ib_requested(&p);
	ib_accepted(&p);
	attr = qp_attr(p.cfd, p.client, RTR);
	check_way("ib_b", &attr.ah_attr);
	ib_established(&p);
}

/* The LIDs of one with other GIDs are short, as everywhere. */
TEST(opa, given_path_with_short_lids)
{
	union addr dst = addr4(PEER4, 7816);
	struct record r;
	uint32_t id;
	int f;

	need_opa();
	f = fd();
	id = ib_id(f);
	NEED_ADDR(f, id, NULL, &dst);
	r = record_of("ib_a", "ib_b", 0, PKEY);
	REQUIRE_OK(set_path(f, id, &r));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	CHECK_PATH(f, id, &r);
	/* Neither has a place there then. */
	r.r[40] = 0xc0;
	id = ib_id(f);
	NEED_ADDR(f, id, NULL, &dst);
	REQUIRE_OK(set_path(f, id, &r));
	NEED_PLAIN(f, EV_ROUTE_RESOLVED, id, 0x77, 0);
	set_lid(r.r + 8, r.r[40] << 8 | r.r[41]);
	set_lid(r.r + 24, r.r[42] << 8 | r.r[43]);
	memset(r.r + 40, 0, 4);
	CHECK_PATH(f, id, &r);
}
