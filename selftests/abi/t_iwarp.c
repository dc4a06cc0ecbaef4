// SPDX-License-Identifier: GPL-2.0
/*
 * Connections over iWARP: device siw0 over interface w0, which selftests/iwarp.sh
 * makes. The iWARP CM takes queue pairs by number, so these are real ones.
 */
#include <infiniband/verbs.h>

#include "mcast.h"

#define IWARP4 "10.80.0.1"
#define IWARP6 "fd80::1"

/* enum ib_qp_attr_mask, enum ib_access_flags */
#define ATTR_STATE (1 << 0)
#define ATTR_ACCESS (1 << 3)
#define ATTR_PORT (1 << 5)
#define ACCESS_WRITE_READ ((1 << 1) | (1 << 2))

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qps[8];
static int n_qps;

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static void need_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), "siw0") == 0)
			device = ibv_open_device(list[i]);
	if (!device)
		skip("no iWARP device siw0: selftests/iwarp.sh makes it");
	pd = ibv_alloc_pd(device);
	cq = ibv_create_cq(device, 10, NULL, NULL, 0);
	REQUIRE(pd && cq);
}

static struct ibv_qp *new_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	REQUIRE(qp && n_qps < 8);
	qps[n_qps++] = qp;
	return qp;
}

/* The removal of a device waits for those who have it open for verbs, also by memory. */
static void release_device(void)
{
	while (n_qps > 0)
		CHECK_EQ(0, ibv_destroy_qp(qps[--n_qps]));
	CHECK_EQ(0, ibv_destroy_cq(cq));
	CHECK_EQ(0, ibv_dealloc_pd(pd));
	CHECK_EQ(0, ibv_close_device(device));
	device = NULL;
}

/* Parameters with a queue pair of one's own. */
static struct rdma_ucm_conn_param with_qp(void)
{
	struct rdma_ucm_conn_param param = conn_param();

	param.qp_num = new_qp()->qp_num;
	return param;
}

static void set_data(struct rdma_ucm_conn_param *param, uint8_t len)
{
	param->private_data_len = len;
	for (int i = 0; i < len; i++)
		param->private_data[i] = i ^ 0x5a;
}

static void check_data(const struct rdma_ucm_event_resp *ev, uint8_t len)
{
	struct rdma_ucm_conn_param want = { 0 };

	set_data(&want, len);
	CHECK_EQ(len, ev->param.conn.private_data_len);
	CHECK_MEM(want.private_data, ev->param.conn.private_data, sizeof(want.private_data));
}

/* The GID of an interface: its hardware address. */
static void mac_gid(const char *name, uint8_t gid[16])
{
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address", name);
	f = fopen(path, "r");
	REQUIRE(f);
	memset(gid, 0, 16);
	REQUIRE_EQ(6, fscanf(f, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &gid[0], &gid[1], &gid[2],
			     &gid[3], &gid[4], &gid[5]));
	fclose(f);
}

static uint32_t bound(int f, uint16_t ps, uint16_t port)
{
	uint32_t id = REQUIRE_ID(create_id(f, ps, 0x77));

	REQUIRE_OK(bind4(f, id, IWARP4, port));
	return id;
}

static uint32_t listening(int f, uint16_t port, int backlog)
{
	uint32_t id = bound(f, PS_TCP, port);

	REQUIRE_OK(listen_id(f, id, backlog));
	return id;
}

static uint32_t listening_anywhere(int f, uint16_t port)
{
	union addr any = addr4("0.0.0.0", port);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0x99));

	REQUIRE_OK(bind_addr(f, id, &any));
	REQUIRE_OK(listen_id(f, id, 0));
	return id;
}

/* A client that has asked for a connection. */
static uint32_t asking(int f, uint16_t port)
{
	struct rdma_ucm_conn_param param = with_qp();
	union addr dst = addr4(IWARP4, port);
	uint32_t id = routed_client(f, port, &dst);

	REQUIRE_OK(connect_id(f, id, &param));
	return id;
}

/* A connection, step by step. */
struct ends {
	int s, c;
	uint32_t listener, server, client;
	struct rdma_ucm_conn_param sparam, cparam;
	struct rdma_ucm_event_resp request, sev, cev;
};

