// SPDX-License-Identifier: GPL-2.0
/* GET_EVENT: the queue of a file, waiting for it, signals. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t resolving(int f, uint64_t uid)
{
	union addr dst = addr4(ADDR4, 7471);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, uid));

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	return id;
}

/* With an event in the queue. */
static uint32_t resolved(int f, uint64_t uid)
{
	uint32_t id = resolving(f, uid);

	REQUIRE(!no_event(f, 5000));
	return id;
}

static long get_sized(int f, void *resp, uint16_t out)
{
	struct rdma_ucm_get_event req = { .response = ptr(resp) };

	return cm_cmd(f, RDMA_USER_CM_CMD_GET_EVENT, &req, sizeof(req), out);
}

TEST(event, none_nonblocking)
{
	struct rdma_ucm_event_resp ev;

	CHECK_ERR(EAGAIN, get_event(fd(), &ev));
}

TEST(event, nonblocking_is_of_the_moment)
{
	struct rdma_ucm_event_resp ev;
	int f = cm_open(O_RDWR);

	REQUIRE_EQ(0, fcntl(f, F_SETFL, O_NONBLOCK));
	CHECK_ERR(EAGAIN, get_event(f, &ev));
}

TEST(event, answer_too_small)
{
	int f = fd();

	resolved(f, 1);
	for (int out = 0; out < 324; out++)
		CHECK_ERR(ENOSPC, get_sized(f, edge(336), out));
	CHECK_OK(get_sized(f, edge(324), 324));
	CHECK_ERR(EAGAIN, get_sized(f, edge(324), 324));
}

TEST(event, too_small_before_empty)
{
	CHECK_ERR(ENOSPC, get_sized(fd(), edge(336), 323));
}

static void sized(int line, uint16_t out, size_t len)
{
	int f = fd();
	uint8_t *a = edge_fill(out + 16, 0xa5), *b = edge_fill(out + 16, 0x5a);

	/* Two events that differ in nothing. */
	resolved(f, 7);
	REQUIRE_OK(get_sized(f, a, out));
	REQUIRE_OK(destroy_id(f, ((struct rdma_ucm_event_resp *)a)->id));
	resolved(f, 7);
	REQUIRE_OK(get_sized(f, b, out));
	for (size_t i = 0; i < out + 16u; i++) {
		bool ok = i < len ? a[i] == b[i] : a[i] == 0xa5 && b[i] == 0x5a;

		if (!ok) {
			fail(__FILE__, line, "byte %zu of %zu: %#x, %#x", i, len, a[i], b[i]);
			break;
		}
	}
	close(f);
}

TEST(event, every_byte_is_defined)
{
	sized(__LINE__, 324, 324);
	sized(__LINE__, 328, 328);
	sized(__LINE__, 335, 335);
	sized(__LINE__, 336, 336);
	sized(__LINE__, 1000, 336);
}

TEST(event, reserved_is_zero)
{
	struct rdma_ucm_event_resp ev;
	uint8_t zeros[336] = { 0 };
	int f = fd();

	resolved(f, 7);
	REQUIRE_OK(get_event(f, &ev));
	CHECK_EQ(EV_ADDR_RESOLVED, ev.event);
	CHECK_MEM(zeros, &ev.status, 336 - 16);
}

TEST(event, stays_when_answer_not_writable)
{
	struct rdma_ucm_event_resp ev;
	void *const bad[] = { NULL, unmapped(), edge(335), readonly(336) };
	int f = fd();
	uint32_t id = resolved(f, 7);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_ERR(EFAULT, get_sized(f, bad[i], 336));
	REQUIRE_OK(get_event(f, &ev));
	CHECK_EQ(id, ev.id);
	/* An event that could not be delivered was not counted. */
	CHECK_EQ(1, REQUIRE_ID(destroy_id(f, id)));
}

/* The next event stays, whose data are those of @param and then zeros. */
static uint32_t stays_whole(int f, enum event type, const struct rdma_ucm_conn_param *param)
{
	struct rdma_ucm_event_resp ev;
	uint8_t want[256] = { 0 };

	memcpy(want, param->private_data, param->private_data_len);
	REQUIRE(!no_event(f, 5000));
	for (int i = 0; i < 3; i++)
		CHECK_ERR(EFAULT, get_sized(f, unmapped(), 336));
	NEED_EVENT(f, type, &ev);
	CHECK_EQ(param->qp_num, ev.param.conn.qp_num);
	CHECK_MEM(want, ev.param.conn.private_data, 256);
	return ev.id;
}

TEST(event, stays_whole_when_answer_not_writable)
{
	struct pair p = { .server_uid = 7 };
	union addr a = any_port4();

	pair_routed(&p, &a);
	memset(p.cparam.private_data, 0x3c, 20);
	p.cparam.private_data_len = 20;
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	p.server = stays_whole(p.sfd, EV_CONNECT_REQUEST, &p.cparam);
	memset(p.sparam.private_data, 0xc3, 30);
	p.sparam.private_data_len = 30;
	REQUIRE_OK(accept_id(p.sfd, p.server, p.server_uid, &p.sparam));
	stays_whole(p.cfd, EV_CONNECT_RESPONSE, &p.sparam);
}

