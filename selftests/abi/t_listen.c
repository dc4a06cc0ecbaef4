// SPDX-License-Identifier: GPL-2.0
/* LISTEN, the backlog, and which listener a request reaches. */
#include <rust_rdma_cm.h>
#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 0x99));
}

static union addr bound(int f, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp;
	union addr a;

	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&a, &resp.src_addr, sizeof(a));
	return a;
}

TEST(listen, unbound_id)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr a;

	CHECK_OK(listen_id(f, id, 1));
	a = bound(f, id);
	CHECK_EQ(AF_INET, a.sa.sa_family);
	CHECK_EQ(0, a.in.sin_addr.s_addr);
	CHECK(addr_port(&a) != 0);
}

TEST(listen, bound_id)
{
	int f = fd();
	uint32_t id = new_id(f);
	union addr v6 = global6(0);

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_OK(listen_id(f, id, 1));
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &v6));
	CHECK_OK(listen_id(f, id, 1));
}

TEST(listen, twice)
{
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_OK(listen_id(f, id, 1));
	CHECK_ERR(EINVAL, listen_id(f, id, 1));
	CHECK_ERR(EINVAL, listen_id(f, id, 0));
}

TEST(listen, connected_id)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	CHECK_ERR(EINVAL, listen_id(p.cfd, p.client, 1));
	CHECK_ERR(EINVAL, listen_id(p.sfd, p.server, 1));
}

TEST(listen, resolved_id)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	CHECK_ERR(EINVAL, listen_id(p.cfd, p.client, 1));
	/* And it is still of use. */
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, NULL);
}

TEST(listen, any_backlog)
{
	static const int backlogs[] = { 0, 1, 1024, 1025, 0x7fffffff, (int)0x80000000, -1 };
	int f = fd();

	for (size_t i = 0; i < sizeof(backlogs) / sizeof(backlogs[0]); i++)
		CHECK_OK(listen_id(f, new_id(f), backlogs[i]));
}