static void asked(struct ends *e, uint16_t port)
{
	union addr dst = addr4(IWARP4, port);

	e->s = fd();
	e->c = fd();
	if (!e->cparam.valid)
		e->cparam = with_qp();
	e->sparam = with_qp();
	e->listener = listening(e->s, port, 0);
	e->client = routed_client(e->c, 0x33, &dst);
	REQUIRE_OK(connect_id(e->c, e->client, &e->cparam));
	NEED_EVENT(e->s, EV_CONNECT_REQUEST, &e->request);
	e->server = e->request.id;
}

static void established(struct ends *e, uint16_t port)
{
	asked(e, port);
	REQUIRE_OK(accept_id(e->s, e->server, 0x22, &e->sparam));
	NEED_EVENT(e->s, EV_ESTABLISHED, &e->sev);
	NEED_EVENT(e->c, EV_ESTABLISHED, &e->cev);
}

TEST(iwarp, bound_id)
{
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query_addr_resp addr;
	struct ib_uverbs_qp_attr attr;
	struct sockaddr_ib *ib;
	uint8_t gid[16], none[16] = { 0 };
	uint32_t id;
	int f;

	need_device();
	mac_gid("w0", gid);
	f = fd();
	id = bound(f, PS_TCP, 0);
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(1, addr.port_num);
	CHECK_EQ(0, addr.pkey);
	CHECK_EQ(ibv_get_device_guid(device->device), addr.node_guid);
	REQUIRE_OK(query_gid(f, id, &addr));
	ib = (struct sockaddr_ib *)&addr.src_addr;
	CHECK_MEM(gid, ib->gid, 16);
	ib = (struct sockaddr_ib *)&addr.dst_addr;
	CHECK_MEM(none, ib->gid, 16);
	REQUIRE_OK(query_route(f, id, &route));
	CHECK_EQ(0, route.num_paths);
	CHECK_MEM(gid, route.ib_route[0].sgid, 16);
	CHECK_MEM(none, route.ib_route[0].dgid, 16);
	CHECK_EQ(0, route.ib_route[0].pkey);
	for (uint32_t state = 0; state <= 6; state++) {
		CHECK_OK(init_qp_attr(f, id, state, &attr));
		CHECK_EQ(ATTR_STATE | ATTR_ACCESS | ATTR_PORT, attr.qp_attr_mask);
		CHECK_EQ(state, attr.qp_state);
		CHECK_EQ(0, attr.qp_access_flags);
		CHECK_EQ(1, attr.port_num);
	}
	CHECK_ERR(EINVAL, notify_id(f, id, 4));
	CHECK_ERR(EINVAL, disconnect_id(f, id));
	CHECK_ERR(EINVAL, reject_id(f, id, NULL, 0, 0));
	CHECK_ERR(EINVAL, accept_id(f, id, 1, NULL));
	CHECK_ERR(EINVAL, resolve_route(f, id, 1000));
}

/* Of two devices, the one whose interface has the address. */
TEST(iwarp, address_of_another_device)
{
	struct rdma_ucm_query_addr_resp iwarp, other;
	uint32_t id;
	int f;

	need_device();
	f = fd();
	REQUIRE_OK(query_addr(f, bound(f, PS_TCP, 0), &iwarp));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	REQUIRE_OK(query_addr(f, id, &other));
	CHECK(iwarp.ibdev_index != other.ibdev_index);
	CHECK(iwarp.node_guid != other.node_guid);
}

TEST(iwarp, route)
{
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query_path_resp path;
	union addr dst = addr4(IWARP4, 7471);
	struct rdma_ucm_event_resp ev;
	struct sockaddr_ib *ib;
	uint8_t gid[16];
	uint32_t id;
	int f;

	need_device();
	mac_gid("w0", gid);
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_TCP, 5));
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, &ev);
	REQUIRE_OK(query_gid(f, id, &addr));
	ib = (struct sockaddr_ib *)&addr.dst_addr;
	CHECK_MEM(gid, ib->gid, 16);
	CHECK_ERR(EINVAL, resolve_route(f, id, 0));
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, &ev);
	CHECK_EQ(0, ev.status);
	REQUIRE_OK(query_route(f, id, &route));
	CHECK_EQ(0, route.num_paths);
	REQUIRE_OK(query(f, id, 1, &path, sizeof(path)));
	CHECK_EQ(0, path.num_paths);
	CHECK_ERR(EINVAL, disconnect_id(f, id));
	CHECK_ERR(EINVAL, resolve_route(f, id, 2000));
}

