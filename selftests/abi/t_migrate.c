// SPDX-License-Identifier: GPL-2.0
/* MIGRATE_ID: ids that move from one open file to another, and their events. */
#include <pthread.h>
#include <sys/resource.h>

#include "abi.h"

#define PORT 7690

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

/* An id of one file answers on it and on no other. */
static void lives_in(int line, int here, int there, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp;

	check_err(__FILE__, line, "query of the file that has it", 0, query_addr(here, id, &resp));
	check_err(__FILE__, line, "query of another", differs("foreign_id"), query_addr(there, id, &resp));
}
#define LIVES_IN(here, there, id) lives_in(__LINE__, here, there, id)

/* An id with an unread ADDR_RESOLVED. */
static uint32_t resolving_id(int f, uint64_t uid)
{
	union addr dst = addr4(ADDR4, PORT);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, uid));
	struct rdma_ucm_query_addr_resp resp;

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	for (int i = 0; i < 200; i++) {
		REQUIRE_OK(query_addr(f, id, &resp));
		if (resp.node_guid)
			break;
		usleep(10000);
	}
	/* The event follows the address. */
	usleep(20000);
	return id;
}

TEST(migrate, there_and_back)
{
	int a = fd(), b = fd();
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));

	LIVES_IN(a, b, id);
	CHECK_EQ(0, REQUIRE_ID(migrate_id(b, id, a)));
	LIVES_IN(b, a, id);
	CHECK_ERR(differs("foreign_id"), destroy_id(a, id));
	CHECK_EQ(0, REQUIRE_ID(migrate_id(a, id, b)));
	LIVES_IN(a, b, id);
	REQUIRE_OK(destroy_id(a, id));
}

TEST(migrate, in_circles)
{
	int f[3] = { fd(), fd(), fd() };
	uint32_t id = REQUIRE_ID(create_id(f[0], PS_TCP, 1));

	for (int i = 0; i < 300; i++) {
		REQUIRE_OK(migrate_id(f[(i + 1) % 3], id, f[i % 3]));
		REQUIRE_OK(bind4(f[(i + 1) % 3], REQUIRE_ID(create_id(f[(i + 1) % 3], PS_TCP, 1)),
				 ADDR4, 0));
	}
	LIVES_IN(f[0], f[1], id);
}

TEST(migrate, no_such_descriptor)
{
	struct rlimit limit;
	int a = fd(), b = fd();
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));

	CHECK_ERR(ENOENT, migrate_id(b, id, -1));
	CHECK_ERR(ENOENT, migrate_id(b, id, 0x7fffffff));
	REQUIRE_EQ(0, getrlimit(RLIMIT_NOFILE, &limit));
	CHECK_ERR(ENOENT, migrate_id(b, id, limit.rlim_cur));
	CHECK_ERR(ENOENT, migrate_id(b, 0xffffffff, -1));
	close(a);
	CHECK_ERR(ENOENT, migrate_id(b, id, a));
}

TEST(migrate, descriptor_of_a_path)
{
	int a = open(DEVICE, O_PATH), b = fd();
	uint32_t id = REQUIRE_ID(create_id(b, PS_TCP, 1));

	REQUIRE(a >= 0);
	CHECK_ERR(ENOENT, migrate_id(b, id, a));
}

TEST(migrate, descriptor_of_another_file)
{
	int b = fd(), p[2], null = open("/dev/null", O_RDWR), dir = open("/", O_RDONLY);
	int verbs = open("/dev/infiniband/uverbs0", O_RDWR), s = socket(AF_INET, SOCK_DGRAM, 0);
	uint32_t id = REQUIRE_ID(create_id(b, PS_TCP, 1));

	REQUIRE_EQ(0, pipe(p));
	CHECK_ERR(EINVAL, migrate_id(b, id, p[0]));
	CHECK_ERR(EINVAL, migrate_id(b, id, p[1]));
	CHECK_ERR(EINVAL, migrate_id(b, id, null));
	CHECK_ERR(EINVAL, migrate_id(b, id, dir));
	CHECK_ERR(EINVAL, migrate_id(b, id, verbs));
	CHECK_ERR(EINVAL, migrate_id(b, id, s));
	/* The descriptor comes before the id. */
	CHECK_ERR(EINVAL, migrate_id(b, 0xffffffff, null));
	LIVES_IN(b, fd(), id);
}

TEST(migrate, no_such_id)
{
	int a = fd(), b = fd();
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));

	CHECK_ERR(ENOENT, migrate_id(b, id + 1, a));
	CHECK_ERR(ENOENT, migrate_id(b, 0xffffffff, a));
	REQUIRE_OK(destroy_id(a, id));
	CHECK_ERR(ENOENT, migrate_id(b, id, a));
}

