// SPDX-License-Identifier: GPL-2.0
/* CONNECT and what the other end learns of it. */
#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

/* A CONNECT whose request is said to have a certain length. */
static long connect_sized(int f, uint32_t id, const struct rdma_ucm_conn_param *p,
			  uint16_t in, uint32_t vendor_id, uint32_t attr_mod)
{
	struct rdma_ucm_connect req = {
		.conn_param = *p, .id = id, .ece = { vendor_id, attr_mod },
	};
	uint8_t buf[400] = { 0 };

	memcpy(buf, &req, sizeof(req));
	return cm_cmd(f, RDMA_USER_CM_CMD_CONNECT, buf, in, 0);
}

TEST(connect, request_event)
{
	struct pair p = { .listener_uid = 0x1122334455667788 };
	union addr a = any_port4();
	uint8_t want[256] = { 0 };

	pair_routed(&p, &a);
	p.cparam.responder_resources = 5;
	p.cparam.initiator_depth = 3;
	p.cparam.flow_control = 1;
	p.cparam.retry_count = 6;
	p.cparam.rnr_retry_count = 2;
	p.cparam.srq = 1;
	p.cparam.qkey = 0x12345;
	p.cparam.private_data_len = 20;
	memset(p.cparam.private_data, 0x3c, 20);
	memset(want, 0x3c, 20);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	CHECK_EQ(0x1122334455667788, p.request.uid);
	CHECK(p.request.id != p.listener);
	CHECK_EQ(0, p.request.status);
	/* Seen from this end: what the other can do, this one may ask for. */
	CHECK_EQ(3, p.request.param.conn.responder_resources);
	CHECK_EQ(5, p.request.param.conn.initiator_depth);
	CHECK_EQ(1, p.request.param.conn.flow_control);
	CHECK_EQ(6, p.request.param.conn.retry_count);
	CHECK_EQ(2, p.request.param.conn.rnr_retry_count);
	CHECK_EQ(1, p.request.param.conn.srq);
	CHECK_EQ(p.cparam.qp_num, p.request.param.conn.qp_num);
	CHECK_EQ(0, p.request.param.conn.qkey);
	CHECK_EQ(0, p.request.param.conn.valid);
	CHECK_EQ(0, p.request.ece.vendor_id);
	CHECK_EQ(0, p.request.ece.attr_mod);
	/* The whole field, with what was not sent as zeros. */
	CHECK_EQ(56, p.request.param.conn.private_data_len);
	CHECK_MEM(want, p.request.param.conn.private_data, 256);
}

TEST(connect, request_event_ipv6)
{
	struct pair p = { 0 };
	union addr a = global6(0);

	pair_requested(&p, &a);
	CHECK_EQ(56, p.request.param.conn.private_data_len);
}

TEST(connect, request_event_linklocal)
{
	struct pair p = { 0 };
	union addr a = linklocal6(0);

	pair_established(&p, &a);
}

TEST(connect, private_data_lengths)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	/* 92 bytes, of which 36 are for the addresses. */
	for (int len = 57; len < 256; len++) {
		p.cparam.private_data_len = len;
		CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	}
	CHECK(no_event(p.sfd, 50));
	p.cparam.private_data_len = 56;
	memset(p.cparam.private_data, 0x77, 256);
	CHECK_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	CHECK_MEM(p.cparam.private_data, p.request.param.conn.private_data, 56);
	for (int i = 56; i < 256; i++)
		CHECK_EQ(0, p.request.param.conn.private_data[i]);
}

TEST(connect, not_valid)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	p.cparam.valid = 0;
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	CHECK_ERR(EINVAL, connect_id(p.cfd, 0xffffffff, &p.cparam));
	p.cparam.valid = 255;
	CHECK_OK(connect_id(p.cfd, p.client, &p.cparam));
}

TEST(connect, request_lengths)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	CHECK_ERR(EINVAL, connect_sized(p.cfd, p.client, &p.cparam, 0, 0, 0));
	CHECK_ERR(EINVAL, connect_sized(p.cfd, p.client, &p.cparam, 4, 0, 0));
	CHECK_ERR(EINVAL, connect_sized(p.cfd, p.client, &p.cparam, 272, 0, 0));
	CHECK_ERR(EINVAL, connect_sized(p.cfd, p.client, &p.cparam, 279, 0, 0));
	CHECK_OK(connect_sized(p.cfd, p.client, &p.cparam, 280, 0, 0));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, NULL);
}

static void with_ece(uint16_t in, uint32_t vendor, uint32_t mod, uint32_t want_vendor,
		     uint32_t want_mod)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	REQUIRE_OK(connect_sized(p.cfd, p.client, &p.cparam, in, vendor, mod));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	CHECK_EQ(want_vendor, p.request.ece.vendor_id);
	CHECK_EQ(want_mod, p.request.ece.attr_mod);
	close(p.cfd);
	close(p.sfd);
}

TEST(connect, enhanced_connection_establishment)
{
	with_ece(288, 0x123456, 0x89abcdef, 0x123456, 0x89abcdef);
	with_ece(300, 0x123456, 0x89abcdef, 0x123456, 0x89abcdef);
	/* 24 bits of the vendor. */
	with_ece(288, 0xff123456, 1, 0x123456, 1);
	/* All of it or nothing. */
	with_ece(287, 0x123456, 0x89abcdef, 0, 0);
	with_ece(280, 0x123456, 0x89abcdef, 0, 0);
}