TEST(iwarp, groups)
{
	int f;

	need_device();
	f = fd();
	CHECK_ERR(ENOSYS, join4(f, bound(f, PS_UDP, 0), 1, "239.1.1.1", 0));
	CHECK_ERR(EINVAL, join4(f, bound(f, PS_TCP, 0), 1, "239.1.1.1", 0));
}

TEST(iwarp, nobody_listens)
{
	struct rdma_ucm_conn_param param;
	union addr dst = addr4(IWARP4, 7900);
	struct rdma_ucm_query_addr_resp before, after;
	uint32_t id;
	int f;

	need_device();
	f = fd();
	param = with_qp();
	id = routed_client(f, 1, &dst);
	REQUIRE_OK(query_addr(f, id, &before));
	for (int i = 0; i < 2; i++)
		CHECK_ERR(ECONNREFUSED, connect_id(f, id, &param));
	REQUIRE_OK(query_addr(f, id, &after));
	CHECK_MEM(&before, &after, sizeof(before));
	param.qp_num = fake_qpn();
	CHECK_ERR(EINVAL, connect_id(f, id, &param));
	CHECK_ERR(EINVAL, disconnect_id(f, id));
	CHECK_ERR(EINVAL, notify_id(f, id, 4));
	CHECK(no_event(f, 100));
}

static void check_states(int f, uint32_t id)
{
	struct ib_uverbs_qp_attr attr;

	for (uint32_t state = 0; state <= 6; state++) {
		long ret = init_qp_attr(f, id, state, &attr);

		switch (state) {
		case IBV_QPS_INIT:
		case IBV_QPS_RTR:
			CHECK_OK(ret);
			CHECK_EQ(ATTR_STATE | ATTR_ACCESS | ATTR_PORT, attr.qp_attr_mask);
			CHECK_EQ(ACCESS_WRITE_READ, attr.qp_access_flags);
			break;
		case IBV_QPS_RTS:
			CHECK_OK(ret);
			CHECK_EQ(ATTR_PORT, attr.qp_attr_mask);
			break;
		default:
			CHECK_ERR(EINVAL, ret);
		}
	}
}

TEST(iwarp, connection)
{
	struct rdma_ucm_query_addr_resp addr, peer;
	struct ends e = { 0 };

	need_device();
	e.cparam = with_qp();
	e.cparam.responder_resources = 3;
	e.cparam.initiator_depth = 5;
	set_data(&e.cparam, 5);
	asked(&e, 7901);
	CHECK_EQ(0x77, e.request.uid);
	CHECK_EQ(0, e.request.status);
	CHECK_EQ(5, e.request.param.conn.responder_resources);
	CHECK_EQ(3, e.request.param.conn.initiator_depth);
	CHECK_EQ(0, e.request.param.conn.qp_num);
	check_data(&e.request, 5);
	REQUIRE_OK(query_addr(e.s, e.server, &addr));
	REQUIRE_OK(query_addr(e.c, e.client, &peer));
	CHECK_MEM(&addr.src_addr, &peer.dst_addr, addr.src_size);
	CHECK_MEM(&addr.dst_addr, &peer.src_addr, addr.dst_size);
	CHECK_EQ(1, addr.port_num);
	check_states(e.s, e.server);
	CHECK_OK(notify_id(e.s, e.server, 4));
	CHECK_OK(disconnect_id(e.s, e.server));

	e.sparam.responder_resources = 5;
	e.sparam.initiator_depth = 3;
	set_data(&e.sparam, 7);
	REQUIRE_OK(accept_id(e.s, e.server, 0x22, &e.sparam));
	NEED_EVENT(e.s, EV_ESTABLISHED, &e.sev);
	CHECK_EQ(0x22, e.sev.uid);
	CHECK_EQ(3, e.sev.param.conn.responder_resources);
	CHECK_EQ(5, e.sev.param.conn.initiator_depth);
	check_data(&e.sev, 0);
	NEED_EVENT(e.c, EV_ESTABLISHED, &e.cev);
	CHECK_EQ(0x33, e.cev.uid);
	CHECK_EQ(5, e.cev.param.conn.responder_resources);
	CHECK_EQ(3, e.cev.param.conn.initiator_depth);
	check_data(&e.cev, 7);
	check_states(e.c, e.client);
	CHECK_ERR(EINVAL, accept_id(e.s, e.server, 0x22, &e.sparam));
	CHECK_ERR(EINVAL, reject_id(e.s, e.server, NULL, 0, 0));
	CHECK_ERR(EINVAL, accept_id(e.c, e.client, 0x33, NULL));
	CHECK_ERR(EINVAL, connect_id(e.c, e.client, &e.cparam));
	CHECK_OK(notify_id(e.c, e.client, 4));

	REQUIRE_OK(disconnect_id(e.c, e.client));
	NEED_EVENT(e.c, EV_DISCONNECTED, &e.cev);
	CHECK_EQ(0, e.cev.status);
	NEED_EVENT(e.s, EV_DISCONNECTED, &e.sev);
	CHECK_EQ(0, e.sev.status);
	CHECK_OK(disconnect_id(e.c, e.client));
	CHECK_OK(disconnect_id(e.s, e.server));
	check_states(e.c, e.client);
	/* There is no time wait. */
	CHECK(no_event(e.c, 300));
	CHECK_EQ(4, REQUIRE_ID(destroy_id(e.c, e.client)));
	CHECK_EQ(2, REQUIRE_ID(destroy_id(e.s, e.server)));
}