TEST(migrate, id_of_a_third_file)
{
	int a = fd(), b = fd(), c = fd();
	uint32_t id = REQUIRE_ID(create_id(c, PS_TCP, 1));

	CHECK_ERR(differs("foreign_id"), migrate_id(b, id, a));
	CHECK_ERR(differs("foreign_id"), migrate_id(c, id, a));
	LIVES_IN(c, b, id);
	/* It has left. */
	REQUIRE_OK(migrate_id(a, id, c));
	CHECK_ERR(differs("foreign_id"), migrate_id(b, id, c));
	LIVES_IN(a, b, id);
}

TEST(migrate, same_file)
{
	struct rdma_ucm_event_resp ev;
	int a = fd(), again = dup(a);
	uint32_t id = resolving_id(a, 5);

	CHECK_EQ(0, REQUIRE_ID(migrate_id(a, id, a)));
	NEED_EVENT(a, EV_ADDR_RESOLVED, &ev);
	CHECK_EQ(5, ev.uid);
	CHECK_EQ(1, REQUIRE_ID(migrate_id(a, id, a)));
	CHECK_EQ(1, REQUIRE_ID(migrate_id(a, id, again)));
	CHECK_EQ(1, REQUIRE_ID(destroy_id(a, id)));
}

TEST(migrate, other_descriptor_of_the_file)
{
	int a = fd(), b = fd(), again = dup(a);
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));

	REQUIRE_OK(migrate_id(b, id, again));
	LIVES_IN(b, a, id);
}

/* The owner of the other file does not matter; whose this is does. */
TEST(migrate, credentials)
{
	int a = fd(), b;
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));

	REQUIRE_EQ(0, setuid(65534));
	b = fd();
	CHECK_ERR(EACCES, migrate_id(a, id, b));
	CHECK_OK(migrate_id(b, id, a));
	CHECK_OK(destroy_id(b, id));
}

TEST(migrate, counts_of_events)
{
	int a = fd(), b = fd();
	uint32_t id = resolving_id(a, 1);

	NEED_EVENT(a, EV_ADDR_RESOLVED, NULL);
	CHECK_EQ(1, REQUIRE_ID(migrate_id(b, id, a)));
	NEED_ROUTE(b, id);
	CHECK_EQ(2, REQUIRE_ID(migrate_id(a, id, b)));
	CHECK_EQ(2, REQUIRE_ID(destroy_id(a, id)));
}

TEST(migrate, unread_event_moves)
{
	struct rdma_ucm_event_resp ev;
	int a = fd(), b = fd();
	uint32_t id = resolving_id(a, 0x77), other = resolving_id(a, 0x88);

	CHECK_EQ(0, REQUIRE_ID(migrate_id(b, id, a)));
	NEED_EVENT(b, EV_ADDR_RESOLVED, &ev);
	CHECK_EQ(0x77, ev.uid);
	CHECK_EQ(id, ev.id);
	NEED_EVENT(a, EV_ADDR_RESOLVED, &ev);
	CHECK_EQ(0x88, ev.uid);
	CHECK_EQ(other, ev.id);
	CHECK(no_event(a, 0));
	CHECK(no_event(b, 0));
	CHECK_EQ(1, REQUIRE_ID(migrate_id(a, id, b)));
	CHECK_EQ(1, REQUIRE_ID(destroy_id(a, id)));
	CHECK_EQ(1, REQUIRE_ID(destroy_id(a, other)));
}

TEST(migrate, order_of_events)
{
	static const uint64_t uids[] = { 2, 1, 1, 3 };
	static const enum event events[] = {
		EV_ADDR_RESOLVED, EV_ADDR_RESOLVED, EV_ROUTE_RESOLVED, EV_ADDR_RESOLVED,
	};
	struct rdma_ucm_event_resp ev;
	int a = fd(), b = fd();
	uint32_t id = resolving_id(a, 1);

	/* The events of the other file come first, then those that came, in their order. */
	resolving_id(b, 2);
	REQUIRE_OK(resolve_route(a, id, 2000));
	usleep(20000);
	REQUIRE_OK(migrate_id(b, id, a));
	resolving_id(b, 3);
	CHECK(no_event(a, 0));
	for (int i = 0; i < 4; i++) {
		NEED_EVENT(b, events[i], &ev);
		CHECK_EQ(uids[i], ev.uid);
	}
}