TEST(connect, numbers_are_masked)
{
	struct pair p = { 0 };
	union addr a = any_port4();
	uint32_t qpn;

	pair_routed(&p, &a);
	qpn = p.cparam.qp_num;
	p.cparam.qp_num |= 0xff000000;
	p.cparam.retry_count = 255;
	p.cparam.rnr_retry_count = 255;
	p.cparam.flow_control = 2;
	p.cparam.srq = 2;
	p.cparam.responder_resources = 255;
	p.cparam.initiator_depth = 254;
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	CHECK_EQ(qpn, p.request.param.conn.qp_num);
	CHECK_EQ(7, p.request.param.conn.retry_count);
	CHECK_EQ(7, p.request.param.conn.rnr_retry_count);
	/* One is a field of one bit, the other a truth value. */
	CHECK_EQ(0, p.request.param.conn.flow_control);
	CHECK_EQ(1, p.request.param.conn.srq);
	CHECK_EQ(254, p.request.param.conn.responder_resources);
	CHECK_EQ(255, p.request.param.conn.initiator_depth);
}

TEST(connect, wrong_states)
{
	struct pair p = { 0 };
	union addr a = any_port4();
	uint32_t id;

	pair_resolved_addr(&p, &a);
	/* No route yet; the listener; an id that is only bound. */
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	CHECK_ERR(EINVAL, connect_id(p.sfd, p.listener, &p.cparam));
	id = REQUIRE_ID(create_id(p.cfd, PS_TCP, 1));
	REQUIRE_OK(bind4(p.cfd, id, ADDR4, 0));
	CHECK_ERR(EINVAL, connect_id(p.cfd, id, &p.cparam));
	/* The route can still be resolved and used. */
	NEED_ROUTE(p.cfd, p.client);
	CHECK_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	CHECK_ERR(EINVAL, connect_id(p.sfd, p.request.id, &p.cparam));
}

TEST(connect, child_knows_its_addresses)
{
	struct rdma_ucm_query_addr_resp client, server;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(query_addr(p.cfd, p.client, &client));
	REQUIRE_OK(query_addr(p.sfd, p.server, &server));
	CHECK_MEM(&client.src_addr, &server.dst_addr, 16);
	CHECK_MEM(&client.dst_addr, &server.src_addr, 16);
	CHECK_EQ(client.node_guid, server.node_guid);
	CHECK_EQ(1, server.port_num);
}

TEST(connect, child_knows_its_addresses_ipv6)
{
	struct rdma_ucm_query_addr_resp client, server;
	struct pair p = { 0 };
	union addr a = global6(0);

	pair_requested(&p, &a);
	REQUIRE_OK(query_addr(p.cfd, p.client, &client));
	REQUIRE_OK(query_addr(p.sfd, p.server, &server));
	CHECK_MEM(&client.src_addr, &server.dst_addr, 24);
	CHECK_MEM(&client.dst_addr, &server.src_addr, 24);
}

TEST(connect, destroyed_before_answer)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(destroy_id(p.cfd, p.client));
	/* The child was told; nobody listens to it before it is accepted. */
	CHECK(no_event(p.sfd, 200));
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	CHECK_ERR(EAGAIN, get_event(p.sfd, &ev));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(p.sfd, p.server)));
}

TEST(connect, stale_number)
{
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();
	int c;
	uint32_t id;

	pair_established(&p, &a);
	/* A second connection from the same queue pair. The first end says that it lives, but C does not ask. */
	c = fd();
	id = routed_client(c, 7, &p.addr);
	param = conn_param();
	param.qp_num = p.cparam.qp_num;
	REQUIRE_OK(connect_id(c, id, &param));
	NEED_EVENT(c, EV_REJECTED, &ev);
	CHECK_EQ(10, ev.status);
	if (differs("claims_end_connections")) {
		NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
		return;
	}
	CHECK(no_event(p.cfd, 200));
	CHECK(no_event(p.sfd, 0));
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
}

TEST_LIMIT(connect, many_at_once, 60)
{
	enum { N = 100 };
	/* Fewer on a kernel that needs too long for so many. */
	const int n = N / patience();
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();
	int established = 0, responses = 0;
	uint32_t ids[N];

	note("%d at once", n);
	pair_listen(&p, &a);
	p.cfd = fd();
	for (int i = 0; i < n; i++)
		ids[i] = routed_client(p.cfd, 7, &p.addr);
	/* All of them wait at the same time; neither end may wait for more than 65 s. */
	for (int i = 0; i < n; i++) {
		struct rdma_ucm_conn_param param = conn_param();

		REQUIRE_OK(connect_id(p.cfd, ids[i], &param));
	}
	while (established < n) {
		struct pollfd fds[2] = { { p.sfd, POLLIN, 0 }, { p.cfd, POLLIN, 0 } };

		if (poll(fds, 2, 10000 * patience()) <= 0)
			break;
		if (get_event(p.sfd, &ev) == 0) {
			if (ev.event == EV_CONNECT_REQUEST) {
				struct rdma_ucm_conn_param param = conn_param();

				param.qp_num |= 0x800000;
				CHECK_OK(accept_id(p.sfd, ev.id, 5, &param));
			} else if (CHECK_EQ(EV_ESTABLISHED, ev.event)) {
				established++;
			}
		}
		if (get_event(p.cfd, &ev) == 0) {
			if (CHECK_EQ(EV_CONNECT_RESPONSE, ev.event)) {
				responses++;
				CHECK_OK(accept_id(p.cfd, ev.id, 0, NULL));
			}
		}
	}
	CHECK_EQ(n, responses);
	CHECK_EQ(n, established);
	close(p.cfd);
	close(p.sfd);
}
