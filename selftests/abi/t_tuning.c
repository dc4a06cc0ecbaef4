// SPDX-License-Identifier: GPL-2.0
/* Options of the level that only the Rust module has, and the same for ports in configfs. */
#include <sys/stat.h>

#include <rust_rdma_cm.h>
#include "abi.h"

static const struct {
	const char *file;
	unsigned int most, usual;
} tunables[] = {
	[RDMA_OPTION_TUNING_RESPONSE_TIMEOUT] = { "cm_response_timeout", 31, 20 },
	[RDMA_OPTION_TUNING_MAX_RETRIES] = { "cm_max_retries", 15, 15 },
	[RDMA_OPTION_TUNING_DEADLINE] = { "cm_deadline_ms", 3600000, 0 },
	[RDMA_OPTION_TUNING_TIMEWAIT] = { "cm_timewait", 31, 22 },
	[RDMA_OPTION_TUNING_EARLY_RETRY] = { "cm_early_retry_ms", 10000, 20 },
	[RDMA_OPTION_TUNING_PARKING] = { "cm_backlog_parking", 2048, 1024 },
	[RDMA_OPTION_TUNING_REUSEPORT] = { "cm_reuseport", 1, 0 },
	[RDMA_OPTION_TUNING_DEAD_LINK] = { "cm_dead_link_ms", 60000, 0 },
	[RDMA_OPTION_TUNING_KEEPALIVE] = { "cm_keepalive_s", 7200, 0 },
};
#define TUNABLES (sizeof(tunables) / sizeof(tunables[0]))

static long tune(int f, uint32_t id, uint32_t name, unsigned int value)
{
	return set_option(f, id, RDMA_OPTION_TUNING, name, edge_copy(&value, 4), 4);
}

TEST(tuning, c_does_not_know_it)
{
	int f = cm_open(O_RDWR | O_NONBLOCK);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	if (is_rust())
		skip("Rust does");
	for (size_t name = 0; name < TUNABLES; name++)
		CHECK_ERR(ENOSYS, tune(f, id, name, 1));
}

TEST(tuning, values)
{
	int f = cm_open(O_RDWR | O_NONBLOCK);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	if (!is_rust())
		skip("C has nothing to tune");
	for (size_t name = 0; name < TUNABLES; name++) {
		if (!tunables[name].file) {
			CHECK_ERR(ENOSYS, tune(f, id, name, 0));
			continue;
		}
		CHECK_OK(tune(f, id, name, 0));
		CHECK_OK(tune(f, id, name, 1));
		CHECK_OK(tune(f, id, name, tunables[name].most));
		CHECK_ERR(EINVAL, tune(f, id, name, tunables[name].most + 1));
		CHECK_ERR(EINVAL, tune(f, id, name, 0x80000000));
		CHECK_ERR(EINVAL, tune(f, id, name, 0xffffffff));
	}
}

TEST(tuning, lengths_and_names)
{
	int f = cm_open(O_RDWR | O_NONBLOCK);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	if (!is_rust())
		skip("C has nothing to tune");
	for (uint32_t len = 0; len < 16; len++) {
		if (len != 4)
			CHECK_ERR(EINVAL, set_option(f, id, RDMA_OPTION_TUNING, 1,
						     edge_fill(len, 0), len));
	}
	CHECK_ERR(EFAULT, set_option(f, id, RDMA_OPTION_TUNING, 1, unmapped(), 4));
	CHECK_ERR(ENOSYS, tune(f, id, TUNABLES, 0));
	CHECK_ERR(ENOSYS, tune(f, id, 0xffffffff, 0));
	CHECK_ERR(ENOSYS, set_option(f, id, RDMA_OPTION_TUNING + 1, 0, edge_fill(4, 0), 4));
	CHECK_ERR(ENOSYS, set_option(f, id, RDMA_OPTION_TUNING - 1, 0, edge_fill(4, 0), 4));
}

#define COUNTERS "/sys/class/infiniband/rxe0/ports/1/"
#define RETRIES COUNTERS "cm_tx_retries/req"

/* Hosts that do not answer. */
static const char *const nobodies[] = { "10.0.0.98", "10.0.0.97", "10.0.0.96" };
#define NOBODIES (sizeof(nobodies) / sizeof(nobodies[0]))

