// SPDX-License-Identifier: GPL-2.0
/* The link below a connection goes down: over an interface of its own, with soft-RoCE on it. */
#include <rust_rdma_cm.h>
#include "abi.h"

#define LINK_ADDR "10.86.0.1"

/* dl0, whose cable ends in dl1. */
static void lay(void)
{
	REQUIRE_EQ(0, system("[ ! -e /sys/class/net/dl0 ] || ip link del dl0; "
			     "ip link add dl0 type veth peer name dl1 && ip addr add " LINK_ADDR "/24 dev dl0 && "
			     "ip link set dl0 up && ip link set dl1 up && "
			     "rdma link add rxedl type rxe netdev dl0"));
}

static void take_up(void)
{
	CHECK_EQ(0, system("ip link del dl0"));
}

/* The cable is pulled out, or the interface is brought down; and back. */
static const char *const outages[][2] = {
	{ "ip link set dl1 down", "ip link set dl1 up" },
	{ "ip link set dl0 down", "ip link set dl0 up" },
};
#define OUTAGES (sizeof(outages) / sizeof(outages[0]))

static void mind(int f, uint32_t id, unsigned int ms)
{
	REQUIRE_OK(set_option(f, id, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_DEAD_LINK,
			      edge_copy(&ms, 4), 4));
}

/* A connection whose client minds for c_ms, and whose listener, and so its other end, for s_ms. */
static void connected(struct pair *p, const char *at, unsigned int c_ms, unsigned int s_ms)
{
	union addr a = addr4(at, 0);

	pair_routed(p, &a);
	if (c_ms)
		mind(p->cfd, p->client, c_ms);
	if (s_ms)
		mind(p->sfd, p->listener, s_ms);
	REQUIRE_OK(connect_id(p->cfd, p->client, &p->cparam));
	NEED_EVENT(p->sfd, EV_CONNECT_REQUEST, &p->request);
	p->server = p->request.id;
	REQUIRE_OK(accept_id(p->sfd, p->server, p->server_uid, &p->sparam));
	NEED_EVENT(p->cfd, EV_CONNECT_RESPONSE, &p->response);
	REQUIRE_OK(accept_id(p->cfd, p->client, 0, NULL));
	NEED_EVENT(p->sfd, EV_ESTABLISHED, NULL);
}

/* The end of a connection is told ms after the link has gone down, between begun and done. */
static void told(int f, uint32_t id, long ms, long begun, long done)
{
	struct rdma_ucm_event_resp ev = { 0 };
	long at;

	REQUIRE_EQ(0, wait_event(f, &ev, 20000 * patience()));
	at = now_ms();
	CHECK_EQ(EV_DISCONNECTED, ev.event);
	CHECK_EQ(id, ev.id);
	CHECK_EQ(-ENETDOWN, (int)ev.status);
	note("%ld to %ld ms, of %ld", at - done, at - begun, ms);
	CHECK(at - begun >= ms);
	CHECK(at - done <= ms + slack_ms());
}

/* An end that was told is as after a DISCONNECT: there is nothing to make a queue pair ready for. */
static void is_over(int f, uint32_t id)
{
	struct ib_uverbs_qp_attr attr;

	CHECK_ERR(EINVAL, init_qp_attr(f, id, 3, &attr));
	CHECK_OK(disconnect_id(f, id));
	CHECK_OK(disconnect_id(f, id));
	CHECK_ERR(EINVAL, accept_id(f, id, 0, NULL));
}

TEST(link, a_dead_one_ends_a_connection)
{
	if (!is_rust())
		skip("C has no such option");
	for (size_t i = 0; i < OUTAGES; i++) {
		struct pair p = { 0 };
		long begun, done;

		lay();
		connected(&p, LINK_ADDR, 300, 0);
		CHECK(no_event(p.cfd, 500));
		begun = begin_ms();
		REQUIRE_EQ(0, system(outages[i][0]));
		done = now_ms();
		told(p.cfd, p.client, 300, begun, done);
		is_over(p.cfd, p.client);
		REQUIRE_EQ(0, system(outages[i][1]));
		/* The other end, which does not mind, hears of it as of any end. */
		NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
		REQUIRE_OK(disconnect_id(p.sfd, p.server));
		NEED_EVENT(p.cfd, EV_TIMEWAIT_EXIT, NULL);
		NEED_EVENT(p.sfd, EV_TIMEWAIT_EXIT, NULL);
		close(p.cfd);
		close(p.sfd);
		take_up();
	}
}

TEST(link, the_ids_of_requests_inherit_it)
{
	struct pair p = { 0 };
	long begun, done;

	if (!is_rust())
		skip("C has no such option");
	lay();
	connected(&p, LINK_ADDR, 0, 300);
	begun = begin_ms();
	REQUIRE_EQ(0, system(outages[0][0]));
	done = now_ms();
	told(p.sfd, p.server, 300, begun, done);
	is_over(p.sfd, p.server);
	close(p.cfd);
	close(p.sfd);
	take_up();
}

TEST(link, a_flap_tells_nothing)
{
	unsigned int ms = 4000 * patience();
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };

	if (!is_rust())
		skip("C has no such option");
	lay();
	connected(&p, LINK_ADDR, ms, ms);
	for (int n = 0; n < 3; n++) {
		for (size_t i = 0; i < OUTAGES; i++) {
			REQUIRE_EQ(0, system(outages[i][0]));
			CHECK(no_event(p.cfd, 500));
			REQUIRE_EQ(0, system(outages[i][1]));
		}
	}
	CHECK(no_event(p.cfd, ms + 1000));
	CHECK(no_event(p.sfd, 0));
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, (int)ev.status);
	REQUIRE_OK(disconnect_id(p.sfd, p.server));
	NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, (int)ev.status);
	close(p.cfd);
	close(p.sfd);
	take_up();
}

/* Neither module ends a connection by its link by default, nor one over another link. */
TEST(link, nothing_is_told_unasked)
{
	struct pair p = { 0 }, other = { 0 };

	lay();
	connected(&p, LINK_ADDR, 0, 0);
	connected(&other, ADDR4, is_rust() ? 1 : 0, is_rust() ? 1 : 0);
	for (size_t i = 0; i < OUTAGES; i++) {
		REQUIRE_EQ(0, system(outages[i][0]));
		CHECK(no_event(p.cfd, 1500));
		CHECK(no_event(p.sfd, 0));
		CHECK(no_event(other.cfd, 0));
		CHECK(no_event(other.sfd, 0));
		REQUIRE_EQ(0, system(outages[i][1]));
	}
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	close(p.cfd);
	close(p.sfd);
	take_up();
}
