// SPDX-License-Identifier: GPL-2.0
/* Options of the level that only the Rust module has, and the same for ports in configfs. */
#include <sys/stat.h>
#include <time.h>

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

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* A request that nobody answers is given up after as long as was set, not after 74 s. */
static void given_up(unsigned int name, unsigned int value, int after_ms)
{
	int f = cm_open(O_RDWR | O_NONBLOCK);
	union addr nobody = addr4("10.0.0.98", 7491);
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev = { 0 };
	uint32_t id;
	long begun;

	REQUIRE_EQ(0, system("ip neigh replace 10.0.0.98 lladdr 02:00:00:00:00:98 dev v0 nud permanent"));
	id = routed_client(f, 1, &nobody);
	REQUIRE_OK(tune(f, id, RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 8));
	REQUIRE_OK(tune(f, id, name, value));
	begun = now_ms();
	REQUIRE_OK(connect_id(f, id, &param));
	REQUIRE_EQ(0, wait_event(f, &ev, 20000));
	CHECK_EQ(EV_UNREACHABLE, ev.event);
	CHECK_EQ(-ETIMEDOUT, (int)ev.status);
	CHECK(now_ms() - begun >= after_ms);
	system("ip neigh del 10.0.0.98 dev v0");
}

/* The life time of a packet there and back is 512 ms on RoCE. */
TEST(tuning, retries)
{
	if (!is_rust())
		skip("C has nothing to tune");
	given_up(RDMA_OPTION_TUNING_MAX_RETRIES, 1, 1000);
}

TEST(tuning, deadline)
{
	if (!is_rust())
		skip("C has nothing to tune");
	given_up(RDMA_OPTION_TUNING_DEADLINE, 700, 690);
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
