// SPDX-License-Identifier: GPL-2.0
/*
 * Datagram services: an id asks for one (SIDR_REQ), another one says which queue
 * pair serves it (SIDR_REP). There is no connection after that.
 */
#include "abi.h"

#define QKEY 0x01234567

/* enum ib_qp_attr_mask */
#define DATAGRAM_MASK (1 << 0 | 1 << 4 | 1 << 5 | 1 << 6)
/* enum ib_qp_state */
#define RTR 2

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static struct pair asked(void)
{
	struct pair p = { .ps = PS_UDP };
	union addr a = any_port4();

	pair_requested(&p, &a);
	return p;
}

static struct pair routed(void)
{
	struct pair p = { .ps = PS_UDP };
	union addr a = any_port4();

	pair_routed(&p, &a);
	return p;
}

/* The answer that the client gets. */
static void refused(int line, struct pair *p, int status)
{
	struct rdma_ucm_event_resp ev;

	need_event(__FILE__, line, p->cfd, EV_UNREACHABLE, &ev);
	check_eq(__FILE__, line, "status", status, ev.status);
	check_eq(__FILE__, line, "id", p->client, ev.id);
	check_eq(__FILE__, line, "length", 136, ev.param.ud.private_data_len);
	check_eq(__FILE__, line, "qp_num", 0, ev.param.ud.qp_num);
	check_eq(__FILE__, line, "qkey", 0, ev.param.ud.qkey);
}
#define NEED_REFUSAL(p, status) refused(__LINE__, p, status)

TEST(datagram, request_event)
{
	struct pair p = { .ps = PS_UDP, .listener_uid = 0x1234567890abcdef };
	struct rdma_ucm_ud_param want = { .private_data_len = 180 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	p.cparam.private_data_len = 40;
	memset(p.cparam.private_data, 0x5d, 256);
	memset(want.private_data, 0x5d, 40);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	CHECK_EQ(0x1234567890abcdef, p.request.uid);
	CHECK(p.request.id != p.listener);
	CHECK_EQ(0, p.request.status);
	CHECK_MEM(&want, &p.request.param.ud, sizeof(want));
	CHECK_EQ(0, p.request.ece.vendor_id);
	CHECK_EQ(0, p.request.ece.attr_mod);
}

TEST(datagram, established_event)
{
	struct pair p = { .ps = PS_UDP, .client_uid = 0xfedcba9876543210 };
	struct rdma_ucm_ud_param want = { .private_data_len = 136 };
	struct rdma_ucm_event_resp ev;
	struct ib_uverbs_qp_attr attr;
	struct pair rc = { 0 };
	union addr a = any_port4();

	/* The way to the service is the one that a connection has. */
	pair_accepted(&rc, &a);
	REQUIRE_OK(init_qp_attr(rc.cfd, rc.client, RTR, &attr));
	pair_requested(&p, &a);
	p.sparam.private_data_len = 20;
	memset(p.sparam.private_data, 0x31, 256);
	p.sparam.qp_num = 0xff123456;
	REQUIRE_OK(accept_id(p.sfd, p.request.id, 7, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(0xfedcba9876543210, ev.uid);
	CHECK_EQ(p.client, ev.id);
	CHECK_EQ(0, ev.status);
	memset(want.private_data, 0x31, 20);
	want.qp_num = 0x123456;
	want.qkey = QKEY;
	want.ah_attr = attr.ah_attr;
	/* It differs between connections. */
	want.ah_attr.grh.flow_label = ev.param.ud.ah_attr.grh.flow_label;
	CHECK_EQ(1, want.ah_attr.is_global);
	CHECK_MEM(&want, &ev.param.ud, sizeof(want));
	/* The server hears nothing more. */
	CHECK(no_event(p.sfd, 100));
	CHECK_EQ(3, REQUIRE_ID(destroy_id(p.cfd, p.client)));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(p.sfd, p.server)));
	CHECK_EQ(1, REQUIRE_ID(destroy_id(p.sfd, p.listener)));
}

TEST(datagram, ece_is_not_passed_on)
{
	struct pair p = asked();
	struct rdma_ucm_accept req = {
		.uid = 1, .conn_param = p.sparam, .id = p.server, .ece = { 0x3456, 0x99 },
	};
	struct rdma_ucm_event_resp ev;

	REQUIRE_OK(cm_cmd(p.sfd, RDMA_USER_CM_CMD_ACCEPT, &req, sizeof(req), 0));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(0, ev.ece.vendor_id);
	CHECK_EQ(0, ev.ece.attr_mod);
}

TEST(datagram, qkey_is_that_of_the_port_space)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = asked();

	/* One that the user names is for native addresses. */
	p.sparam.qkey = 0x7777;
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(QKEY, ev.param.ud.qkey);
}

