// SPDX-License-Identifier: GPL-2.0
/* DISCONNECT, NOTIFY, and how connections end. */
#include <time.h>

#include "abi.h"

static long ms_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - t->tv_sec) * 1000 + (now.tv_nsec - t->tv_nsec) / 1000000;
}

/* Both ends end the connection, this one first. */
static void full_close(int f, uint32_t id, uint64_t uid, int of, uint32_t oid, uint64_t ouid)
{
	struct rdma_ucm_event_resp ev;
	struct timespec t;
	uint8_t zeros[304] = { 0 };

	REQUIRE_OK(disconnect_id(f, id));
	NEED_EVENT(of, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, ev.status);
	CHECK_EQ(oid, ev.id);
	CHECK_EQ(ouid, ev.uid);
	CHECK_MEM(zeros, &ev.param, sizeof(zeros));
	/* Not yet known here. */
	CHECK(no_event(f, 50));
	REQUIRE_OK(disconnect_id(of, oid));
	clock_gettime(CLOCK_MONOTONIC, &t);
	NEED_EVENT(f, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, ev.status);
	CHECK_EQ(uid, ev.uid);
	NEED_EVENT(f, EV_TIMEWAIT_EXIT, &ev);
	CHECK_EQ(0, ev.status);
	CHECK_EQ(id, ev.id);
	CHECK_EQ(uid, ev.uid);
	CHECK_MEM(zeros, &ev.param, sizeof(zeros));
	/* 2^(17-8) ms. */
	CHECK(ms_since(&t) >= 450);
	CHECK(ms_since(&t) < 5000);
	NEED_EVENT(of, EV_TIMEWAIT_EXIT, &ev);
	CHECK_EQ(oid, ev.id);
	CHECK_EQ(ouid, ev.uid);
	/* That was all. */
	CHECK(no_event(f, 50));
	CHECK(no_event(of, 0));
	CHECK_OK(disconnect_id(f, id));
	CHECK_OK(disconnect_id(of, oid));
}

TEST(disconnect, by_the_active_end)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	full_close(p.cfd, p.client, p.client_uid, p.sfd, p.server, p.server_uid);
}

TEST(disconnect, by_the_passive_end)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	full_close(p.sfd, p.server, p.server_uid, p.cfd, p.client, p.client_uid);
}

TEST(disconnect, by_the_active_end_ipv6)
{
	struct pair p = { 0 };
	union addr a = global6(0);

	pair_established(&p, &a);
	full_close(p.cfd, p.client, p.client_uid, p.sfd, p.server, p.server_uid);
}

TEST(disconnect, by_both)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	REQUIRE_OK(disconnect_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
	NEED_EVENT(p.sfd, EV_DISCONNECTED, &ev);
	/* If the two requests crossed, each end still has to answer. */
	CHECK_OK(disconnect_id(p.cfd, p.client));
	CHECK_OK(disconnect_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_TIMEWAIT_EXIT, &ev);
	NEED_EVENT(p.sfd, EV_TIMEWAIT_EXIT, &ev);
}

TEST(disconnect, by_destroying_the_client)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	REQUIRE_OK(destroy_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, ev.status);
	REQUIRE_OK(disconnect_id(p.sfd, p.server));
	NEED_EVENT(p.sfd, EV_TIMEWAIT_EXIT, &ev);
}

TEST(disconnect, by_closing_the_file)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	close(p.sfd);
	NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, ev.status);
}

TEST(disconnect, by_destroying_the_other_end_later)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	/* Destroying answers a request to disconnect, too. */
	pair_established(&p, &a);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, &ev);
	REQUIRE_OK(destroy_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, ev.status);
}

TEST(disconnect, events_are_counted)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	/* The request counts for the listener. */
	CHECK_EQ(1, REQUIRE_ID(destroy_id(p.sfd, p.listener)));
	/* Established and disconnected. */
	CHECK_EQ(2, REQUIRE_ID(destroy_id(p.sfd, p.server)));
	/* Address, route, response; the answer may be unread. */
	CHECK_EQ(3, REQUIRE_ID(destroy_id(p.cfd, p.client)));
}

TEST(disconnect, before_established)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	/* It succeeds, and does nothing. */
	pair_accepted(&p, &a);
	CHECK_OK(disconnect_id(p.cfd, p.client));
	CHECK_OK(disconnect_id(p.sfd, p.server));
	CHECK(no_event(p.sfd, 100));
	CHECK(no_event(p.cfd, 0));
	CHECK_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
}

TEST(disconnect, no_connection)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	CHECK_ERR(EINVAL, disconnect_id(p.cfd, p.client));
}

TEST(disconnect, listener)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_listen(&p, &a);
	CHECK_OK(disconnect_id(p.sfd, p.listener));
	/* It goes on listening. */
	p.cfd = cm_open(O_RDWR | O_NONBLOCK);
	p.client = routed_client(p.cfd, 1, &p.addr);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, NULL);
}

/* --- notify --- */

TEST(notify, established)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();

	/* Data came before the message that says ready to use. */
	pair_accepted(&p, &a);
	REQUIRE_OK(notify_id(p.sfd, p.server, 4));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, &ev);
	CHECK_EQ(p.server, ev.id);
	CHECK_EQ(p.server_uid, ev.uid);
	CHECK_EQ(0, ev.status);
	/* Then that message changes nothing. */
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	CHECK(no_event(p.sfd, 100));
	CHECK_ERR(EISCONN, notify_id(p.sfd, p.server, 4));
	full_close(p.cfd, p.client, p.client_uid, p.sfd, p.server, p.server_uid);
}

TEST(notify, already_established)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	CHECK_ERR(EISCONN, notify_id(p.sfd, p.server, 4));
	CHECK_ERR(EISCONN, notify_id(p.cfd, p.client, 4));
	CHECK(no_event(p.sfd, 50));
}

TEST(notify, other_events)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_accepted(&p, &a);
	for (uint32_t event = 0; event < 32; event++)
		if (event != 4)
			CHECK_ERR(EINVAL, notify_id(p.sfd, p.server, event));
	CHECK_ERR(EINVAL, notify_id(p.sfd, p.server, 0xffffffff));
	CHECK(no_event(p.sfd, 50));
}

TEST(notify, path_migrated)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	if (!is_rust())
		skip("C goes over to an alternate path that was never there");
	pair_established(&p, &a);
	CHECK_OK(notify_id(p.sfd, p.server, 6));
	CHECK(no_event(p.sfd, 50));
	/* It is of no consequence. */
	full_close(p.sfd, p.server, p.server_uid, p.cfd, p.client, p.client_uid);
}

TEST(notify, wrong_states)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	CHECK_ERR(EINVAL, notify_id(p.cfd, p.client, 4));
	CHECK_ERR(EINVAL, notify_id(p.sfd, p.listener, 4));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	CHECK_ERR(EINVAL, notify_id(p.cfd, p.client, 4));
	CHECK_ERR(EINVAL, notify_id(p.sfd, p.request.id, 4));
}