TEST(iwarp, ipv6)
{
	struct ends e = { .s = fd(), .c = fd() };
	union addr a = addr6(IWARP6, 7902);

	need_device();
	e.cparam = with_qp();
	e.sparam = with_qp();
	e.listener = REQUIRE_ID(create_id(e.s, PS_TCP, 1));
	REQUIRE_OK(bind_addr(e.s, e.listener, &a));
	REQUIRE_OK(listen_id(e.s, e.listener, 0));
	e.client = routed_client(e.c, 2, &a);
	REQUIRE_OK(connect_id(e.c, e.client, &e.cparam));
	NEED_EVENT(e.s, EV_CONNECT_REQUEST, &e.request);
	REQUIRE_OK(accept_id(e.s, e.request.id, 3, &e.sparam));
	NEED_EVENT(e.s, EV_ESTABLISHED, NULL);
	NEED_EVENT(e.c, EV_ESTABLISHED, NULL);
}

TEST(iwarp, much_private_data)
{
	struct ends e = { 0 };

	need_device();
	e.cparam = with_qp();
	/* What the driver can send. */
	set_data(&e.cparam, 251);
	asked(&e, 7903);
	check_data(&e.request, 251);
}

TEST(iwarp, rejected)
{
	uint8_t data[] = { 0x5a, 0x5b, 0x58 };
	struct ends e = { 0 };

	need_device();
	asked(&e, 7904);
	CHECK_OK(reject_id(e.s, e.server, data, sizeof(data), 0));
	NEED_EVENT(e.c, EV_REJECTED, &e.cev);
	CHECK_EQ((uint32_t)-ECONNRESET, e.cev.status);
	check_data(&e.cev, sizeof(data));
	CHECK_ERR(EINVAL, reject_id(e.s, e.server, NULL, 0, 0));
	CHECK_ERR(EINVAL, accept_id(e.s, e.server, 1, &e.sparam));
	CHECK_OK(disconnect_id(e.s, e.server));
	CHECK_OK(disconnect_id(e.c, e.client));
	CHECK_ERR(EINVAL, connect_id(e.c, e.client, &e.cparam));
	CHECK(no_event(e.s, 200));
	CHECK(no_event(e.c, 0));
}

TEST(iwarp, accepted_without_parameters)
{
	struct ends e = { 0 };

	need_device();
	asked(&e, 7905);
	CHECK_ERR(EINVAL, accept_id(e.s, e.server, 1, NULL));
	NEED_EVENT(e.c, EV_REJECTED, &e.cev);
	CHECK_ERR(EINVAL, accept_id(e.s, e.server, 1, &e.sparam));
}

TEST(iwarp, accepted_without_queue_pair)
{
	struct ends e = { 0 };

	need_device();
	asked(&e, 7906);
	e.sparam.qp_num = fake_qpn();
	CHECK_ERR(EINVAL, accept_id(e.s, e.server, 1, &e.sparam));
	NEED_EVENT(e.c, EV_REJECTED, &e.cev);
	CHECK_ERR(EINVAL, reject_id(e.s, e.server, NULL, 0, 0));
}

