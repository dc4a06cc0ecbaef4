// SPDX-License-Identifier: GPL-2.0
/* SET_OPTION of level IB: a path that the program has found by itself. */
#include "abi.h"

#define USABLE 0x2b	/* for management and data, primary, there and back */

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t resolved_id(int f, uint64_t uid, const union addr *dst)
{
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, uid));

	REQUIRE_OK(resolve_addr(f, id, NULL, dst, 2000));
	if (uid)
		NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	else
		usleep(300000);
	return id;
}

static long set_path(int f, uint32_t id, const struct ib_path_rec_data *d, uint32_t len)
{
	return set_option(f, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, edge_copy(d, len), len);
}

/* The path between two addresses of IPv4, as a packed SA record. */
static struct ib_path_rec_data path(const char *src, const char *dst)
{
	struct ib_path_rec_data d = { .flags = USABLE };
	uint8_t *r = (void *)d.path_rec;
	union addr a = addr4(dst, 0), b = addr4(src, 0);

	r[18] = r[19] = r[34] = r[35] = 0xff;
	memcpy(r + 20, &a.in.sin_addr, 4);	/* DGID */
	memcpy(r + 36, &b.in.sin_addr, 4);	/* SGID */
	r[45] = 0x12, r[46] = 0x34;		/* flow label */
	r[47] = 33;				/* hop limit */
	r[48] = 0x50;				/* traffic class */
	r[49] = 0x80 | 1;			/* reversible, one path */
	r[50] = r[51] = 0xff;			/* P_Key */
	r[52] = 0x12, r[53] = 0x36;		/* QoS class, SL */
	r[54] = 0x80 | 2;			/* exactly, MTU 512 */
	r[55] = 0x80 | 3;			/* exactly, rate */
	r[56] = 0x80 | 15;			/* exactly, life time */
	r[57] = 9;				/* preference */
	return d;
}

TEST(path, lengths)
{
	struct ib_path_rec_data d[3] = { 0 };
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	CHECK_EQ(72, sizeof(d[0]));
	for (uint32_t len = 0; len < 150; len++)
		CHECK_ERR(EINVAL, set_path(f, id, d, len));
}

TEST(path, parts_of_one)
{
	union addr dst = addr4(ADDR4, 7471);
	struct ib_path_rec_data d[3];
	int f = fd();
	uint32_t id = resolved_id(f, 1, &dst);

	d[0] = d[1] = d[2] = path(ADDR4, ADDR4);
	for (uint32_t len = 0; len < 216; len++)
		if (len % 72)
			CHECK_ERR(EINVAL, set_path(f, id, d, len));
	CHECK(no_event(f, 0));
	CHECK_OK(set_path(f, id, d, 216));
}

TEST(path, without_device)
{
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
	REQUIRE_OK(bind4(f, id, "0.0.0.0", 0));
	CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
}

TEST(path, flags)
{
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = resolved_id(f, 1, &dst);

	for (d.flags = 0; d.flags < 0x80; d.flags++)
		if (d.flags != USABLE)
			CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
	d.flags = USABLE | 1u << 31;
	CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
	CHECK(no_event(f, 0));
	CHECK_OK(resolve_route(f, id, 1000));
}

TEST(path, resolves_the_route)
{
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	struct rdma_ucm_event_resp ev, want = {
		.uid = 0x77, .event = EV_ROUTE_RESOLVED,
	};
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = resolved_id(f, 0x77, &dst);

	REQUIRE_OK(set_path(f, id, &d, sizeof(d)));
	/* No later than the call returns. */
	CHECK_OK(get_event(f, &ev));
	want.id = id;
	CHECK_MEM(&want, &ev, sizeof(ev));
	/* There is one route. */
	CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
	CHECK(no_event(f, 50));
}

TEST(path, no_uid_no_event)
{
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = resolved_id(f, 0, &dst);

	REQUIRE_OK(set_path(f, id, &d, sizeof(d)));
	CHECK(no_event(f, 100));
	CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
}

TEST(path, first_usable_one)
{
	struct ib_path_rec_data d[4];
	struct rdma_ucm_query_route_resp r;
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = resolved_id(f, 1, &dst);

	for (int i = 0; i < 4; i++) {
		d[i] = path(ADDR4, ADDR4);
		((uint8_t *)d[i].path_rec)[48] = 10 + i;
		d[i].flags = i ? USABLE : 0x2a;
		d[i].reserved = 0xffffffff;
	}
	REQUIRE_OK(set_path(f, id, d, sizeof(d)));
	REQUIRE_OK(query_route(f, id, &r));
	CHECK_EQ(1, r.num_paths);
	CHECK_EQ(11, r.ib_route[0].traffic_class);
}