TEST(datagram, accept_without_parameters)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = asked();

	REQUIRE_OK(accept_id(p.sfd, p.server, 1, NULL));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(0, ev.param.ud.qp_num);
	CHECK_EQ(QKEY, ev.param.ud.qkey);
}

TEST(datagram, answered_once)
{
	struct pair p = asked();

	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, NULL));
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, NULL, 0, 0));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
	CHECK_ERR(EINVAL, accept_id(p.cfd, p.client, 1, NULL));
	CHECK_ERR(EINVAL, accept_id(p.cfd, p.client, 1, &p.cparam));
	CHECK_ERR(EINVAL, reject_id(p.cfd, p.client, NULL, 0, 0));
	CHECK(no_event(p.cfd, 100));
}

TEST(datagram, nothing_to_disconnect)
{
	struct pair p = routed();
	struct rdma_ucm_event_resp ev;

	CHECK_ERR(EINVAL, disconnect_id(p.cfd, p.client));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	CHECK_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
	CHECK_OK(disconnect_id(p.sfd, ev.id));
	REQUIRE_OK(accept_id(p.sfd, ev.id, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
	CHECK_OK(disconnect_id(p.cfd, p.client));
	CHECK_OK(disconnect_id(p.sfd, ev.id));
	CHECK(no_event(p.cfd, 100));
	CHECK(no_event(p.sfd, 100));
}

TEST(datagram, nothing_to_notify)
{
	struct pair p = asked();

	CHECK_ERR(EINVAL, notify_id(p.sfd, p.server, 4));
	CHECK_ERR(EINVAL, notify_id(p.cfd, p.client, 4));
	CHECK_ERR(EINVAL, notify_id(p.cfd, p.client, 6));
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
	CHECK_ERR(EINVAL, notify_id(p.sfd, p.server, 4));
	CHECK_ERR(EINVAL, notify_id(p.cfd, p.client, 4));
}

TEST(datagram, connect_once)
{
	struct pair p = { .ps = PS_UDP };
	union addr a = any_port4();

	pair_resolved_addr(&p, &a);
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	NEED_ROUTE(p.cfd, p.client);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	CHECK_ERR(EINVAL, resolve_route(p.cfd, p.client, 2000));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, NULL);
	CHECK(no_event(p.sfd, 100));
}

TEST(datagram, request_lengths)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = routed();

	memset(p.cparam.private_data, 0x42, 256);
	for (int len = 255; len > 180; len -= 5) {
		p.cparam.private_data_len = len;
		CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	}
	p.cparam.private_data_len = 181;
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	CHECK(no_event(p.sfd, 50));
	p.cparam.private_data_len = 180;
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
	CHECK_MEM(p.cparam.private_data, ev.param.ud.private_data, 180);
	CHECK_EQ(0, ev.param.ud.private_data[180]);
}

TEST(datagram, accept_lengths)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = asked();

	memset(p.sparam.private_data, 0x42, 256);
	p.sparam.private_data_len = 136;
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_MEM(p.sparam.private_data, ev.param.ud.private_data, 136);
	CHECK_EQ(0, ev.param.ud.private_data[136]);
}

TEST(datagram, accept_too_long)
{
	struct pair p = asked();

	/* An accept that fails refuses. */
	p.sparam.private_data_len = 137;
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_REFUSAL(&p, 2);
}