TEST(iwarp, request_destroyed)
{
	struct ends e = { 0 };

	need_device();
	asked(&e, 7907);
	CHECK_EQ(0, REQUIRE_ID(destroy_id(e.s, e.server)));
	NEED_EVENT(e.c, EV_REJECTED, &e.cev);
	CHECK_EQ((uint32_t)-ECONNRESET, e.cev.status);
}

TEST(iwarp, connection_destroyed)
{
	struct ends e = { 0 };

	need_device();
	established(&e, 7908);
	REQUIRE_ID(destroy_id(e.s, e.server));
	NEED_EVENT(e.c, EV_DISCONNECTED, &e.cev);
	CHECK_EQ(0, e.cev.status);
}

TEST(iwarp, file_closed)
{
	struct ends e = { 0 };

	need_device();
	established(&e, 7910);
	close(e.s);
	NEED_EVENT(e.c, EV_DISCONNECTED, &e.cev);
}

TEST(iwarp, backlog)
{
	struct rdma_ucm_event_resp ev;
	uint32_t other;
	int s, c;

	need_device();
	s = fd();
	c = fd();
	listening(s, 7911, 1);
	asking(c, 7911);
	CHECK(no_event(c, 500));
	other = asking(c, 7911);
	NEED_EVENT(c, EV_REJECTED, &ev);
	CHECK_EQ(other, ev.id);
	NEED_EVENT(s, EV_CONNECT_REQUEST, NULL);
}

TEST(iwarp, listener)
{
	struct ib_uverbs_qp_attr attr;
	uint32_t id;
	int f;

	need_device();
	f = fd();
	id = listening(f, 7912, 3);
	CHECK_ERR(EINVAL, disconnect_id(f, id));
	CHECK_ERR(EINVAL, reject_id(f, id, NULL, 0, 0));
	CHECK_OK(notify_id(f, id, 4));
	CHECK_ERR(EINVAL, listen_id(f, id, 3));
	for (uint32_t state = 0; state <= 6; state++)
		CHECK_ERR(EINVAL, init_qp_attr(f, id, state, &attr));
	/* The port is free as soon as the listener is gone. */
	for (int i = 0; i < 20; i++) {
		REQUIRE_ID(destroy_id(f, id));
		id = listening(f, 7912, 3);
	}
}

TEST(iwarp, address_in_use)
{
	union addr a = addr4(IWARP4, 7913), any = addr4("0.0.0.0", 7913);
	uint32_t id, wildcard;
	int f, tcp;

	need_device();
	f = fd();
	tcp = socket(AF_INET, SOCK_STREAM, 0);
	REQUIRE_OK(bind(tcp, &a.sa, sizeof(a.in)));
	REQUIRE_OK(listen(tcp, 1));
	id = bound(f, PS_TCP, 7913);
	CHECK_ERR(EADDRINUSE, listen_id(f, id, 1));
	REQUIRE_ID(destroy_id(f, id));
	close(tcp);

	tcp = socket(AF_INET, SOCK_STREAM, 0);
	REQUIRE_OK(bind(tcp, &any.sa, sizeof(any.in)));
	REQUIRE_OK(listen(tcp, 1));
	wildcard = REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_OK(bind_addr(f, wildcard, &any));
	CHECK_ERR(EADDRINUSE, listen_id(f, wildcard, 1));
	close(tcp);
	REQUIRE_OK(listen_id(f, wildcard, 1));
}

TEST(iwarp, wildcard)
{
	union addr dst = addr4(IWARP4, 7914);
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_event_resp ev;
	uint32_t id;
	int s, c;

	need_device();
	s = fd();
	c = fd();
	id = listening_anywhere(s, 7914);
	CHECK_ERR(EINVAL, disconnect_id(s, id));
	asking(c, 7914);
	NEED_EVENT(s, EV_CONNECT_REQUEST, &ev);
	CHECK_EQ(0x99, ev.uid);
	REQUIRE_OK(query_addr(s, ev.id, &addr));
	CHECK_MEM(&dst, &addr.src_addr, 8);
	CHECK_EQ(1, addr.port_num);
	/* A request that was read outlives its listener. */
	REQUIRE_ID(destroy_id(s, id));
	CHECK_OK(reject_id(s, ev.id, NULL, 0, 0));
	NEED_EVENT(c, EV_REJECTED, NULL);
}

