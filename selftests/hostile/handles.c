// SPDX-License-Identifier: GPL-2.0
/* The address handles of a device, which the connections of a user do not take from others. */
#include "hostile.h"

#define PROGRESS 64
#define ROUNDS 3
#define CONNECTIONS 200
#define DLID 40 /* in a path record */

/* Asks a host with this LID for a connection, with a path like that to "dst". Returns whether it is asked. */
static bool ask(int fd, const union addr *dst, uint16_t lid)
{
	static struct { struct rdma_ucm_query_path_resp head; struct ib_path_rec_data data; } path;
	struct rdma_ucm_conn_param param = conn_param();
	uint32_t id;

	if (path.head.num_paths == 0) {
		id = routed_client(fd, 1, dst);
		REQUIRE_OK(query(fd, id, RDMA_USER_CM_QUERY_PATH, &path, sizeof(path)));
		path.data.flags = IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL;
	}
	((uint8_t *)path.data.path_rec)[DLID] = lid >> 8;
	((uint8_t *)path.data.path_rec)[DLID + 1] = lid;
	id = REQUIRE_ID(create_id(fd, PS_TCP, 1));
	NEED_ADDR(fd, id, NULL, dst);
	REQUIRE_OK(set_option(fd, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path.data, sizeof(path.data)));
	NEED_EVENT(fd, EV_ROUTE_RESOLVED, NULL);
	return connect_id(fd, id, &param) >= 0;
}

/* Connects so often, and returns how often that succeeds. The 99th percentile of the times goes to "p99". */
static int connect_some(const union addr *a, uint64_t *p99)
{
	uint64_t took[CONNECTIONS];
	int connected = 0;

	for (int i = 0; i < CONNECTIONS; i++) {
		pid_t pid = child();

		if (pid == 0) {
			uint64_t start = now_ns();
			struct pair p = { 0 };

			pair_established(&p, a);
			shared->took = now_ns() - start;
			_exit(0);
		}
		if (reap(pid) == 0)
			took[connected++] = shared->took;
	}
	*p99 = connected ? percentile(took, connected, 99) : 0;
	return connected;
}

/*
 * Does so in three rounds, as what others send comes in bursts. The median of the percentiles is printed with this name.
 */
static int connect_all(const char *name, const union addr *a)
{
	uint64_t p99[ROUNDS];
	int connected = 0;

	for (int i = 0; i < ROUNDS; i++)
		connected += connect_some(a, &p99[i]);
	printf("connected_%s=%lu ", name, percentile(p99, ROUNDS, 50));
	return connected;
}

/*
 * A user asks as many hosts, along different paths like that to DST, as the device has address handles, and they do not
 * answer. "asked" is the number of those "tried" that are asked. Another user connects to itself at SRC 600 times before
 * and 600 times beside that: "before" and "beside" are the numbers of its connections, "connected_few" and
 * "connected_many" 99th percentiles of their times in nanoseconds.
 */
ACT(exhaust, "SRC DST NUMBER")
{
	union addr src = addr4(arguments[0], 0), dst = addr4(arguments[1], 7);
	int tried = atoi(arguments[2]);
	pid_t pid;

	share();
	pid = child();
	if (pid == 0) {
		int fd, asked = 0;

		wait_for(&shared->go);
		become(NOBODY);
		fd = file();
		for (int i = 0; i < tried; i++) {
			if (i % PROGRESS == 0)
				sem_post(&shared->done);
			asked += ask(fd, &dst, 0x1000 + i);
		}
		printf("tried=%d asked=%d ", tried, asked);
		fflush(stdout);
		sem_post(&shared->done);
		wait_for(&shared->go);
		_exit(0);
	}
	become(SOMEBODY);
	printf("before=%d ", connect_all("few", &src));
	fflush(stdout);
	sem_post(&shared->go);
	for (int i = 0; i <= (tried + PROGRESS - 1) / PROGRESS; i++)
		wait_for(&shared->done);
	printf("beside=%d\n", connect_all("many", &src));
	sem_post(&shared->go);
	REQUIRE(reap(pid) == 0);
}