TEST(migrate, events_move_in_circles)
{
	struct rdma_ucm_event_resp ev;
	int f[3] = { fd(), fd(), fd() };
	uint32_t id[3];

	for (int i = 0; i < 3; i++)
		id[i] = resolving_id(f[i], 10 + i);
	for (int n = 0; n < 30; n++)
		for (int i = 0; i < 3; i++)
			REQUIRE_OK(migrate_id(f[(n + i + 1) % 3], id[i], f[(n + i) % 3]));
	for (int i = 0; i < 3; i++) {
		NEED_EVENT(f[i], EV_ADDR_RESOLVED, &ev);
		CHECK_EQ(10 + i, ev.uid);
		CHECK(no_event(f[i], 0));
		CHECK_EQ(1, REQUIRE_ID(destroy_id(f[i], id[i])));
	}
}

TEST(migrate, event_comes_later)
{
	struct rdma_ucm_event_resp ev;
	union addr dst = absent4(PORT);
	int a = fd(), b = fd();
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 9));

	REQUIRE_OK(resolve_addr(a, id, NULL, &dst, 300));
	REQUIRE_OK(migrate_id(b, id, a));
	NEED_EVENT(b, EV_ADDR_ERROR, &ev);
	CHECK_EQ(9, ev.uid);
	CHECK(no_event(a, 0));
	CHECK_EQ(1, REQUIRE_ID(destroy_id(b, id)));
}

TEST(migrate, poll_of_the_new_file)
{
	int a = fd(), b = fd();
	uint32_t id = resolving_id(a, 1);
	struct pollfd in[2] = { { .fd = a, .events = POLLIN }, { .fd = b, .events = POLLIN } };

	REQUIRE_EQ(1, poll(in, 2, 0));
	CHECK_EQ(POLLIN, in[0].revents);
	REQUIRE_OK(migrate_id(b, id, a));
	REQUIRE_EQ(1, poll(in, 2, 0));
	CHECK_EQ(0, in[0].revents);
	CHECK_EQ(POLLIN, in[1].revents);
}

struct waiter {
	int fd;
	volatile bool done;
};

static void *polls(void *arg)
{
	struct waiter *w = arg;
	struct pollfd in = { .fd = w->fd, .events = POLLIN };

	CHECK_EQ(1, poll(&in, 1, 20000));
	w->done = true;
	return NULL;
}

static void *reads(void *arg)
{
	struct rdma_ucm_event_resp ev;
	struct waiter *w = arg;

	CHECK_OK(get_event(w->fd, &ev));
	CHECK_EQ(1, ev.uid);
	w->done = true;
	return NULL;
}

/* A thread waits in the file that an id with an unread event moves to. */
static void wakes(void *(*waits)(void *))
{
	struct waiter w = { .fd = cm_open(O_RDWR) };
	int a = fd();
	uint32_t id = resolving_id(a, 1);
	pthread_t thread;

	REQUIRE_EQ(0, pthread_create(&thread, NULL, waits, &w));
	usleep(300000);
	CHECK(!w.done);
	REQUIRE_OK(migrate_id(w.fd, id, a));
	for (int i = 0; i < 100 && !w.done; i++)
		usleep(10000);
	CHECK_EQ(differs("migrate_wakes"), w.done);
	/* An event that happens in the file wakes in any case. */
	REQUIRE_OK(resolve_route(w.fd, id, 2000));
	REQUIRE_EQ(0, pthread_join(thread, NULL));
}

TEST(migrate, wakes_who_polls)
{
	wakes(polls);
}

TEST(migrate, wakes_who_reads)
{
	wakes(reads);
}

/* --- listeners --- */

static void connects(int cfd, const union addr *dst)
{
	struct rdma_ucm_conn_param param = conn_param();
	uint32_t id = routed_client(cfd, 1, dst);

	as_c(cfd, id);
	REQUIRE_OK(connect_id(cfd, id, &param));
}

static uint32_t listener(int f, const char *ip, uint16_t port, int backlog)
{
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0x99));

	REQUIRE_OK(bind4(f, id, ip, port));
	REQUIRE_OK(listen_id(f, id, backlog));
	return id;
}

