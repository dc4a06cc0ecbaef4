// SPDX-License-Identifier: GPL-2.0
/* Numbers of ids, CREATE_ID and DESTROY_ID. */
#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

TEST(create, port_spaces)
{
	int f = fd();

	REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_ID(create_id(f, PS_UDP, 1));
	REQUIRE_ID(create_id(f, PS_IPOIB, 1));
	REQUIRE_ID(create_id(f, PS_IB, 1));
}

TEST(create, unknown_port_spaces)
{
	int f = fd();

	for (uint32_t ps = 0; ps < 0x10000; ps++) {
		if (ps == PS_TCP || ps == PS_UDP || ps == PS_IPOIB || ps == PS_IB)
			continue;
		if (ps > 0x200 && (ps & 0xff) > 2)
			continue;
		if (!CHECK_ERR(EINVAL, create_id(f, ps, 1)))
			break;
	}
	REQUIRE_EQ(0, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}

TEST(create, ib_takes_any_qp_type)
{
	int f = fd();

	for (int type = 0; type < 256; type++)
		REQUIRE_ID(create_id_type(f, PS_IB, type, 1));
}

TEST(create, qp_type_ignored_elsewhere)
{
	int f = fd();
	uint8_t timeout = 14;
	uint32_t id = REQUIRE_ID(create_id_type(f, PS_TCP, QPT_UD, 1));

	/* An option that only a reliable connection has. */
	CHECK_OK(set_option(f, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, 1));
	id = REQUIRE_ID(create_id_type(f, PS_UDP, QPT_RC, 1));
	CHECK_ERR(EINVAL, set_option(f, id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT,
				     &timeout, 1));
}

TEST(create, reserved_ignored)
{
	uint32_t *resp = edge(4);
	struct rdma_ucm_create_id req = {
		.uid = 1, .response = ptr(resp), .ps = PS_TCP, .qp_type = 0xff,
		.reserved = { 0xff, 0xff, 0xff, 0xff, 0xff },
	};

	CHECK_OK(cm_cmd(fd(), RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), 4));
}

TEST(create, uid_zero)
{
	REQUIRE_ID(create_id(fd(), PS_TCP, 0));
}

TEST(create, lowest_free_number)
{
	uint32_t id[6];
	int f = fd(), other = fd();

	for (int i = 0; i < 6; i++)
		REQUIRE_EQ(i, id[i] = REQUIRE_ID(create_id(i & 1 ? other : f, PS_TCP, 1)));
	REQUIRE_OK(destroy_id(f, id[2]));
	REQUIRE_OK(destroy_id(f, id[4]));
	REQUIRE_EQ(2, REQUIRE_ID(create_id(other, PS_TCP, 1)));
	REQUIRE_EQ(4, REQUIRE_ID(create_id(other, PS_TCP, 1)));
	REQUIRE_EQ(6, REQUIRE_ID(create_id(f, PS_TCP, 1)));
	/* Closing one file frees its numbers. */
	close(f);
	for (int i = 0; i < 200; i++) {
		long n = create_id(other, PS_TCP, 1);

		if (n == 0)
			return;
		destroy_id(other, n);
		usleep(10000);
	}
	fail(__FILE__, __LINE__, "number 0 is not free again");
}

TEST(create, answer_not_writable)
{
	struct rdma_ucm_create_id req = { .uid = 1, .ps = PS_TCP };
	void *const bad[] = { NULL, unmapped(), edge(3), readonly(4), (void *)0xffff888000000000ull };
	int f = fd();

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		req.response = ptr(bad[i]);
		CHECK_ERR(EFAULT, cm_cmd(f, RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), 4));
	}
	/* None of them left an id. */
	REQUIRE_EQ(0, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}

TEST(create, bad_port_space_before_answer)
{
	struct rdma_ucm_create_id req = { .uid = 1, .ps = 7, .response = 0 };

	CHECK_ERR(EINVAL, cm_cmd(fd(), RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), 4));
}

TEST(create, answer_is_four_bytes)
{
	uint8_t *resp = edge_fill(8, 0xa5), want[4] = { 0xa5, 0xa5, 0xa5, 0xa5 };
	struct rdma_ucm_create_id req = { .uid = 1, .ps = PS_TCP, .response = ptr(resp) };

	REQUIRE_OK(cm_cmd(fd(), RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), 0xffff));
	CHECK_MEM(want, resp + 4, 4);
	CHECK_EQ(0, resp[0] | resp[1] | resp[2] | resp[3]);
}

TEST_LIMIT(create, many_ids, 120)
{
	int f = fd();

	/* More than 16 bits of them. */
	for (uint32_t i = 0; i < 66000; i++) {
		uint32_t resp = ~0;
		struct {
			struct rdma_ucm_cmd_hdr h;
			struct rdma_ucm_create_id req;
		} r = {
			{ RDMA_USER_CM_CMD_CREATE_ID, 24, 4 },
			{ .uid = 1, .ps = PS_TCP, .response = ptr(&resp) },
		};

		REQUIRE_OK(cm_raw(f, &r, sizeof(r)));
		REQUIRE_EQ(i, resp);
	}
	CHECK_OK(bind4(f, 65999, ADDR4, 0));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, 65537)));
	REQUIRE_EQ(65537, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}