TEST(datagram, reject)
{
	static const uint8_t reasons[] = { 0, 28, 35 };
	uint8_t data[256] = { 0 };

	memset(data, 0x17, 136);
	for (size_t i = 0; i < sizeof(reasons); i++) {
		struct rdma_ucm_event_resp ev;
		struct pair p = asked();

		CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, data, 1, 27));
		CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, data, 137, reasons[i]));
		CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, data, 255, reasons[i]));
		REQUIRE_OK(reject_id(p.sfd, p.server, data, 136, reasons[i]));
		NEED_EVENT(p.cfd, EV_UNREACHABLE, &ev);
		CHECK_EQ(2, ev.status);
		CHECK_EQ(136, ev.param.ud.private_data_len);
		CHECK_MEM(data, ev.param.ud.private_data, 256);
		CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	}
}

TEST(datagram, nobody_there)
{
	struct pair p = routed();

	REQUIRE_OK(destroy_id(p.sfd, p.listener));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_REFUSAL(&p, 1);
}

TEST(datagram, listener_in_another_namespace)
{
	union addr any = addr4("0.0.0.0", 7639);
	struct pair p = { .ps = PS_UDP };

	in_peer();
	pair_listen(&p, &any);
	at_home();
	/* There is a listener for the service at the device, but none for the sender. */
	p.addr = addr4(ADDR4, 7639);
	p.cfd = fd();
	p.client = REQUIRE_ID(create_id(p.cfd, PS_UDP, 1));
	route_id(p.cfd, p.client, &p.addr);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_REFUSAL(&p, 2);
}

TEST(datagram, unread_request_goes_with_its_listener)
{
	struct pair p = routed();

	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	CHECK_EQ(1, poll(&(struct pollfd){ .fd = p.sfd, .events = POLLIN }, 1, 10000));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(p.sfd, p.listener)));
	NEED_REFUSAL(&p, 2);
}

TEST(datagram, read_request_outlives_its_listener)
{
	struct pair p = asked();

	REQUIRE_OK(destroy_id(p.sfd, p.listener));
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
}

TEST(datagram, destroyed_request)
{
	struct pair p = asked();

	REQUIRE_OK(destroy_id(p.sfd, p.server));
	NEED_REFUSAL(&p, 2);
}

TEST(datagram, closed_request)
{
	struct pair p = asked();

	close(p.sfd);
	NEED_REFUSAL(&p, 2);
}

TEST(datagram, destroyed_asker)
{
	struct pair p = asked();

	REQUIRE_OK(destroy_id(p.cfd, p.client));
	CHECK_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	CHECK(no_event(p.sfd, 100));
}