/* An id that has a route to one of them. */
static uint32_t to_nobody_at(int f, const char *address)
{
	union addr nobody = addr4(address, 7491);
	char command[128];

	snprintf(command, sizeof(command), "ip neigh replace %s lladdr 02:00:00:00:00:98 dev v0 nud permanent",
		 address);
	REQUIRE_EQ(0, system(command));
	return routed_client(f, 1, &nobody);
}

static void no_more_nobody_at(const char *address)
{
	char command[64];

	snprintf(command, sizeof(command), "ip neigh del %s dev v0", address);
	system(command);
}

static uint32_t to_nobody(int f)
{
	return to_nobody_at(f, nobodies[0]);
}

static void no_more_nobody(void)
{
	no_more_nobody_at(nobodies[0]);
}

struct value {
	unsigned int name, value;
};

/*
 * A request that nobody answers is given up after as long as was set, not before and not later, and
 * is sent again so many times.
 */
static void given_up(const struct value *values, size_t n, long after_ms, long retries)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev = { 0 };
	int f = cm_open(O_RDWR | O_NONBLOCK);
	long begun, before, took;
	uint32_t id;

	id = to_nobody(f);
	as_c(f, id);
	for (size_t i = 0; i < n; i++)
		REQUIRE_OK(tune(f, id, values[i].name, values[i].value));
	before = read_number(RETRIES);
	begun = begin_ms();
	REQUIRE_OK(connect_id(f, id, &param));
	REQUIRE_EQ(0, wait_event(f, &ev, 20000 * patience()));
	took = now_ms() - begun;
	CHECK_EQ(EV_UNREACHABLE, ev.event);
	CHECK_EQ(-ETIMEDOUT, (int)ev.status);
	note("%ld ms, not before %ld", took, after_ms);
	CHECK(took >= after_ms - 1);
	CHECK(took <= after_ms + slack_ms());
	CHECK_EQ(retries, read_number(RETRIES) - before);
	no_more_nobody();
}

#define GIVEN_UP(ms, retries, ...) do {						\
		static const struct value v[] = { __VA_ARGS__ };		\
		given_up(v, sizeof(v) / sizeof(v[0]), ms, retries);		\
	} while (0)

/* The way of a packet there and back is 512 ms on RoCE; it comes on top. */
TEST(tuning, response_timeout)
{
	if (!is_rust())
		skip("C has nothing to tune");
	GIVEN_UP(512 + 1, 0, { RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 0 },
		 { RDMA_OPTION_TUNING_MAX_RETRIES, 0 });
	GIVEN_UP(512 + 1024, 0, { RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 18 },
		 { RDMA_OPTION_TUNING_MAX_RETRIES, 0 });
}

TEST(tuning, retries)
{
	if (!is_rust())
		skip("C has nothing to tune");
	GIVEN_UP(2 * 513, 1, { RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 8 },
		 { RDMA_OPTION_TUNING_MAX_RETRIES, 1 });
	GIVEN_UP(4 * 513, 3, { RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 8 },
		 { RDMA_OPTION_TUNING_MAX_RETRIES, 3 });
}

TEST(tuning, deadline)
{
	if (!is_rust())
		skip("C has nothing to tune");
	GIVEN_UP(700, 0, { RDMA_OPTION_TUNING_DEADLINE, 700 });
	GIVEN_UP(700, 1, { RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 8 },
		 { RDMA_OPTION_TUNING_DEADLINE, 700 });
	/* It is no shorter time than the retries take. */
	GIVEN_UP(513, 0, { RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 8 },
		 { RDMA_OPTION_TUNING_MAX_RETRIES, 0 }, { RDMA_OPTION_TUNING_DEADLINE, 3600000 });
}