TEST(event, in_order)
{
	struct rdma_ucm_event_resp ev;
	uint32_t id[20];
	int f = fd();

	for (int i = 0; i < 20; i++) {
		id[i] = resolving(f, 100 + i);
		usleep(20000);
	}
	for (int i = 0; i < 20; i++) {
		REQUIRE_OK(wait_event(f, &ev, 5000));
		CHECK_EQ(id[i], ev.id);
		CHECK_EQ(100 + i, ev.uid);
	}
	CHECK(no_event(f, 0));
}

TEST(event, uid_zero_gets_none)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0));

	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	CHECK(no_event(f, 300));
	/* But it was resolved. */
	CHECK_OK(resolve_route(f, id, 2000));
	CHECK(no_event(f, 200));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
}

TEST(event, uid_zero_listener_gets_requests)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	union addr dst = addr4(ADDR4, 7670);
	int f = fd(), c = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0)), client;

	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_OK(listen_id(f, id, 0));
	client = routed_client(c, 1, &dst);
	REQUIRE_OK(connect_id(c, client, &param));
	/* These are for the child, and come all the same. */
	NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
	CHECK_EQ(0, ev.uid);
}

TEST(event, files_are_separate)
{
	int f = fd(), other = fd();

	resolved(f, 1);
	CHECK(no_event(other, 0));
	resolved(other, 2);
	REQUIRE(!no_event(f, 0));
}

/* --- waiting --- */

static volatile int signals;

static void on_signal(int sig)
{
	signals++;
}

static void alarm_in(int ms, int flags)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = flags };
	struct itimerval t = { .it_value = { ms / 1000, ms % 1000 * 1000 } };

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &t, NULL);
}

TEST(event, signal_interrupts)
{
	struct rdma_ucm_event_resp ev;
	int f = cm_open(O_RDWR);

	alarm_in(200, 0);
	CHECK_ERR(EINTR, get_event(f, &ev));
	CHECK_EQ(1, signals);
}

static void *resolve_later(void *arg)
{
	usleep(600000);
	resolving(*(int *)arg, 5);
	return NULL;
}

TEST(event, signal_restarts)
{
	struct rdma_ucm_event_resp ev;
	int f = cm_open(O_RDWR);
	pthread_t thread;

	alarm_in(200, SA_RESTART);
	REQUIRE_EQ(0, pthread_create(&thread, NULL, resolve_later, &f));
	CHECK_OK(get_event(f, &ev));
	CHECK_EQ(1, signals);
	CHECK_EQ(EV_ADDR_RESOLVED, ev.event);
	pthread_join(thread, NULL);
}

TEST(event, wait_ends_with_event)
{
	struct rdma_ucm_event_resp ev;
	int f = cm_open(O_RDWR);
	pthread_t thread;

	REQUIRE_EQ(0, pthread_create(&thread, NULL, resolve_later, &f));
	CHECK_OK(get_event(f, &ev));
	CHECK_EQ(EV_ADDR_RESOLVED, ev.event);
	pthread_join(thread, NULL);
}

TEST(event, other_commands_while_one_waits)
{
	struct rdma_ucm_event_resp ev;
	int f = cm_open(O_RDWR);
	pthread_t thread;
	uint32_t id;

	/* A thread that waits for an event holds nothing. */
	REQUIRE_EQ(0, pthread_create(&thread, NULL, resolve_later, &f));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	CHECK_OK(bind4(f, id, ADDR4, 0));
	CHECK_OK(destroy_id(f, id));
	CHECK_OK(get_event(f, &ev));
	pthread_join(thread, NULL);
}

struct reader {
	pthread_t thread;
	int fd;
	int got;
};

static void *read_events(void *arg)
{
	struct reader *r = arg;
	struct rdma_ucm_event_resp ev;

	while (get_event(r->fd, &ev) == 0)
		r->got++;
	return NULL;
}

TEST(event, each_is_read_once)
{
	struct reader r[4] = { 0 };
	int f = cm_open(O_RDWR), total = 0;

	sigaction(SIGUSR1, &(struct sigaction){ .sa_handler = on_signal }, NULL);
	for (int i = 0; i < 4; i++) {
		r[i].fd = f;
		REQUIRE_EQ(0, pthread_create(&r[i].thread, NULL, read_events, &r[i]));
	}
	for (int i = 0; i < 100; i++)
		resolving(f, 1 + i);
	for (int i = 0; i < 100 && total < 100; i++) {
		usleep(50000);
		total = r[0].got + r[1].got + r[2].got + r[3].got;
	}
	CHECK_EQ(100, total);
	for (int i = 0; i < 4; i++) {
		pthread_kill(r[i].thread, SIGUSR1);
		pthread_join(r[i].thread, NULL);
	}
}

TEST(event, poll_wakes_all)
{
	struct pollfd p[2];
	int f = fd(), g = dup(f);

	p[0] = (struct pollfd){ f, POLLIN, 0 };
	p[1] = (struct pollfd){ g, POLLIN, 0 };
	resolved(f, 1);
	CHECK_EQ(2, poll(p, 2, 1000));
}

TEST(event, poll_waits)
{
	struct pollfd p = { .events = POLLIN };
	int f = fd();
	pthread_t thread;

	p.fd = f;
	REQUIRE_EQ(0, pthread_create(&thread, NULL, resolve_later, &f));
	CHECK_EQ(1, poll(&p, 1, 5000));
	CHECK_EQ(POLLIN, p.revents);
	pthread_join(thread, NULL);
}