TEST(destroy, twice)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
	CHECK_ERR(ENOENT, destroy_id(f, id));
}

TEST(destroy, of_another_file)
{
	int f = fd(), other = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	CHECK_ERR(differs("foreign_id"), destroy_id(other, id));
	CHECK_OK(destroy_id(f, id));
}

TEST(destroy, reserved_ignored)
{
	int f = fd();
	uint32_t *resp = edge(4);
	struct rdma_ucm_destroy_id req = {
		.response = ptr(resp), .id = REQUIRE_ID(create_id(f, PS_TCP, 1)),
		.reserved = 0xffffffff,
	};

	CHECK_OK(cm_cmd(f, RDMA_USER_CM_CMD_DESTROY_ID, &req, sizeof(req), 4));
}

TEST(destroy, answer_not_writable)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	struct rdma_ucm_destroy_id req = { .response = ptr(unmapped()), .id = id };

	/* Destroyed all the same. */
	CHECK_ERR(EFAULT, cm_cmd(f, RDMA_USER_CM_CMD_DESTROY_ID, &req, sizeof(req), 4));
	CHECK_ERR(ENOENT, destroy_id(f, id));
	REQUIRE_EQ(id, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}

TEST(destroy, answer_is_four_bytes)
{
	int f = fd();
	uint8_t *resp = edge_fill(8, 0xa5), want[4] = { 0xa5, 0xa5, 0xa5, 0xa5 };
	struct rdma_ucm_destroy_id req = {
		.response = ptr(resp), .id = REQUIRE_ID(create_id(f, PS_TCP, 1)),
	};

	REQUIRE_OK(cm_cmd(f, RDMA_USER_CM_CMD_DESTROY_ID, &req, sizeof(req), 0xffff));
	CHECK_MEM(want, resp + 4, 4);
	CHECK_EQ(0, resp[0] | resp[1] | resp[2] | resp[3]);
}

TEST(destroy, counts_events_that_were_read)
{
	struct rdma_ucm_event_resp ev;
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, &ev);
	REQUIRE_OK(resolve_route(f, id, 2000));
	NEED_EVENT(f, EV_ROUTE_RESOLVED, &ev);
	CHECK_EQ(2, REQUIRE_ID(destroy_id(f, id)));
}

TEST(destroy, drops_unread_events)
{
	struct rdma_ucm_event_resp ev;
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	REQUIRE(!no_event(f, 5000));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
	CHECK(no_event(f, 0));
	CHECK_ERR(EAGAIN, get_event(f, &ev));
}

TEST(destroy, in_every_state)
{
	union addr a = any_port4();

	for (int step = 0; step < 7; step++) {
		struct pair p = { 0 };

		switch (step) {
		case 0: pair_listen(&p, &a); break;
		case 1: pair_resolved_addr(&p, &a); break;
		case 2: pair_routed(&p, &a); break;
		case 3: pair_requested(&p, &a); break;
		case 4: pair_accepted(&p, &a); break;
		case 5: pair_established(&p, &a); break;
		case 6:
			pair_established(&p, &a);
			REQUIRE_OK(disconnect_id(p.cfd, p.client));
			break;
		}
		if (step >= 1)
			CHECK_OK(destroy_id(p.cfd, p.client));
		if (step >= 3)
			CHECK_OK(destroy_id(p.sfd, p.server));
		CHECK_OK(destroy_id(p.sfd, p.listener));
		if (p.cfd)
			close(p.cfd);
		close(p.sfd);
	}
}

TEST(destroy, by_close_in_every_state)
{
	union addr a = any_port4();

	for (int step = 0; step < 6; step++) {
		struct pair p = { 0 };

		switch (step) {
		case 0: pair_listen(&p, &a); break;
		case 1: pair_resolved_addr(&p, &a); break;
		case 2: pair_routed(&p, &a); break;
		case 3: pair_requested(&p, &a); break;
		case 4: pair_accepted(&p, &a); break;
		case 5: pair_established(&p, &a); break;
		}
		/* Alternately this end and that end first. */
		close(step & 1 ? p.sfd : p.cfd);
		close(step & 1 ? p.cfd : p.sfd);
	}
}

TEST(destroy, by_close_with_an_unread_request_of_a_lower_number)
{
	struct rdma_ucm_event_resp ev;
	union addr a = any_port4();
	struct pair p = { 0 };
	int f = cm_open(O_RDWR | O_NONBLOCK);
	uint32_t lowest = REQUIRE_ID(create_id(f, PS_TCP, 1));

	pair_routed(&p, &a);
	REQUIRE_OK(destroy_id(f, lowest));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	/* The request's id has the number that was free, and goes before its listener does. */
	REQUIRE(!no_event(p.sfd, 5000));
	close(p.sfd);
	NEED_EVENT(p.cfd, EV_REJECTED, &ev);
	CHECK_EQ(28, ev.status);
	REQUIRE_EQ(lowest, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}