TEST(listen, reuseaddr_is_not_for_listeners)
{
	int f = fd(), one = 1;
	uint32_t a = new_id(f), b = new_id(f);

	REQUIRE_OK(set_option(f, a, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	REQUIRE_OK(set_option(f, b, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	REQUIRE_OK(bind4(f, a, ADDR4, 7630));
	REQUIRE_OK(bind4(f, b, ADDR4, 7630));
	CHECK_ERR(EADDRINUSE, listen_id(f, a, 1));
	REQUIRE_OK(destroy_id(f, b));
	/* Having failed it is as before: others may have the address still. */
	b = new_id(f);
	REQUIRE_OK(set_option(f, b, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	REQUIRE_OK(bind4(f, b, ADDR4, 7630));
	REQUIRE_OK(destroy_id(f, b));
	CHECK_OK(listen_id(f, a, 1));
	/* The flag is gone, so that nobody joins later. */
	b = new_id(f);
	REQUIRE_OK(set_option(f, b, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	CHECK_ERR(EADDRINUSE, bind4(f, b, ADDR4, 7630));
}

TEST(listen, datagram_id)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_OK(listen_id(f, id, 1));
}

/* --- matching --- */

static uint32_t reaches(int sfd, const union addr *dst)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = routed_client(f, 1, dst);

	REQUIRE_OK(connect_id(f, id, &param));
	NEED_EVENT(sfd, EV_CONNECT_REQUEST, &ev);
	REQUIRE_OK(destroy_id(sfd, ev.id));
	NEED_EVENT(f, EV_REJECTED, NULL);
	close(f);
	return ev.uid;
}

static void rejected(const union addr *dst, uint32_t reason)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = routed_client(f, 1, dst);

	REQUIRE_OK(connect_id(f, id, &param));
	NEED_EVENT(f, EV_REJECTED, &ev);
	CHECK_EQ(reason, ev.status);
	close(f);
}

TEST(listen, no_listener)
{
	union addr dst = addr4(ADDR4, 7631);

	/* Invalid service id. */
	rejected(&dst, 8);
}

TEST(listen, wildcard_reaches)
{
	union addr a = addr4("0.0.0.0", 7632), v6 = addr6("::", 7633), dst;
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(listen_id(f, id, 0));
	dst = addr4(ADDR4, 7632);
	CHECK_EQ(0x99, reaches(f, &dst));
	/* A wildcard of IPv4 is not for IPv6. */
	dst = global6(7632);
	rejected(&dst, 28);
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &v6));
	REQUIRE_OK(listen_id(f, id, 0));
	dst = global6(7633);
	CHECK_EQ(0x99, reaches(f, &dst));
	dst = addr4(ADDR4, 7633);
	CHECK_EQ(0x99, reaches(f, &dst));
}

TEST(listen, loopback_reaches)
{
	union addr a = addr4("127.0.0.1", 7634), dst = addr4(ADDR4, 7634);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_EQ(0x99, reaches(f, &dst));
}

TEST(listen, afonly_wildcard)
{
	union addr v6 = addr6("::", 7635), dst;
	int f = fd(), one = 1;
	uint32_t id = new_id(f);

	REQUIRE_OK(set_option(f, id, 0, RDMA_OPTION_ID_AFONLY, &one, 4));
	REQUIRE_OK(bind_addr(f, id, &v6));
	REQUIRE_OK(listen_id(f, id, 0));
	dst = global6(7635);
	CHECK_EQ(0x99, reaches(f, &dst));
	dst = addr4(ADDR4, 7635);
	rejected(&dst, 28);
}

TEST(listen, other_address)
{
	/* The port has a listener, but of the other family. */
	union addr a = addr4(ADDR4, 7636), dst = global6(7636);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(listen_id(f, id, 0));
	rejected(&dst, 28);
	CHECK(no_event(f, 0));
}

TEST(listen, linklocal_reaches)
{
	union addr a = linklocal6(7637);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_EQ(0x99, reaches(f, &a));
}

TEST(listen, other_port_space)
{
	union addr dst = addr4(ADDR4, 7638);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_OK(listen_id(f, id, 0));
	rejected(&dst, 8);
}

TEST(listen, other_namespace)
{
	union addr any = addr4("0.0.0.0", 7639), dst = addr4(ADDR4, 7639);
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	int f = fd(), c = fd();
	uint32_t id;

	in_peer();
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &any));
	REQUIRE_OK(listen_id(f, id, 0));
	at_home();
	/* Its wildcard ends at its namespace... */
	rejected(&dst, 28);
	/* ...and is reached there from here. */
	dst = addr4("10.0.0.2", 7639);
	id = routed_client(c, 1, &dst);
	REQUIRE_OK(connect_id(c, id, &param));
	NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
}

TEST(listen, destroyed_listener)
{
	union addr dst = addr4(ADDR4, 7640);
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_OK(listen_id(f, id, 0));
	REQUIRE_OK(destroy_id(f, id));
	rejected(&dst, 8);
}

TEST(listen, destroyed_with_unread_requests)
{
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_event_resp ev;
	union addr dst = addr4(ADDR4, 7641);
	int f = fd(), c = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_OK(listen_id(f, id, 0));
	for (int i = 0; i < 5; i++) {
		uint32_t client = routed_client(c, 1, &dst);

		param = conn_param();
		REQUIRE_OK(connect_id(c, client, &param));
	}
	usleep(500000);
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
	for (int i = 0; i < 5; i++) {
		NEED_EVENT(c, EV_REJECTED, &ev);
		CHECK_EQ(28, ev.status);
	}
	CHECK(no_event(f, 0));
}

TEST(listen, child_outlives_listener)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_requested(&p, &a);
	REQUIRE_OK(destroy_id(p.sfd, p.listener));
	REQUIRE_OK(accept_id(p.sfd, p.server, 5, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
}

/* --- backlog --- */

/* Starts n clients, and tells how many requests are in the queue after a while. */
static int queued(int sfd, int c, const union addr *dst, int n)
{
	struct rdma_ucm_event_resp ev;
	int got = 0;

	for (int i = 0; i < n; i++) {
		struct rdma_ucm_conn_param param = conn_param();
		uint32_t client = routed_client(c, 1, dst);

		as_c(c, client);
		REQUIRE_OK(connect_id(c, client, &param));
	}
	usleep(300000);
	while (wait_event(sfd, &ev, 0) == 0) {
		CHECK_EQ(EV_CONNECT_REQUEST, ev.event);
		got++;
	}
	return got;
}

TEST(listen, backlog_is_of_unread_requests)
{
	union addr dst = addr4(ADDR4, 7642);
	int f = fd(), c = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &dst));
	as_c(f, id);
	REQUIRE_OK(listen_id(f, id, 3));
	CHECK_EQ(3, queued(f, c, &dst, 5));
	/* Nobody was told no. */
	CHECK(no_event(c, 0));
}

