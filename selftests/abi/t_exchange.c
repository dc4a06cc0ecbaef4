// SPDX-License-Identifier: GPL-2.0
/*
 * Connections between the two network namespaces, with parameters that are all
 * different. tools/golden records what goes over the wire here, too.
 */
#include "abi.h"

#define HERE4 "10.0.0.1"
#define PEER4 "10.0.0.2"
#define HERE6 "fd00::1"
#define PEER6 "fd00::2"

/* A listener there, and a client here with its route. */
static void apart(struct pair *p, const union addr *server, uint16_t ps)
{
	uint8_t tos = 0x68, timeout = 15;

	p->listener_uid = 1;
	p->server_uid = 2;
	p->client_uid = 3;
	p->cparam = conn_param();
	p->sparam = conn_param();
	p->cparam.responder_resources = 5;
	p->cparam.initiator_depth = 3;
	p->cparam.flow_control = 1;
	p->cparam.retry_count = 6;
	p->cparam.rnr_retry_count = 2;
	p->cparam.srq = 1;
	p->sparam.responder_resources = 2;
	p->sparam.initiator_depth = 4;
	p->sparam.flow_control = 1;
	p->sparam.rnr_retry_count = 3;
	for (int i = 0; i < 256; i++) {
		p->cparam.private_data[i] = 0x40 + i;
		p->sparam.private_data[i] = 0x80 + i;
	}
	p->cparam.private_data_len = 56;
	p->sparam.private_data_len = ps == PS_TCP ? 196 : 136;
	p->sfd = cm_open(O_RDWR | O_NONBLOCK);
	p->cfd = cm_open(O_RDWR | O_NONBLOCK);
	in_peer();
	p->listener = REQUIRE_ID(create_id(p->sfd, ps, p->listener_uid));
	REQUIRE_OK(bind_addr(p->sfd, p->listener, server));
	REQUIRE_OK(listen_id(p->sfd, p->listener, 0));
	at_home();
	p->client = REQUIRE_ID(create_id(p->cfd, ps, p->client_uid));
	REQUIRE_OK(set_option(p->cfd, p->client, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	if (ps == PS_TCP)
		REQUIRE_OK(set_option(p->cfd, p->client, 0, RDMA_OPTION_ID_ACK_TIMEOUT,
				      &timeout, 1));
	route_id(p->cfd, p->client, server);
}

static void request(struct pair *p, const union addr *server)
{
	struct rdma_ucm_connect req = { .ece = { 0x123456, 0x89abcdef } };

	apart(p, server, PS_TCP);
	req.id = p->client;
	req.conn_param = p->cparam;
	REQUIRE_OK(cm_cmd(p->cfd, RDMA_USER_CM_CMD_CONNECT, &req, sizeof(req), 0));
	NEED_EVENT(p->sfd, EV_CONNECT_REQUEST, &p->request);
	p->server = p->request.id;
	CHECK_EQ(3, p->request.param.conn.responder_resources);
	CHECK_EQ(5, p->request.param.conn.initiator_depth);
	CHECK_EQ(6, p->request.param.conn.retry_count);
	CHECK_EQ(2, p->request.param.conn.rnr_retry_count);
	CHECK_EQ(p->cparam.qp_num, p->request.param.conn.qp_num);
	CHECK_EQ(0x123456, p->request.ece.vendor_id);
	CHECK_EQ(0x89abcdef, p->request.ece.attr_mod);
	CHECK_MEM(p->cparam.private_data, p->request.param.conn.private_data, 56);
}

static void reply(struct pair *p, const union addr *server)
{
	struct rdma_ucm_accept req = { .uid = 2, .ece = { 0x654321, 0x10203040 } };

	request(p, server);
	req.id = p->server;
	req.conn_param = p->sparam;
	REQUIRE_OK(cm_cmd(p->sfd, RDMA_USER_CM_CMD_ACCEPT, &req, sizeof(req), 0));
	NEED_EVENT(p->cfd, EV_CONNECT_RESPONSE, &p->response);
	CHECK_EQ(4, p->response.param.conn.responder_resources);
	CHECK_EQ(2, p->response.param.conn.initiator_depth);
	CHECK_EQ(3, p->response.param.conn.rnr_retry_count);
	CHECK_EQ(p->sparam.qp_num, p->response.param.conn.qp_num);
	CHECK_EQ(0x654321, p->response.ece.vendor_id);
	CHECK_MEM(p->sparam.private_data, p->response.param.conn.private_data, 196);
}

static void whole(const union addr *server)
{
	struct pair p = { 0 };

	reply(&p, server);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	REQUIRE_OK(disconnect_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_DISCONNECTED, NULL);
	NEED_EVENT(p.cfd, EV_TIMEWAIT_EXIT, NULL);
	NEED_EVENT(p.sfd, EV_TIMEWAIT_EXIT, NULL);
}

TEST(exchange, whole_ipv4)
{
	union addr a = addr4(PEER4, 7700);

	whole(&a);
}

TEST(exchange, whole_ipv6)
{
	union addr a = addr6(PEER6, 7701);

	whole(&a);
}

static void rejected(const union addr *server, uint8_t reason)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	uint8_t data[148];

	memset(data, 0x5c, sizeof(data));
	request(&p, server);
	REQUIRE_OK(reject_id(p.sfd, p.server, data, sizeof(data), reason));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(reason, ev.status);
	CHECK_MEM(data, ev.param.conn.private_data, sizeof(data));
}

TEST(exchange, rejected_by_consumer_ipv4)
{
	union addr a = addr4(PEER4, 7702);

	rejected(&a, 28);
}

TEST(exchange, rejected_by_consumer_ipv6)
{
	union addr a = addr6(PEER6, 7703);

	rejected(&a, 28);
}

TEST(exchange, rejected_vendor_option)
{
	union addr a = addr4(PEER4, 7704);

	rejected(&a, 35);
}

static void nobody_listens(const union addr *server)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };

	apart(&p, server, PS_TCP);
	REQUIRE_OK(destroy_id(p.sfd, p.listener));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(8, ev.status);
}