TEST(iwarp, unread_request_goes_with_its_listener)
{
	uint32_t id;
	int s, c;

	need_device();
	s = fd();
	c = fd();
	id = listening(s, 7915, 0);
	asking(c, 7915);
	CHECK(no_event(c, 300));
	REQUIRE_ID(destroy_id(s, id));
	NEED_EVENT(c, EV_REJECTED, NULL);
}

TEST(iwarp, moves)
{
	struct ends e = { 0 };
	int other;

	need_device();
	established(&e, 7916);
	other = fd();
	REQUIRE_ID(migrate_id(other, e.client, e.c));
	REQUIRE_OK(disconnect_id(e.s, e.server));
	NEED_EVENT(other, EV_DISCONNECTED, &e.cev);
	CHECK_EQ(e.client, e.cev.id);
	CHECK(no_event(e.c, 0));
}

TEST(iwarp, options)
{
	struct ib_uverbs_qp_attr attr;
	uint8_t tos = 0x20, timeout = 14;
	int on = 1, off = 0, f;
	uint32_t id;

	need_device();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	CHECK_OK(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	CHECK_OK(set_option(f, id, 0, RDMA_OPTION_ID_REUSEADDR, &on, 4));
	CHECK_OK(set_option(f, id, 0, RDMA_OPTION_ID_AFONLY, &on, 4));
	CHECK_OK(set_option(f, id, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	REQUIRE_OK(bind4(f, id, IWARP4, 7917));
	CHECK_ERR(EINVAL, set_option(f, id, 0, RDMA_OPTION_ID_REUSEADDR, &off, 4));
	CHECK_OK(init_qp_attr(f, id, IBV_QPS_RTS, &attr));
	CHECK_EQ(0, attr.timeout);
	REQUIRE_OK(listen_id(f, id, 1));
	CHECK_ERR(EINVAL, set_option(f, id, 0, RDMA_OPTION_ID_AFONLY, &off, 4));
	CHECK_ERR(EINVAL, set_option(f, id, 0, RDMA_OPTION_ID_REUSEADDR, &on, 4));
}

/* iWARP knows one kind of connection, whatever the port space. */
TEST(iwarp, datagram_port_space)
{
	union addr dst = addr4(IWARP4, 7918);
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_event_resp ev;
	struct ib_uverbs_qp_attr attr;
	uint32_t id, client;
	int s, c;

	need_device();
	s = fd();
	c = fd();
	id = bound(s, PS_UDP, 7918);
	REQUIRE_OK(listen_id(s, id, 0));
	client = REQUIRE_ID(create_id(c, PS_UDP, 1));
	REQUIRE_OK(resolve_addr(c, client, NULL, &dst, 2000));
	NEED_EVENT(c, EV_ADDR_RESOLVED, NULL);
	REQUIRE_OK(resolve_route(c, client, 2000));
	NEED_EVENT(c, EV_ROUTE_RESOLVED, NULL);
	CHECK_OK(init_qp_attr(c, client, IBV_QPS_INIT, &attr));
	CHECK_EQ(ATTR_STATE | ATTR_ACCESS | ATTR_PORT, attr.qp_attr_mask);
	param = with_qp();
	REQUIRE_OK(connect_id(c, client, &param));
	NEED_EVENT(s, EV_CONNECT_REQUEST, &ev);
	param = with_qp();
	REQUIRE_OK(accept_id(s, ev.id, 2, &param));
	NEED_EVENT(s, EV_ESTABLISHED, NULL);
	NEED_EVENT(c, EV_ESTABLISHED, NULL);
}

TEST(iwarp, loopback_addresses)
{
	union addr dst = addr4("127.0.0.1", 7471);
	struct rdma_ucm_query_addr_resp addr;
	uint32_t id;
	int f;

	need_device();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	/* The first device there is, which may be of another kind. */
	if (resolve_addr(f, id, NULL, &dst, 1000) == 0) {
		NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
		REQUIRE_OK(query_addr(f, id, &addr));
		CHECK(addr.ibdev_index != 0xffffffff);
	}
}

TEST(iwarp, device_removed)
{
	uint32_t listener, client, idle;
	struct rdma_ucm_event_resp ev;
	struct ends e = { 0 };
	int f;

	need_device();
	established(&e, 7919);
	f = fd();
	listener = listening(f, 7920, 0);
	idle = bound(f, PS_TCP, 0);
	client = e.client;
	/* It does not wait for ids. */
	REQUIRE_EQ(0, system("(rdma link del siw0; echo $? >/tmp/siw0-gone) &"));
	for (int i = 0; i < 2; i++) {
		NEED_EVENT(f, EV_DEVICE_REMOVAL, &ev);
		CHECK(ev.id == listener || ev.id == idle);
	}
	do
		REQUIRE_EQ(0, wait_event(e.c, &ev, 5000) < 0);
	while (ev.event != EV_DEVICE_REMOVAL);
	CHECK_EQ(client, ev.id);
	for (int i = 0; i < 200 && disconnect_id(e.c, client) != -ENXIO; i++)
		usleep(10000);
	CHECK_ERR(ENXIO, disconnect_id(e.c, client));
	CHECK_ERR(ENXIO, disconnect_id(f, listener));
	release_device();
	for (int i = 0; i < 1000 && read_number("/tmp/siw0-gone") < 0; i++)
		usleep(10000);
	CHECK_EQ(0, read_number("/tmp/siw0-gone"));
	unlink("/tmp/siw0-gone");
	REQUIRE_ID(destroy_id(e.c, client));
	REQUIRE_ID(destroy_id(f, listener));
	REQUIRE_EQ(0, system("rdma link add siw0 type siw netdev w0"));
}

TEST(iwarp, wildcard_takes_in_a_device_that_comes)
{
	int s, c;

	need_device();
	release_device();
	s = fd();
	c = fd();
	listening_anywhere(s, 7921);
	REQUIRE_EQ(0, system("timeout 20 rdma link del siw0"));
	CHECK(no_event(s, 100));
	REQUIRE_EQ(0, system("rdma link add siw0 type siw netdev w0"));
	need_device();
	asking(c, 7921);
	NEED_EVENT(s, EV_CONNECT_REQUEST, NULL);
}

/* A TCP server that takes connections and says nothing. */
static int mute(uint16_t port)
{
	union addr a = addr4(IWARP4, port);
	int tcp = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	REQUIRE_OK(setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)));
	REQUIRE_OK(bind(tcp, &a.sa, sizeof(a.in)));
	REQUIRE_OK(listen(tcp, 5));
	return tcp;
}

TEST(iwarp, mute_peer)
{
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_event_resp ev;
	uint32_t id;
	int f;

	need_device();
	f = fd();
	mute(7922);
	param = with_qp();
	id = asking(f, 7922);
	CHECK_ERR(EINVAL, connect_id(f, id, &param));
	REQUIRE_OK(wait_event(f, &ev, 25000));
	CHECK_EQ(EV_UNREACHABLE, ev.event);
	CHECK_EQ((uint32_t)-ETIMEDOUT, ev.status);
}

/*
 * Answers where there is nothing to answer: C's iWARP CM forgets that it awaits an
 * answer itself, and stops the kernel when the id is destroyed.
 */
TEST(iwarp, wrong_answers)
{
	struct rdma_ucm_conn_param param;
	struct ends e = { 0 };
	uint32_t id;
	int f;

	need_device();
	if (!is_rust())
		skip("these calls stop a kernel with the C modules");
	f = fd();
	mute(7923);
	param = with_qp();
	id = asking(f, 7923);
	CHECK_ERR(EINVAL, reject_id(f, id, NULL, 0, 0));
	CHECK_ERR(EINVAL, accept_id(f, id, 1, &param));
	CHECK_ERR(EINVAL, accept_id(f, id, 1, NULL));
	CHECK_OK(disconnect_id(f, id));
	/* The harness sees whether this waits for the peer. */
	alarm(5);
	REQUIRE_ID(destroy_id(f, id));
	alarm(0);

	asked(&e, 7924);
	CHECK_OK(accept_id(e.s, e.server, 1, &e.sparam));
	CHECK_ERR(EINVAL, accept_id(e.s, e.server, 1, &e.sparam));
	CHECK_ERR(EINVAL, reject_id(e.s, e.server, NULL, 0, 0));
	NEED_EVENT(e.c, EV_ESTABLISHED, NULL);
}