TEST_LIMIT(listen, full_backlog_is_served_later, 60)
{
	struct rdma_ucm_event_resp ev;
	union addr dst = addr4(ADDR4, 7643);
	int f = fd(), c = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &dst));
	as_c(f, id);
	REQUIRE_OK(listen_id(f, id, 1));
	CHECK_EQ(1, queued(f, c, &dst, 2));
	NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
	CHECK_EQ(0x99, ev.uid);
}

TEST(listen, max_backlog_limits)
{
	union addr dst = addr4(ADDR4, 7644);
	int f = fd(), c = fd();
	uint32_t id = new_id(f);
	int got;

	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_EQ(0, system("echo 2 > /proc/sys/net/rdma_ucm/max_backlog"));
	as_c(f, id);
	REQUIRE_OK(listen_id(f, id, 100));
	got = queued(f, c, &dst, 4);
	CHECK_EQ(2, got);
	CHECK_EQ(0, system("echo 1024 > /proc/sys/net/rdma_ucm/max_backlog"));
}

TEST(listen, listen_again_sets_backlog)
{
	union addr dst = addr4(ADDR4, 7645);
	int f = fd(), c = fd();
	uint32_t id = new_id(f);

	/* The counter is set before it is known that this fails. */
	REQUIRE_OK(bind_addr(f, id, &dst));
	as_c(f, id);
	REQUIRE_OK(listen_id(f, id, 1));
	CHECK_ERR(EINVAL, listen_id(f, id, 3));
	CHECK_EQ(differs("backlog_after_failed_listen"), queued(f, c, &dst, 5));
}

/* Requests that C drops are parked, and read in the order in which they came. */
TEST(listen, full_backlog_parks)
{
	union addr dst = addr4(ADDR4, 7646);
	int f = fd(), c = fd();
	uint32_t id = new_id(f), more = new_id(f), two = 2;
	struct rdma_ucm_event_resp ev;

	if (!is_rust())
		skip("C parks nothing");
	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_OK(listen_id(f, id, 2));
	CHECK_EQ(7, queued(f, c, &dst, 7));
	CHECK(no_event(c, 0));
	/* No further request is parked: who comes then is dropped, and comes again. */
	dst = addr4(ADDR4, 7647);
	REQUIRE_OK(bind_addr(f, more, &dst));
	REQUIRE_OK(set_option(f, more, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_PARKING, &two, 4));
	REQUIRE_OK(listen_id(f, more, 1));
	for (int i = 0; i < 5; i++) {
		struct rdma_ucm_conn_param param = conn_param();
		int own = fd();

		REQUIRE_OK(connect_id(own, routed_client(own, 1, &dst), &param));
		CHECK(no_event(own, 100));
	}
	for (int i = 0; i < 5; i++)
		NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
	CHECK(no_event(f, 0));
}

/* Once it stands still: what others did is over. */
static long settled_number(const char *path)
{
	long before, now = read_number(path);

	do {
		before = now;
		usleep(300000);
		now = read_number(path);
	} while (now != before);
	return now;
}

TEST(listen, order_of_parked_requests)
{
	/* The sender of a parked request is told so. */
	static const char parked[] = "/sys/class/infiniband/rxe0/ports/1/cm_tx_msgs/mra";
	struct rdma_ucm_event_resp ev;
	union addr dst = addr4(ADDR4, 7648);
	int f = fd(), c = fd();
	uint32_t id = new_id(f);
	long before;

	if (!is_rust())
		skip("C parks nothing");
	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_OK(listen_id(f, id, 1));
	before = settled_number(parked);
	for (uint32_t i = 0; i < 20; i++) {
		struct rdma_ucm_conn_param param = conn_param();
		uint32_t client = routed_client(c, 1, &dst);

		/* The sender of a repetition would be told again. */
		as_c(c, client);
		param.qp_num = 0x7000 + i;
		REQUIRE_OK(connect_id(c, client, &param));
		/*
		 * The network may change the order of what is on its way, and so may the search for the
		 * neighbour. One is not parked, but queued.
		 */
		if (i == 0)
			CHECK(!no_event(f, 5000));
		for (int ms = 0; read_number(parked) < before + i && ms < 5000; ms++)
			usleep(1000);
	}
	for (uint32_t i = 0; i < 20; i++) {
		NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
		CHECK_EQ(0x7000 + i, ev.param.conn.qp_num);
	}
	CHECK(no_event(f, 100));
}