TEST(path, is_shown_as_it_was_set)
{
	struct { struct rdma_ucm_query_path_resp h; struct ib_path_rec_data d; } q = { 0 };
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	union addr dst = addr4(ADDR4, 7471);
	struct rdma_ucm_query_route_resp r;
	uint8_t *want = (void *)d.path_rec, *got = (void *)q.d.path_rec;
	int f = fd();
	uint32_t id = resolved_id(f, 1, &dst);

	memset(want, 0x11, 8);		/* service id */
	memset(want + 40, 0x22, 5);	/* LIDs, and a reserved part */
	want[44] &= 0x0f;
	REQUIRE_OK(set_path(f, id, &d, sizeof(d)));
	REQUIRE_OK(query(f, id, RDMA_USER_CM_QUERY_PATH, &q, sizeof(q)));
	CHECK_EQ(1, q.h.num_paths);
	CHECK_EQ(USABLE, q.d.flags);
	CHECK_MEM(want, got, 40);
	/* LIDs mean nothing; C has a hardware address in their place. */
	CHECK_MEM(want + 45, got + 45, 64 - 45);
	REQUIRE_OK(query_route(f, id, &r));
	CHECK_EQ(1, r.num_paths);
	CHECK_MEM(want + 8, r.ib_route[0].dgid, 16);
	CHECK_MEM(want + 24, r.ib_route[0].sgid, 16);
	CHECK_EQ(0, r.ib_route[0].dlid);
	CHECK_EQ(0, r.ib_route[0].slid);
	CHECK_EQ(htonl(0x21234), r.ib_route[0].flow_label);
	CHECK_EQ(33, r.ib_route[0].hop_limit);
	CHECK_EQ(0x50, r.ib_route[0].traffic_class);
	CHECK_EQ(1, r.ib_route[0].reversible);
	CHECK_EQ(1, r.ib_route[0].numb_path);
	CHECK_EQ(0xffff, r.ib_route[0].pkey);
	CHECK_EQ(6, r.ib_route[0].sl);
	CHECK_EQ(2, r.ib_route[0].mtu_selector);
	CHECK_EQ(2, r.ib_route[0].mtu);
	CHECK_EQ(2, r.ib_route[0].rate_selector);
	CHECK_EQ(3, r.ib_route[0].rate);
	CHECK_EQ(2, r.ib_route[0].packet_life_time_selector);
	CHECK_EQ(15, r.ib_route[0].packet_life_time);
	CHECK_EQ(9, r.ib_route[0].preference);
}

TEST(path, states)
{
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	union addr a = any_port4(), loop = addr4("127.0.0.1", 7471);
	struct pair p = { 0 };
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
	REQUIRE_OK(listen_id(f, id, 1));
	CHECK_ERR(EINVAL, set_path(f, id, &d, sizeof(d)));
	pair_established(&p, &a);
	CHECK_ERR(EINVAL, set_path(p.cfd, p.client, &d, sizeof(d)));
	CHECK_ERR(EINVAL, set_path(p.sfd, p.server, &d, sizeof(d)));
	CHECK_ERR(EINVAL, set_path(p.sfd, p.listener, &d, sizeof(d)));
	/* There is no interface to it. */
	id = resolved_id(f, 1, &loop);
	CHECK_ERR(ENODEV, set_path(f, id, &d, sizeof(d)));
	CHECK_ERR(ENODEV, resolve_route(f, id, 1000));
}

/* A connection that is asked for over a path. */
static void requested_over(struct pair *p, const struct ib_path_rec_data *d)
{
	union addr a = any_port4();

	pair_listen(p, &a);
	p->cfd = fd();
	p->client = resolved_id(p->cfd, 0x55, &p->addr);
	REQUIRE_OK(set_path(p->cfd, p->client, d, sizeof(*d)));
	NEED_EVENT(p->cfd, EV_ROUTE_RESOLVED, NULL);
	REQUIRE_OK(connect_id(p->cfd, p->client, &p->cparam));
	NEED_EVENT(p->sfd, EV_CONNECT_REQUEST, &p->request);
}

/* A connection over such a path, and what its queue pairs are told. */
TEST(path, connects)
{
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };

	requested_over(&p, &d);
	REQUIRE_OK(accept_id(p.sfd, p.request.id, 0x66, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
	REQUIRE_OK(init_qp_attr(p.cfd, p.client, 2, &attr));
	CHECK_EQ(2, attr.path_mtu);
	CHECK_EQ(6, attr.ah_attr.sl);
	CHECK_EQ(3, attr.ah_attr.static_rate);
	CHECK_EQ(0x21234 & 0x1234, attr.ah_attr.grh.flow_label & 0xffff);
	CHECK_EQ(33, attr.ah_attr.grh.hop_limit);
	CHECK_EQ(0x50, attr.ah_attr.grh.traffic_class);
	CHECK_MEM((uint8_t *)d.path_rec + 8, attr.ah_attr.grh.dgid, 16);
	REQUIRE_OK(init_qp_attr(p.sfd, p.request.id, 2, &attr));
	CHECK_EQ(2, attr.path_mtu);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
}

TEST(path, unknown_p_key)
{
	struct ib_path_rec_data d = path(ADDR4, ADDR4);
	struct rdma_ucm_conn_param param = conn_param();
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = resolved_id(f, 1, &dst);

	((uint8_t *)d.path_rec)[50] = 0x12;
	REQUIRE_OK(set_path(f, id, &d, sizeof(d)));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
	for (int i = 0; i < 3; i++)
		CHECK_ERR(ENOENT, connect_id(f, id, &param));
	CHECK(no_event(f, 50));
}

TEST(path, values_of_any_size)
{
	if (!is_rust())
		skip("C shifts by the life time (UBSAN: shift-out-of-bounds)");
	for (int life = 0; life < 64; life += 9) {
		struct ib_path_rec_data d = path(ADDR4, ADDR4);
		struct pair p = { 0 };

		((uint8_t *)d.path_rec)[54] = 0xff;
		((uint8_t *)d.path_rec)[55] = 0xff;
		((uint8_t *)d.path_rec)[56] = 0xc0 | life;
		requested_over(&p, &d);
		close(p.cfd);
		close(p.sfd);
	}
}
