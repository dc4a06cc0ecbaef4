// SPDX-License-Identifier: GPL-2.0
/* A worker: a process that listens, and accepts all requests. */
#include <signal.h>
#include <sys/wait.h>

#include <rust_rdma_cm.h>
#include "reuseport.h"

static volatile sig_atomic_t is_retired;

static void retire(int signal)
{
	is_retired = 1;
}

/* A number that no other connection of the workers has had of late. */
static uint32_t next_qpn(int index)
{
	static uint32_t n;

	return 0x400000 | (uint32_t)index << 15 | (n++ & 0x7fff);
}

static void serve(const struct role *role, const union addr *address)
{
	int fd = cm_open(O_RDWR | O_NONBLOCK);
	uint32_t listener;
	unsigned int one = 1, none = 0, open = 0;
	struct rdma_ucm_event_resp event;
	uint64_t end = 0;

	/* By its number the listener comes after its requests, where the module looks for what a closed file has. */
	do
		listener = REQUIRE_ID(create_id(fd, PS_TCP, 1));
	while (role->sleeps && listener % 64 != 63);
	if (role->shares)
		REQUIRE_OK(set_option(fd, listener, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_REUSEPORT, &one, 4));
	if (role->sleeps)
		REQUIRE_OK(set_option(fd, listener, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_PARKING, &none, 4));
	REQUIRE_OK(bind_addr(fd, listener, address));
	REQUIRE_OK(listen_id(fd, listener, role->backlog));
	__atomic_store_n(&shared->worker[role->index].listens, 1, __ATOMIC_RELEASE);
	while (role->sleeps)
		pause();
	while (!end || (open && now_ms() < end)) {
		struct rdma_ucm_conn_param param = conn_param();

		if (is_retired && !end) {
			CHECK(destroy_id(fd, listener) >= 0);
			end = now_ms() + 5000 * patience();
		}
		if (wait_event(fd, &event, 100) < 0)
			continue;
		switch (event.event) {
		case EV_CONNECT_REQUEST:
			CHECK_EQ(1, event.uid);
			param.qp_num = next_qpn(role->index);
			__atomic_add_fetch(&shared->worker[role->index].requests, 1, __ATOMIC_RELAXED);
			if (role->dawdles)
				break;
			if (role->refuses) {
				CHECK_OK(reject_id(fd, event.id, NULL, 0, REFUSED));
			} else if (accept_id(fd, event.id, 2, &param) >= 0) {
				open++;
				break;
			}
			CHECK(destroy_id(fd, event.id) >= 0);
			break;
		case EV_ESTABLISHED:
		case EV_TIMEWAIT_EXIT:
			break;
		default:
			open -= destroy_id(fd, event.id) >= 0;
		}
	}
}

pid_t start_worker(const struct role *role, const union addr *address)
{
	uint64_t end = now_ms() + 20000 * patience();
	pid_t pid;

	fflush(stdout);
	shared->worker[role->index].listens = 0;
	pid = fork();
	REQUIRE(pid >= 0);
	if (!pid) {
		signal(SIGTERM, retire);
		in_peer();
		serve(role, address);
		fflush(stdout);
		_exit(0);
	}
	while (!__atomic_load_n(&shared->worker[role->index].listens, __ATOMIC_ACQUIRE)) {
		REQUIRE(now_ms() < end && waitpid(pid, NULL, WNOHANG) == 0);
		usleep(1000);
	}
	return pid;
}

void retire_worker(pid_t pid)
{
	REQUIRE(kill(pid, SIGTERM) == 0);
}

void kill_worker(pid_t pid)
{
	REQUIRE(kill(pid, SIGKILL) == 0);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
}
