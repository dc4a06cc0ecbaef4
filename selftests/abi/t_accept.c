// SPDX-License-Identifier: GPL-2.0
/* ACCEPT on both ends, and REJECT. */
#include "abi.h"

static long accept_sized(int f, uint32_t id, const struct rdma_ucm_conn_param *p,
			 uint16_t in, uint32_t vendor_id, uint32_t attr_mod)
{
	struct rdma_ucm_accept req = {
		.uid = 1, .conn_param = *p, .id = id, .ece = { vendor_id, attr_mod },
	};
	uint8_t buf[400] = { 0 };

	memcpy(buf, &req, sizeof(req));
	return cm_cmd(f, RDMA_USER_CM_CMD_ACCEPT, buf, in, 0);
}

TEST(accept, response_event)
{
	struct pair p = { .client_uid = 0xfedcba9876543210 };
	union addr a = any_port4();
	uint8_t want[256] = { 0 };

	pair_requested(&p, &a);
	p.sparam.responder_resources = 4;
	p.sparam.initiator_depth = 2;
	p.sparam.flow_control = 1;
	p.sparam.rnr_retry_count = 3;
	p.sparam.retry_count = 1;
	p.sparam.srq = 1;
	p.sparam.private_data_len = 30;
	memset(p.sparam.private_data, 0x5d, 30);
	memset(want, 0x5d, 30);
	REQUIRE_OK(accept_id(p.sfd, p.server, p.server_uid, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, &p.response);
	CHECK_EQ(0xfedcba9876543210, p.response.uid);
	CHECK_EQ(p.client, p.response.id);
	CHECK_EQ(0, p.response.status);
	CHECK_EQ(2, p.response.param.conn.responder_resources);
	CHECK_EQ(4, p.response.param.conn.initiator_depth);
	CHECK_EQ(1, p.response.param.conn.flow_control);
	CHECK_EQ(3, p.response.param.conn.rnr_retry_count);
	CHECK_EQ(0, p.response.param.conn.retry_count);
	CHECK_EQ(1, p.response.param.conn.srq);
	CHECK_EQ(p.sparam.qp_num, p.response.param.conn.qp_num);
	CHECK_EQ(0, p.response.param.conn.qkey);
	CHECK_EQ(196, p.response.param.conn.private_data_len);
	CHECK_MEM(want, p.response.param.conn.private_data, 256);
}

TEST(accept, established_event)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { .server_uid = 0xaabbccddeeff0011 };
	union addr a = any_port4();
	uint8_t zeros[304] = { 0 };

	pair_accepted(&p, &a);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, &ev);
	/* The uid that ACCEPT gave. */
	CHECK_EQ(0xaabbccddeeff0011, ev.uid);
	CHECK_EQ(p.server, ev.id);
	CHECK_EQ(0, ev.status);
	CHECK_MEM(zeros, &ev.param, sizeof(zeros));
	/* The other end learns nothing more. */
	CHECK(no_event(p.cfd, 50));
}

TEST(accept, uid_zero_gets_no_events)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(accept_id(p.sfd, p.server, 0, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	CHECK(no_event(p.sfd, 200));
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	CHECK(no_event(p.sfd, 200));
}

TEST(accept, uid_of_active_end_stays)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_accepted(&p, &a);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0x9999, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
	REQUIRE_OK(disconnect_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(p.client_uid, ev.uid);
}

TEST(accept, private_data_lengths)
{
	struct rdma_ucm_event_resp ev;
	union addr a = any_port4();
	struct pair p = { 0 };

	pair_requested(&p, &a);
	p.sparam.private_data_len = 196;
	memset(p.sparam.private_data, 0x31, 256);
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, &ev);
	CHECK_MEM(p.sparam.private_data, ev.param.conn.private_data, 196);
	CHECK_EQ(0, ev.param.conn.private_data[196]);
}

static void private_data_too_long(uint8_t len)
{
	struct rdma_ucm_event_resp ev;
	union addr a = any_port4();
	struct pair p = { 0 };

	/* An accept that fails rejects the request. */
	pair_requested(&p, &a);
	p.sparam.private_data_len = len;
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
	close(p.cfd);
	close(p.sfd);
}

TEST(accept, private_data_too_long)
{
	private_data_too_long(197);
	private_data_too_long(255);
}

TEST(accept, request_lengths)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	CHECK_ERR(EINVAL, accept_sized(p.sfd, p.server, &p.sparam, 0, 0, 0));
	CHECK_ERR(EINVAL, accept_sized(p.sfd, p.server, &p.sparam, 280, 0, 0));
	CHECK_ERR(EINVAL, accept_sized(p.sfd, p.server, &p.sparam, 287, 0, 0));
	/* None of these rejected the request. */
	CHECK(no_event(p.cfd, 50));
	CHECK_OK(accept_sized(p.sfd, p.server, &p.sparam, 288, 0, 0));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
}

static void with_ece(uint16_t in, uint32_t vendor, uint32_t mod, uint32_t want_vendor,
		     uint32_t want_mod)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(accept_sized(p.sfd, p.server, &p.sparam, in, vendor, mod));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, &p.response);
	CHECK_EQ(want_vendor, p.response.ece.vendor_id);
	CHECK_EQ(want_mod, p.response.ece.attr_mod);
	close(p.cfd);
	close(p.sfd);
}

TEST(accept, enhanced_connection_establishment)
{
	with_ece(296, 0x123456, 0x89abcdef, 0x123456, 0x89abcdef);
	with_ece(304, 0x123456, 0x89abcdef, 0x123456, 0x89abcdef);
	with_ece(296, 0xff123456, 1, 0x123456, 1);
	with_ece(295, 0x123456, 0x89abcdef, 0, 0);
	with_ece(288, 0x123456, 0x89abcdef, 0, 0);
}