TEST(datagram, full_backlog_refuses)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = routed(), q = { .ps = PS_UDP };
	union addr a = any_port4();

	pair_routed(&q, &a);
	REQUIRE_OK(destroy_id(p.sfd, p.listener));
	p.listener = REQUIRE_ID(create_id(p.sfd, PS_UDP, 1));
	REQUIRE_OK(bind_addr(p.sfd, p.listener, &p.addr));
	REQUIRE_OK(listen_id(p.sfd, p.listener, 1));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	CHECK_EQ(1, poll(&(struct pollfd){ .fd = p.sfd, .events = POLLIN }, 1, 10000));
	for (int i = 0; i < 3; i++) {
		uint32_t id = REQUIRE_ID(create_id(q.cfd, PS_UDP, 5));

		route_id(q.cfd, id, &p.addr);
		REQUIRE_OK(connect_id(q.cfd, id, &q.cparam));
		q.client = id;
		NEED_REFUSAL(&q, 2);
	}
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
	CHECK(no_event(p.sfd, 100));
	REQUIRE_OK(accept_id(p.sfd, ev.id, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
}

/* The attributes are the same in every state of the queue pair and of the id. */
static void attributes(int line, int f, uint32_t id)
{
	for (uint32_t state = 0; state <= 6; state++) {
		struct ib_uverbs_qp_attr attr;

		if (!check_err(__FILE__, line, "INIT_QP_ATTR", 0,
			       init_qp_attr(f, id, state, &attr)))
			return;
		check_eq(__FILE__, line, "mask", DATAGRAM_MASK, attr.qp_attr_mask);
		check_eq(__FILE__, line, "state", state, attr.qp_state);
		check_eq(__FILE__, line, "qkey", QKEY, attr.qkey);
		check_eq(__FILE__, line, "pkey_index", 0, attr.pkey_index);
		check_eq(__FILE__, line, "port_num", 1, attr.port_num);
		check_eq(__FILE__, line, "rq_psn", state == RTR, attr.rq_psn != 0);
		check_eq(__FILE__, line, "sq_psn", 0, attr.sq_psn);
		check_eq(__FILE__, line, "is_global", 0, attr.ah_attr.is_global);
	}
}
#define CHECK_ATTRIBUTES(f, id) attributes(__LINE__, f, id)

TEST(datagram, qp_attributes)
{
	struct pair p = { .ps = PS_UDP };
	union addr a = any_port4();

	pair_listen(&p, &a);
	CHECK_ATTRIBUTES(p.sfd, p.listener);
	p = asked();
	CHECK_ATTRIBUTES(p.sfd, p.server);
	CHECK_ATTRIBUTES(p.cfd, p.client);
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
	CHECK_ATTRIBUTES(p.sfd, p.server);
	CHECK_ATTRIBUTES(p.cfd, p.client);
}

TEST(datagram, addresses_of_a_request)
{
	struct rdma_ucm_query_addr_resp server, client;
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query_path_resp paths = { .num_paths = 7 };
	struct pair p = asked();

	REQUIRE_OK(query_addr(p.sfd, p.server, &server));
	REQUIRE_OK(query_addr(p.cfd, p.client, &client));
	CHECK_MEM(&server.src_addr, &client.dst_addr, sizeof(struct sockaddr_in));
	CHECK_MEM(&server.dst_addr, &client.src_addr, sizeof(struct sockaddr_in));
	CHECK_EQ(1, server.port_num);
	/* A SIDR_REQ names no path. */
	REQUIRE_OK(query(p.sfd, p.server, RDMA_USER_CM_QUERY_PATH, &paths, sizeof(paths)));
	CHECK_EQ(0, paths.num_paths);
	REQUIRE_OK(query_route(p.sfd, p.server, &route));
	CHECK_EQ(0, route.num_paths);
}

TEST(datagram, counters)
{
#define COUNTERS "/sys/class/infiniband/rxe0/ports/1/"
	static const char *const files[] = {
		COUNTERS "cm_tx_msgs/sidr_req", COUNTERS "cm_rx_msgs/sidr_req",
		COUNTERS "cm_tx_msgs/sidr_rep", COUNTERS "cm_rx_msgs/sidr_rep",
	};
	struct pair p = routed();
	long before[4];

	for (int i = 0; i < 4; i++)
		before[i] = read_number(files[i]);
	as_c(p.cfd, p.client);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	REQUIRE_OK(accept_id(p.sfd, p.request.id, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
	/* C counts what was sent when that is complete. */
	usleep(200000);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(before[i] + 1, read_number(files[i]));
}

TEST(datagram, connection_to_a_datagram_service)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { .ps = PS_IB, .qp_type = QPT_UD };
	uint32_t id;
	union addr a = any_port4();

	pair_listen(&p, &a);
	p.cfd = fd();
	id = REQUIRE_ID(create_id_type(p.cfd, PS_IB, QPT_RC, 1));
	route_id(p.cfd, id, &p.addr);
	REQUIRE_OK(connect_id(p.cfd, id, &p.cparam));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}

TEST(datagram, question_to_a_connected_service)
{
	struct pair p = { .ps = PS_IB, .qp_type = QPT_RC };
	union addr a = any_port4();

	pair_listen(&p, &a);
	p.cfd = fd();
	p.client = REQUIRE_ID(create_id_type(p.cfd, PS_IB, QPT_UD, 1));
	route_id(p.cfd, p.client, &p.addr);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_REFUSAL(&p, 2);
}

TEST(datagram, of_the_native_port_space)
{
	struct pair p = { .ps = PS_IB, .qp_type = QPT_UD };
	struct rdma_ucm_event_resp ev;
	union addr a = any_port4();

	pair_requested(&p, &a);
	CHECK_EQ(180, p.request.param.ud.private_data_len);
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(p.sparam.qp_num, ev.param.ud.qp_num);
	CHECK_EQ(QKEY, ev.param.ud.qkey);
	CHECK_ATTRIBUTES(p.sfd, p.server);
}

TEST(datagram, listener_of_no_type)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { .ps = PS_IB };
	union addr a = any_port4();

	/* It takes connections and datagrams. The event is of the type of the listener. */
	pair_listen(&p, &a);
	p.cfd = fd();
	for (int i = 0; i < 2; i++) {
		uint8_t type = i ? QPT_UD : QPT_RC;
		uint32_t id = REQUIRE_ID(create_id_type(p.cfd, PS_IB, type, 1));

		p.cparam = conn_param();
		route_id(p.cfd, id, &p.addr);
		REQUIRE_OK(connect_id(p.cfd, id, &p.cparam));
		NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
		CHECK_EQ(i ? 180 : 56, ev.param.conn.private_data_len);
		CHECK_EQ(i ? 0 : p.cparam.qp_num, ev.param.conn.qp_num);
		p.sparam = conn_param();
		REQUIRE_OK(accept_id(p.sfd, ev.id, 1, &p.sparam));
		NEED_EVENT(p.cfd, i ? EV_ESTABLISHED : EV_CONNECT_RESPONSE, &ev);
	}
}

TEST(datagram, connection_of_the_native_port_space)
{
	struct pair p = { .ps = PS_IB, .qp_type = QPT_RC };
	union addr a = any_port4();

	pair_established(&p, &a);
	CHECK_EQ(56, p.request.param.conn.private_data_len);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
}

TEST(datagram, ipoib_needs_infiniband)
{
	union addr a = addr4(ADDR4, 7640), loopback = addr4("127.0.0.1", 7640);
	struct rdma_ucm_event_resp ev;
	struct ib_uverbs_qp_attr attr;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_IPOIB, 1));

	REQUIRE_OK(resolve_addr(f, id, NULL, &a, 2000));
	NEED_EVENT(f, EV_ADDR_ERROR, &ev);
	CHECK_EQ(-EINVAL, (int)ev.status);
	id = REQUIRE_ID(create_id(f, PS_IPOIB, 1));
	NEED_ADDR(f, id, NULL, &loopback);
	CHECK_ERR(ENODEV, resolve_route(f, id, 2000));
	CHECK_ERR(ENODEV, init_qp_attr(f, id, 1, &attr));
}