/* A server that lives, has the request, and does not answer: its MRAs ask for a minute each. */
TEST(tuning, deadline_of_a_request_that_was_received)
{
	static const struct {
		unsigned int early;
		int backlog;
	} cases[] = { { 20, 10 }, { 0, 10 }, { 20, 1 } };
	static const char mras[] = COUNTERS "cm_rx_msgs/mra";
	struct rdma_ucm_event_resp ev;

	if (!is_rust())
		skip("C has nothing to tune");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		union addr dst = addr4(ADDR4, 7492 + i);
		struct rdma_ucm_conn_param param = conn_param();
		int f = cm_open(O_RDWR | O_NONBLOCK), c = cm_open(O_RDWR | O_NONBLOCK);
		uint32_t listener = REQUIRE_ID(create_id(f, PS_TCP, 1)), id;
		long begun, before, took;

		REQUIRE_OK(bind_addr(f, listener, &dst));
		REQUIRE_OK(listen_id(f, listener, cases[i].backlog));
		if (cases[i].backlog == 1) {
			/* It takes the one place; who comes then is parked, and told so at once. */
			REQUIRE_OK(connect_id(c, routed_client(c, 2, &dst), &param));
			CHECK(!no_event(f, 5000));
			param = conn_param();
		}
		id = routed_client(c, 1, &dst);
		REQUIRE_OK(tune(c, id, RDMA_OPTION_TUNING_EARLY_RETRY, cases[i].early));
		/* Without early retries the second send is the first that is answered so. */
		REQUIRE_OK(tune(c, id, RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 8));
		REQUIRE_OK(tune(c, id, RDMA_OPTION_TUNING_DEADLINE, 1500));
		before = read_number(mras);
		begun = begin_ms();
		REQUIRE_OK(connect_id(c, id, &param));
		REQUIRE_EQ(0, wait_event(c, &ev, 20000 * patience()));
		took = now_ms() - begun;
		CHECK_EQ(EV_UNREACHABLE, ev.event);
		CHECK_EQ(id, ev.id);
		CHECK_EQ(-ETIMEDOUT, (int)ev.status);
		CHECK(read_number(mras) > before);
		note("%ld ms", took);
		CHECK(took >= 1499);
		CHECK(took <= 1500 + slack_ms());
		close(c);
		close(f);
	}
}

/* The two ends of a connection wait for as long as each is tuned. */
TEST(tuning, timewait)
{
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	union addr a = any_port4();
	long begun, short_ms, usual_ms;

	if (!is_rust())
		skip("C has nothing to tune");
	pair_routed(&p, &a);
	REQUIRE_OK(tune(p.cfd, p.client, RDMA_OPTION_TUNING_TIMEWAIT, 8));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	REQUIRE_OK(accept_id(p.sfd, p.request.id, 1, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
	REQUIRE_OK(disconnect_id(p.sfd, p.request.id));
	NEED_EVENT(p.cfd, EV_DISCONNECTED, &ev);
	begun = begin_ms();
	/* The answer to the DREQ, with which both begin to wait. */
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.cfd, EV_TIMEWAIT_EXIT, &ev);
	short_ms = now_ms() - begun;
	NEED_EVENT(p.sfd, EV_DISCONNECTED, &ev);
	NEED_EVENT(p.sfd, EV_TIMEWAIT_EXIT, &ev);
	usual_ms = now_ms() - begun;
	note("%ld ms and %ld ms", short_ms, usual_ms);
	CHECK(short_ms < usual_ms - 200);
	CHECK(usual_ms >= 450);
	CHECK(usual_ms <= 512 + slack_ms());
}

/* Returns the time until a request to a host that does not answer is sent again, in milliseconds. */
static long retried_after(int f, const char *address, unsigned int span)
{
	struct rdma_ucm_conn_param param = conn_param();
	uint32_t id = to_nobody_at(f, address);
	long before, begun, took;

	REQUIRE_OK(tune(f, id, RDMA_OPTION_TUNING_EARLY_RETRY, span));
	before = read_number(RETRIES);
	begun = begin_ms();
	REQUIRE_OK(connect_id(f, id, &param));
	while (read_number(RETRIES) == before && now_ms() - begun < 4000)
		usleep(2000);
	took = now_ms() - begun;
	REQUIRE_ID(destroy_id(f, id));
	no_more_nobody_at(address);
	note("%s: %ld ms of %u", address, took, span);
	return took;
}

/*
 * The first early retry comes after as long as was set, up to a quarter later. A host may share the slot of its round
 * trips with one that earlier cases have made slow, of 256 slots: one host of three does not.
 */
TEST(tuning, early_retry)
{
	static const unsigned int spans[] = { 50, 400 };
	int f = cm_open(O_RDWR | O_NONBLOCK);

	if (!is_rust())
		skip("C has nothing to tune");
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		bool in_time = false;

		for (size_t n = 0; n < NOBODIES && !in_time; n++) {
			long took = retried_after(f, nobodies[n], spans[i]);

			CHECK(took >= spans[i] - 1);
			in_time = took <= spans[i] * 5 / 4 + slack_ms();
		}
		CHECK(in_time);
	}
	/* The longest span is longer than the time until the first of the other retries. */
	{
		struct rdma_ucm_conn_param param = conn_param();
		uint32_t id = to_nobody(f);
		long before = read_number(RETRIES);

		REQUIRE_OK(tune(f, id, RDMA_OPTION_TUNING_EARLY_RETRY, 10000));
		REQUIRE_OK(connect_id(f, id, &param));
		CHECK(no_event(f, 2000));
		CHECK_EQ(before, read_number(RETRIES));
	}
	no_more_nobody();
}