TEST(exchange, no_listener_ipv4)
{
	union addr a = addr4(PEER4, 7705);

	nobody_listens(&a);
}

TEST(exchange, no_listener_ipv6)
{
	union addr a = addr6(PEER6, 7706);

	nobody_listens(&a);
}

TEST(exchange, reply_rejected)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(PEER4, 7707);
	struct pair p = { 0 };

	reply(&p, &a);
	REQUIRE_OK(reject_id(p.cfd, p.client, "no", 2, 0));
	NEED_EVENT(p.sfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}

TEST(exchange, given_up)
{
	union addr a = addr4(PEER4, 7708);
	struct pair p = { 0 };

	/* Reason: timeout, with the GUID of the end that gave up. */
	request(&p, &a);
	REQUIRE_OK(destroy_id(p.cfd, p.client));
	CHECK(no_event(p.sfd, 200));
}

TEST(exchange, stale)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(PEER4, 7709);
	struct pair p = { 0 };
	uint32_t id;

	request(&p, &a);
	id = routed_client(p.cfd, 9, &a);
	REQUIRE_OK(connect_id(p.cfd, id, &p.cparam));
	/* The first request is not confirmed, and in nobody's way. */
	if (!differs("requests_block_numbers")) {
		NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
		CHECK(no_event(p.cfd, 50));
		return;
	}
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(10, ev.status);
	CHECK_EQ(9, ev.uid);
}

TEST(exchange, patience)
{
	union addr a = addr4(PEER4, 7710);
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };

	/* A request that is sent again is answered: be patient. Then all goes on. */
	request(&p, &a);
	usleep(5500000);
	CHECK(no_event(p.sfd, 0));
	CHECK(no_event(p.cfd, 0));
	REQUIRE_OK(accept_id(p.sfd, p.server, 2, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, &ev);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
}

/* --- datagrams --- */

static void datagram(const union addr *server)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };

	apart(&p, server, PS_UDP);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
	p.sparam.qkey = 0;
	REQUIRE_OK(accept_id(p.sfd, ev.id, 2, &p.sparam));
	NEED_EVENT(p.cfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(p.sparam.qp_num, ev.param.ud.qp_num);
	CHECK_EQ(0x01234567, ev.param.ud.qkey);
	CHECK_MEM(p.sparam.private_data, ev.param.ud.private_data, 136);
}

TEST(exchange, datagram_ipv4)
{
	union addr a = addr4(PEER4, 7711);

	datagram(&a);
}

TEST(exchange, datagram_ipv6)
{
	union addr a = addr6(PEER6, 7712);

	datagram(&a);
}

TEST(exchange, datagram_rejected)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(PEER4, 7713);
	struct pair p = { 0 };

	apart(&p, &a, PS_UDP);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
	REQUIRE_OK(reject_id(p.sfd, ev.id, "no", 2, 0));
	NEED_EVENT(p.cfd, EV_UNREACHABLE, &ev);
	CHECK_EQ(2, ev.status);
}

TEST(exchange, datagram_no_listener)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(PEER4, 7714);
	struct pair p = { 0 };

	apart(&p, &a, PS_UDP);
	REQUIRE_OK(destroy_id(p.sfd, p.listener));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.cfd, EV_UNREACHABLE, &ev);
	CHECK_EQ(1, ev.status);
}