static void children_follow(const char *ip, uint16_t port)
{
	union addr dst = addr4(ADDR4, port);
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	int a = fd(), b = fd(), c = fd();
	uint32_t id = listener(a, ip, port, 0);

	REQUIRE_OK(migrate_id(b, id, a));
	connects(c, &dst);
	NEED_EVENT(b, EV_CONNECT_REQUEST, &ev);
	CHECK_EQ(0x99, ev.uid);
	CHECK(no_event(a, 0));
	LIVES_IN(b, a, ev.id);
	REQUIRE_OK(accept_id(b, ev.id, 7, &param));
	NEED_EVENT(c, EV_CONNECT_RESPONSE, NULL);
	CHECK_EQ(1, REQUIRE_ID(migrate_id(a, id, b)));
	connects(c, &dst);
	NEED_EVENT(a, EV_CONNECT_REQUEST, &ev);
	LIVES_IN(a, b, ev.id);
	CHECK_EQ(2, REQUIRE_ID(destroy_id(a, id)));
}

TEST(migrate, listener)
{
	children_follow(ADDR4, PORT + 1);
}

TEST(migrate, wildcard_listener)
{
	children_follow("0.0.0.0", PORT + 2);
}

TEST(migrate, listener_with_unread_requests)
{
	union addr dst = addr4(ADDR4, PORT + 3);
	struct rdma_ucm_conn_param param;
	struct rdma_ucm_event_resp ev;
	int a = fd(), b = fd(), c = fd(), home;
	uint32_t id = listener(a, ADDR4, PORT + 3, 0);

	for (int i = 0; i < 3; i++)
		connects(c, &dst);
	usleep(500000);
	CHECK_EQ(0, REQUIRE_ID(migrate_id(b, id, a)));
	CHECK(no_event(a, 0));
	home = differs("request_moves_alone") ? a : b;
	for (int i = 0; i < 3; i++) {
		NEED_EVENT(b, EV_CONNECT_REQUEST, &ev);
		CHECK_EQ(0x99, ev.uid);
		LIVES_IN(home, home == a ? b : a, ev.id);
		param = conn_param();
		CHECK_OK(accept_id(home, ev.id, 1, &param));
		NEED_EVENT(c, EV_CONNECT_RESPONSE, NULL);
	}
	CHECK_EQ(3, REQUIRE_ID(destroy_id(b, id)));
}

TEST(migrate, listener_destroyed_after_move)
{
	union addr dst = addr4(ADDR4, PORT + 4);
	struct rdma_ucm_event_resp ev;
	int a = fd(), b = fd(), c = fd();
	uint32_t id = listener(a, ADDR4, PORT + 4, 0);

	for (int i = 0; i < 3; i++)
		connects(c, &dst);
	usleep(500000);
	REQUIRE_OK(migrate_id(b, id, a));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(b, id)));
	for (int i = 0; i < 3; i++) {
		NEED_EVENT(c, EV_REJECTED, &ev);
		CHECK_EQ(28, ev.status);
	}
	CHECK(no_event(a, 0));
	CHECK(no_event(b, 0));
}

/* The number of an announced id that nobody has read of can only be guessed. */
TEST(migrate, announced_id_by_itself)
{
	struct rdma_ucm_conn_param param = conn_param();
	union addr dst = addr4(ADDR4, PORT + 5);
	struct rdma_ucm_event_resp ev;
	int a = fd(), b = fd(), c = fd(), d = fd();
	uint32_t id = listener(a, ADDR4, PORT + 5, 0), child;

	connects(c, &dst);
	usleep(300000);
	for (child = 0; child == id || migrate_id(d, child, a) < 0; child++)
		REQUIRE(child < 100);
	REQUIRE_OK(migrate_id(b, id, a));
	NEED_EVENT(b, EV_CONNECT_REQUEST, &ev);
	CHECK_EQ(child, ev.id);
	LIVES_IN(d, b, ev.id);
	REQUIRE_OK(accept_id(d, ev.id, 3, &param));
	NEED_EVENT(c, EV_CONNECT_RESPONSE, NULL);
}

TEST(migrate, backlog_moves)
{
	union addr dst = addr4(ADDR4, PORT + 6);
	struct rdma_ucm_event_resp ev;
	int a = fd(), b = fd(), c = fd(), got = 0;
	uint32_t id = listener(a, ADDR4, PORT + 6, 2);

	as_c(a, id);
	connects(c, &dst);
	usleep(200000);
	REQUIRE_OK(migrate_id(b, id, a));
	connects(c, &dst);
	connects(c, &dst);
	usleep(300000);
	while (wait_event(b, &ev, 0) == 0) {
		CHECK_EQ(EV_CONNECT_REQUEST, ev.event);
		got++;
	}
	CHECK_EQ(2, got);
	CHECK(no_event(c, 0));
}

/* --- connections --- */