TEST(datagram, many)
{
	enum { N = 200 };
	/* Fewer on a kernel that needs too long for so many. */
	const int n = N / patience();
	struct pair p = { .ps = PS_UDP };
	union addr a = any_port4();
	int established = 0;
	uint32_t ids[N];

	note("%d at once", n);
	pair_listen(&p, &a);
	p.cfd = fd();
	for (int i = 0; i < n; i++) {
		ids[i] = REQUIRE_ID(create_id(p.cfd, PS_UDP, i + 1));
		route_id(p.cfd, ids[i], &p.addr);
	}
	/* All of them wait at the same time; none may wait for more than 65 s. */
	for (int i = 0; i < n; i++)
		REQUIRE_OK(connect_id(p.cfd, ids[i], &p.cparam));
	for (int i = 0; i < n; i++) {
		struct rdma_ucm_event_resp ev;

		NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
		p.sparam.qp_num = i + 1;
		REQUIRE_OK(accept_id(p.sfd, ev.id, 1, &p.sparam));
		REQUIRE_OK(destroy_id(p.sfd, ev.id));
	}
	for (int i = 0; i < n; i++) {
		struct rdma_ucm_event_resp ev;

		NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
		established += ev.param.ud.qp_num <= (uint32_t)n;
	}
	CHECK_EQ(n, established);
}