TEST(accept, numbers_are_masked)
{
	struct pair p = { 0 };
	union addr a = any_port4();
	uint32_t qpn;

	pair_requested(&p, &a);
	qpn = p.sparam.qp_num;
	p.sparam.qp_num |= 0xab000000;
	p.sparam.rnr_retry_count = 255;
	p.sparam.responder_resources = 255;
	p.sparam.initiator_depth = 254;
	p.sparam.flow_control = 2;
	p.sparam.srq = 2;
	REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, &p.response);
	CHECK_EQ(qpn, p.response.param.conn.qp_num);
	CHECK_EQ(7, p.response.param.conn.rnr_retry_count);
	CHECK_EQ(254, p.response.param.conn.responder_resources);
	CHECK_EQ(255, p.response.param.conn.initiator_depth);
	CHECK_EQ(0, p.response.param.conn.flow_control);
	CHECK_EQ(1, p.response.param.conn.srq);
}

TEST(accept, passive_end_without_parameters)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	/* Without parameters it is an answer to a reply, and there is none. */
	pair_requested(&p, &a);
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, NULL));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}

TEST(accept, twice_on_the_passive_end)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	if (!is_rust())
		skip("C goes on repeating the reply for a minute, and destroying waits for that");
	/* The second fails, and that rejects what the first began. */
	pair_accepted(&p, &a);
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}

TEST(accept, established_ends)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	CHECK_ERR(EINVAL, accept_id(p.cfd, p.client, 0, NULL));
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	/* The failure did not end the connection. */
	CHECK_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
}

TEST(accept, wrong_states)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	CHECK_ERR(EINVAL, accept_id(p.cfd, p.client, 1, &p.sparam));
	CHECK_ERR(EINVAL, accept_id(p.cfd, p.client, 1, NULL));
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.listener, 1, &p.sparam));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, NULL);
}

/* --- reject --- */

TEST(reject, request)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();
	uint8_t data[256], want[256] = { 0 };

	pair_requested(&p, &a);
	memset(data, 0x6b, sizeof(data));
	memset(want, 0x6b, 50);
	REQUIRE_OK(reject_id(p.sfd, p.server, data, 50, 0));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	/* Consumer defined. */
	CHECK_EQ(28, ev.status);
	CHECK_EQ(p.client, ev.id);
	CHECK_EQ(p.client_uid, ev.uid);
	CHECK_EQ(148, ev.param.conn.private_data_len);
	CHECK_MEM(want, ev.param.conn.private_data, 256);
	CHECK_EQ(0, ev.param.conn.qp_num);
	/* The rejected end keeps its id, which is of no more use. */
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	CHECK_ERR(EINVAL, accept_id(p.sfd, p.server, 1, &p.sparam));
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, NULL, 0, 0));
}

static void with_reason(uint8_t reason, uint32_t want)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(reject_id(p.sfd, p.server, NULL, 0, reason));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(want, ev.status);
	close(p.cfd);
	close(p.sfd);
}

TEST(reject, reasons)
{
	with_reason(0, 28);
	with_reason(28, 28);
	with_reason(35, 35);
}

TEST(reject, other_reasons)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	for (int reason = 1; reason < 256; reason++)
		if (reason != 28 && reason != 35)
			CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, NULL, 0, reason));
	/* Before the id is looked up. */
	CHECK_ERR(EINVAL, reject_id(p.sfd, 0xffffffff, NULL, 0, 1));
	CHECK(no_event(p.cfd, 50));
	CHECK_OK(reject_id(p.sfd, p.server, NULL, 0, 0));
	NEED_EVENT(p.cfd, EV_REJECTED, NULL);
}

TEST(reject, private_data_lengths)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();
	uint8_t data[256];

	memset(data, 0x19, sizeof(data));
	pair_requested(&p, &a);
	for (int len = 149; len < 256; len++)
		CHECK_ERR(EINVAL, reject_id(p.sfd, p.server, data, len, 0));
	CHECK(no_event(p.cfd, 50));
	CHECK_OK(reject_id(p.sfd, p.server, data, 148, 0));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_MEM(data, ev.param.conn.private_data, 148);
	CHECK_EQ(0, ev.param.conn.private_data[148]);
}

TEST(reject, reply)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	/* The active end does not like the reply. */
	pair_accepted(&p, &a);
	REQUIRE_OK(reject_id(p.cfd, p.client, "no", 2, 0));
	NEED_EVENT(p.sfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
	CHECK_EQ(p.server, ev.id);
	CHECK_EQ(p.server_uid, ev.uid);
	CHECK_MEM("no", ev.param.conn.private_data, 3);
}

TEST(reject, wrong_states)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	CHECK_ERR(EINVAL, reject_id(p.cfd, p.client, NULL, 0, 0));
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.listener, NULL, 0, 0));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	REQUIRE_OK(accept_id(p.sfd, p.request.id, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
	CHECK_ERR(EINVAL, reject_id(p.cfd, p.client, NULL, 0, 0));
	CHECK_ERR(EINVAL, reject_id(p.sfd, p.request.id, NULL, 0, 0));
	CHECK_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
}

TEST(reject, by_destroying_the_child)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(destroy_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}

TEST(reject, by_closing_the_file)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	close(p.sfd);
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}

TEST(reject, after_reply_by_destroying_the_client)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_accepted(&p, &a);
	REQUIRE_OK(destroy_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
}