TEST(migrate, child_gets_a_file_of_its_own)
{
	union addr a = any_port4();
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	int own = fd(), own2 = fd();

	pair_requested(&p, &a);
	CHECK_EQ(0, REQUIRE_ID(migrate_id(own, p.server, p.sfd)));
	CHECK_ERR(differs("foreign_id"), accept_id(p.sfd, p.server, 5, &p.sparam));
	REQUIRE_OK(accept_id(own, p.server, 5, &p.sparam));
	REQUIRE_OK(migrate_id(own2, p.client, p.cfd));
	NEED_EVENT(own2, EV_CONNECT_RESPONSE, NULL);
	REQUIRE_OK(accept_id(own2, p.client, 0, NULL));
	NEED_EVENT(own, EV_ESTABLISHED, &ev);
	CHECK_EQ(5, ev.uid);
	REQUIRE_OK(disconnect_id(own2, p.client));
	NEED_EVENT(own, EV_DISCONNECTED, NULL);
	REQUIRE_OK(disconnect_id(own, p.server));
	NEED_EVENT(own2, EV_DISCONNECTED, NULL);
	CHECK(no_event(p.sfd, 0));
	CHECK(no_event(p.cfd, 0));
}

TEST(migrate, established)
{
	union addr a = any_port4();
	struct pair p = { 0 };
	int b = fd();

	pair_established(&p, &a);
	REQUIRE_OK(migrate_id(b, p.server, p.sfd));
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(b, EV_DISCONNECTED, NULL);
	CHECK(no_event(p.sfd, 0));
	/* ESTABLISHED was read before, DISCONNECTED after. */
	CHECK_EQ(2, REQUIRE_ID(destroy_id(b, p.server)));
}

TEST(migrate, uid_zero)
{
	union addr a = any_port4();
	struct pair p = { 0 };
	int b = fd();

	pair_requested(&p, &a);
	REQUIRE_OK(migrate_id(b, p.server, p.sfd));
	REQUIRE_OK(destroy_id(p.cfd, p.client));
	CHECK(no_event(b, 300));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(b, p.server)));
}

TEST(migrate, old_file_closed)
{
	union addr a = any_port4();
	struct pair p = { 0 };
	int b = fd();

	pair_established(&p, &a);
	REQUIRE_OK(migrate_id(b, p.server, p.sfd));
	close(p.sfd);
	CHECK(no_event(p.cfd, 200));
	REQUIRE_OK(disconnect_id(b, p.server));
	NEED_EVENT(p.cfd, EV_DISCONNECTED, NULL);
}

TEST(migrate, new_file_closed)
{
	union addr a = any_port4();
	struct rdma_ucm_query_addr_resp resp;
	struct pair p = { 0 };
	int b = fd();

	pair_established(&p, &a);
	REQUIRE_OK(migrate_id(b, p.server, p.sfd));
	close(b);
	NEED_EVENT(p.cfd, EV_DISCONNECTED, NULL);
	CHECK_ERR(ENOENT, query_addr(p.sfd, p.server, &resp));
	CHECK_OK(destroy_id(p.sfd, p.listener));
}

/* --- requests and answers --- */

TEST(migrate, answer_cannot_be_written)
{
	int a = fd(), b = fd();
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));
	struct rdma_ucm_migrate_id req = { .response = ptr(unmapped()), .id = id, .fd = a };

	CHECK_ERR(EFAULT, cm_cmd(b, RDMA_USER_CM_CMD_MIGRATE_ID, &req, sizeof(req), 4));
	LIVES_IN(b, a, id);
}

TEST(migrate, answer_without_room)
{
	uint8_t *resp = edge_fill(8, 0xa5), none[8];
	int a = fd(), b = fd();
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));
	struct rdma_ucm_migrate_id req = { .response = ptr(resp), .id = id, .fd = a };

	memset(none, 0xa5, sizeof(none));
	CHECK_OK(cm_cmd(b, RDMA_USER_CM_CMD_MIGRATE_ID, &req, sizeof(req), 0));
	LIVES_IN(b, a, id);
	if (differs("migrate_short_answer"))
		memset(none, 0, 4);
	CHECK_MEM(none, resp, 8);
}

TEST(migrate, answer_with_too_much_room)
{
	static const uint8_t want[12] = {
		0, 0, 0, 0, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5, 0xa5,
	};
	uint8_t *resp = edge_fill(12, 0xa5);
	int a = fd(), b = fd();
	uint32_t id = REQUIRE_ID(create_id(a, PS_TCP, 1));
	struct rdma_ucm_migrate_id req = { .response = ptr(resp), .id = id, .fd = a };

	CHECK_OK(cm_cmd(b, RDMA_USER_CM_CMD_MIGRATE_ID, &req, sizeof(req), 12));
	CHECK_MEM(want, resp, 12);
}
