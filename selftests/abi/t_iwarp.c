// SPDX-License-Identifier: GPL-2.0
/* Connections over iWARP. */
#include "iwarp.h"

/* enum ib_qp_attr_mask, enum ib_access_flags */
#define ATTR_STATE (1 << 0)
#define ATTR_ACCESS (1 << 3)
#define ATTR_PORT (1 << 5)
#define ACCESS_WRITE_READ ((1 << 1) | (1 << 2))

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

/* The id is bound to that of two devices whose interface has the address. */
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
	/* The driver can send so many bytes. */
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
	route_id(c, client, &dst);
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