/* Questions to the peer begin and end as soon as the option says so, and it ignores them. */
TEST(tuning, keepalive)
{
	const char *const asked = COUNTERS "cm_tx_msgs/dreq";
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(ADDR4, 0);
	long begun, before, questions, took;
	struct pair p = { 0 };

	if (!is_rust())
		skip("C has nothing to tune");
	pair_established(&p, &a);
	before = read_number(asked);
	CHECK(no_event(p.cfd, 1500));
	CHECK_EQ(before, read_number(asked));
	REQUIRE_OK(tune(p.cfd, p.client, RDMA_OPTION_TUNING_KEEPALIVE, 1));
	REQUIRE_OK(tune(p.sfd, p.server, RDMA_OPTION_TUNING_KEEPALIVE, 7200));
	begun = now_ms();
	CHECK(no_event(p.cfd, 3500 + slack_ms()));
	questions = read_number(asked) - before;
	took = now_ms() - begun;
	note("%ld questions in %ld ms", questions, took);
	CHECK(questions >= 3);
	CHECK(questions <= 4 + (took - 4200) / 750);
	REQUIRE_OK(tune(p.cfd, p.client, RDMA_OPTION_TUNING_KEEPALIVE, 0));
	before = read_number(asked);
	CHECK(no_event(p.cfd, 1500));
	CHECK_EQ(before, read_number(asked));
	CHECK(no_event(p.sfd, 0));
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, &ev);
	CHECK_EQ(0, (int)ev.status);
}

#define ROOT "/sys/kernel/config/rdma_cm"

static void path_of(size_t name, char *path, size_t size)
{
	snprintf(path, size, ROOT "/rxe0/ports/1/%s", tunables[name].file);
}

static long value_of(size_t name)
{
	char path[128], text[32] = "";
	int f;

	path_of(name, path, sizeof(path));
	f = open(path, O_RDONLY);
	if (f < 0 || read(f, text, sizeof(text) - 1) <= 0)
		return -1;
	close(f);
	return atol(text);
}

static int put(size_t name, const char *text)
{
	char path[128];
	long n;
	int f;

	path_of(name, path, sizeof(path));
	f = open(path, O_WRONLY);
	n = f < 0 ? -1 : write(f, text, strlen(text));
	n = n < 0 ? -errno : 0;
	close(f);
	return n;
}

TEST(tuning, configfs)
{
	static const char *const wrong[] = { "-1", "x", "\n", "4294967296", "99999999999", "4294967295",
					     "3600001", "1 1" };
	char text[16];

	if (!is_rust())
		skip("C has nothing to tune");
	if (access(ROOT, F_OK) != 0)
		skip("no " ROOT);
	rmdir(ROOT "/rxe0");
	REQUIRE_EQ(0, mkdir(ROOT "/rxe0", 0755));
	for (size_t name = 0; name < TUNABLES; name++) {
		if (!tunables[name].file)
			continue;
		CHECK_EQ(tunables[name].usual, value_of(name));
		snprintf(text, sizeof(text), "%u\n", tunables[name].most);
		CHECK_EQ(0, put(name, text));
		CHECK_EQ(tunables[name].most, value_of(name));
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			CHECK_ERR(EINVAL, put(name, wrong[i]));
			CHECK_EQ(tunables[name].most, value_of(name));
		}
		snprintf(text, sizeof(text), "%u", tunables[name].usual);
		CHECK_EQ(0, put(name, text));
	}
	CHECK_EQ(0, rmdir(ROOT "/rxe0"));
}
