// SPDX-License-Identifier: GPL-2.0
/*
 * MIGRATE_ID against everything else, from several threads: ids go round between
 * three files while they have events, are destroyed, connect, lose their device or
 * their file. Nothing hangs, no event is lost or comes twice, every count is right.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "abi.h"

#define PORT 7720
#define FILES 3
#define IDS 6

static int files[FILES];
static atomic_bool over;
/* The ids that movers move; ~0 is none. */
static atomic_uint moving[IDS];
static atomic_ulong moves;

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	REQUIRE_EQ(0, pthread_create(thread, NULL, run, arg));
}

static void open_files(void)
{
	for (int i = 0; i < FILES; i++)
		files[i] = fd();
	for (int i = 0; i < IDS; i++)
		moving[i] = ~0u;
}

/* Takes any id from any file to any other. */
static void *mover(void *arg)
{
	unsigned seed = (uintptr_t)arg + 1;

	while (!over) {
		uint32_t id = moving[rand_r(&seed) % IDS];
		int from = files[rand_r(&seed) % FILES], to = files[rand_r(&seed) % FILES];
		long ret = id == ~0u ? -ENOENT : migrate_id(to, id, from);

		/* In another file, or gone, or its device has gone. */
		if (ret != -EINVAL && ret != -ENOENT && ret != -ENXIO && !CHECK(ret >= 0))
			break;
		if (ret >= 0)
			moves++;
	}
	return NULL;
}

/* Does a thing in the file that has the id. */
#define WHEREVER(what, call) ({								\
	double end_ = now() + 10;							\
	long ret_;									\
	for (int i_ = 0; ; i_++) {							\
		int f = files[i_ % FILES];						\
		ret_ = (call);								\
		if (ret_ != -differs("foreign_id"))						\
			break;								\
		if (now() > end_) {							\
			fail(__FILE__, __LINE__, "in no file: " what);			\
			stop();								\
		}									\
	}										\
	ret_;										\
})

/* --- events --- */

#define UIDS 4096
static atomic_uint got[UIDS];		/* events by uid */
static atomic_bool faulty;		/* Half of the reads cannot write. */

static void *reader(void *arg)
{
	int f = files[(uintptr_t)arg % FILES];
	struct rdma_ucm_get_event bad = { .response = ptr(readonly(400)) };
	struct rdma_ucm_event_resp ev;

	while (!over) {
		if (faulty) {
			long ret = cm_cmd(f, RDMA_USER_CM_CMD_GET_EVENT, &bad, sizeof(bad), 400);

			CHECK(ret == -EFAULT || ret == -EAGAIN);
		}
		if (wait_event(f, &ev, 20) == 0 && CHECK(ev.uid < UIDS))
			got[ev.uid]++;
	}
	return NULL;
}

static void await_events(uint64_t uid, unsigned n)
{
	for (double end = now() + 15; got[uid] < n; usleep(500)) {
		if (now() > end) {
			fail(__FILE__, __LINE__, "uid %lu: %u events of %u", uid, got[uid], n);
			stop();
		}
	}
	CHECK_EQ(n, got[uid]);
}

static void events(double seconds)
{
	union addr dst = addr4(ADDR4, PORT);
	pthread_t movers[2], readers[4];
	double end = now() + seconds;
	uint64_t uid = 1;

	open_files();
	for (uintptr_t i = 0; i < 2; i++)
		start(&movers[i], mover, (void *)i);
	for (uintptr_t i = 0; i < 4; i++)
		start(&readers[i], reader, (void *)i);
	while (now() < end && uid + IDS < UIDS) {
		uint32_t id[IDS];

		for (int i = 0; i < IDS; i++)
			moving[i] = id[i] = REQUIRE_ID(create_id(files[i % FILES], PS_TCP, uid + i));
		for (int i = 0; i < IDS; i++)
			CHECK_OK(WHEREVER("resolve", resolve_addr(f, id[i], NULL, &dst, 5000)));
		for (int i = 0; i < IDS; i++) {
			await_events(uid + i, 1);
			CHECK_OK(WHEREVER("route", resolve_route(f, id[i], 5000)));
		}
		for (int i = 0; i < IDS; i++) {
			await_events(uid + i, 2);
			CHECK_EQ(2, WHEREVER("destroy", destroy_id(f, id[i])));
			moving[i] = ~0u;
		}
		uid += IDS;
	}
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(movers[i], NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(readers[i], NULL);
	for (uint64_t i = 1; i < uid; i++)
		CHECK_EQ(2, got[i]);
	note("%lu ids, %lu moves", uid - 1, moves);
	CHECK(uid > IDS);
}

TEST_LIMIT(migrate_race, get_event, 60)
{
	events(5);
}

TEST_LIMIT(migrate_race, get_event_that_fails, 60)
{
	faulty = true;
	events(5);
}

/* --- two or three things at once --- */

static pthread_barrier_t barrier;

struct act {
	long (*run)(uint32_t id);
	uint32_t id;
	long ret;
	pthread_t thread;
};

static void *act(void *arg)
{
	struct act *a = arg;

	pthread_barrier_wait(&barrier);
	a->ret = a->run(a->id);
	return NULL;
}

static void at_once(struct act *acts, int n, uint32_t id)
{
	pthread_barrier_init(&barrier, NULL, n);
	for (int i = 0; i < n; i++) {
		acts[i].id = id;
		start(&acts[i].thread, act, &acts[i]);
	}
	for (int i = 0; i < n; i++)
		pthread_join(acts[i].thread, NULL);
	pthread_barrier_destroy(&barrier);
}

static long move_0_to_1(uint32_t id)
{
	return migrate_id(files[1], id, files[0]);
}

static long move_1_to_0(uint32_t id)
{
	return migrate_id(files[0], id, files[1]);
}

static long destroy_in_0(uint32_t id)
{
	return destroy_id(files[0], id);
}

static long destroy_in_1(uint32_t id)
{
	return destroy_id(files[1], id);
}

static long close_0(uint32_t id)
{
	return close(files[0]);
}

static long close_1(uint32_t id)
{
	return close(files[1]);
}

TEST_LIMIT(migrate_race, destroy, 60)
{
	struct act acts[] = {
		{ .run = move_0_to_1 }, { .run = destroy_in_0 }, { .run = destroy_in_1 },
	};

	open_files();
	for (int i = 0; i < 300; i++) {
		uint32_t id = REQUIRE_ID(create_id(files[0], PS_TCP, 1));
		int n;

		at_once(acts, 3, id);
		/* An id that was moved is not in the first file, and one that was destroyed there is not moved. */
		CHECK(acts[0].ret < 0 || acts[1].ret < 0);
		n = (acts[1].ret == 0) + (acts[2].ret == 0);
		n += destroy_in_0(id) == 0;
		n += destroy_in_1(id) == 0;
		CHECK_EQ(1, n);
		if (acts[0].ret != -differs("foreign_id"))
			CHECK(acts[0].ret == 0 || acts[0].ret == -ENOENT);
	}
}

TEST_LIMIT(migrate_race, two_ways, 60)
{
	struct act acts[] = { { .run = move_0_to_1 }, { .run = move_1_to_0 } };

	open_files();
	for (int i = 0; i < 300; i++) {
		uint32_t id = REQUIRE_ID(create_id(files[0], PS_TCP, 1));
		int n;

		at_once(acts, 2, id);
		CHECK_OK(acts[0].ret);
		n = (destroy_in_0(id) == 0) + (destroy_in_1(id) == 0);
		CHECK_EQ(1, n);
	}
}

TEST_LIMIT(migrate_race, close_of_the_old_file, 60)
{
	struct act acts[] = { { .run = move_0_to_1 }, { .run = close_0 } };
	int moved = 0;

	open_files();
	for (int i = 0; i < 300; i++) {
		uint32_t id = REQUIRE_ID(create_id(files[0], PS_TCP, 1));

		at_once(acts, 2, id);
		CHECK_EQ(0, acts[1].ret);
		CHECK(acts[0].ret == 0 || acts[0].ret == -ENOENT);
		CHECK_ERR(acts[0].ret == 0 ? 0 : ENOENT, destroy_in_1(id));
		moved += acts[0].ret == 0;
		files[0] = fd();
	}
	note("%d moved", moved);
}

TEST_LIMIT(migrate_race, close_of_the_new_file, 60)
{
	struct act acts[] = { { .run = move_0_to_1 }, { .run = close_1 } };
	int moved = 0;

	open_files();
	for (int i = 0; i < 300; i++) {
		uint32_t id = REQUIRE_ID(create_id(files[0], PS_TCP, 1));

		at_once(acts, 2, id);
		CHECK_EQ(0, acts[1].ret);
		CHECK(acts[0].ret == 0 || acts[0].ret == -EBADF);
		/* With the file goes what has moved to it. */
		CHECK_ERR(acts[0].ret == 0 ? ENOENT : 0, destroy_in_0(id));
		moved += acts[0].ret == 0;
		files[1] = fd();
	}
	note("%d moved", moved);
}

static void *mover_of_one(void *arg)
{
	int to = (uintptr_t)arg;

	while (!over)
		for (int i = 0; i < IDS; i++)
			moves += migrate_id(files[to], moving[i], files[(to + 2) % FILES]) >= 0;
	return NULL;
}

TEST_LIMIT(migrate_race, circles, 60)
{
	pthread_t movers[2 * FILES];

	open_files();
	for (int i = 0; i < IDS; i++)
		moving[i] = REQUIRE_ID(create_id(files[i % FILES], PS_TCP, 1));
	for (uintptr_t i = 0; i < FILES; i++) {
		start(&movers[i], mover_of_one, (void *)i);
		start(&movers[FILES + i], mover, (void *)i);
	}
	sleep(4);
	over = true;
	for (int i = 0; i < 2 * FILES; i++)
		pthread_join(movers[i], NULL);
	for (int i = 0; i < IDS; i++)
		CHECK_OK(WHEREVER("destroy", destroy_id(f, moving[i])));
	note("%lu moves", moves);
	CHECK(moves > 100);
}

/* --- connections --- */

static atomic_uint accepted, established;

/* Reads one file: accepts requests where they are, and counts. */
static void *server(void *arg)
{
	int f = files[(uintptr_t)arg];
	struct rdma_ucm_event_resp ev;

	while (!over) {
		struct rdma_ucm_conn_param param = conn_param();
		unsigned slot;

		param.qp_num = 0x300000 + (uintptr_t)arg * 0x10000 + accepted;
		if (wait_event(f, &ev, 20))
			continue;
		switch (ev.event) {
		case EV_CONNECT_REQUEST:
			/* On C it can be elsewhere: the listener has moved. */
			if (differs("request_moves_alone"))
				CHECK_OK(WHEREVER("accept", accept_id(f, ev.id, 2, &param)));
			else
				CHECK_OK(accept_id(f, ev.id, 2, &param));
			slot = accepted++;
			/* From here on the connection goes round, too. */
			moving[1 + slot % (IDS - 1)] = ev.id;
			break;
		case EV_ESTABLISHED:
			established++;
			break;
		}
	}
	return NULL;
}

TEST_LIMIT(migrate_race, connect, 90)
{
	union addr dst = any_port4();
	struct rdma_ucm_query_addr_resp resp;
	pthread_t movers[2], servers[FILES];
	double end = now() + 6;
	unsigned done = 0;
	int c = fd();

	open_files();
	moving[0] = REQUIRE_ID(create_id(files[0], PS_TCP, 1));
	REQUIRE_OK(bind_addr(files[0], moving[0], &dst));
	REQUIRE_OK(query_addr(files[0], moving[0], &resp));
	memcpy(&dst, &resp.src_addr, sizeof(dst));
	REQUIRE_OK(listen_id(files[0], moving[0], 0));
	for (uintptr_t i = 0; i < 2; i++)
		start(&movers[i], mover, (void *)i);
	for (uintptr_t i = 0; i < FILES; i++)
		start(&servers[i], server, (void *)i);
	while (now() < end && done < 500) {
		struct rdma_ucm_conn_param param = conn_param();
		uint32_t id = routed_client(c, 1, &dst);

		param.qp_num = 0x200000 + done;
		REQUIRE_OK(connect_id(c, id, &param));
		NEED_EVENT(c, EV_CONNECT_RESPONSE, NULL);
		REQUIRE_OK(accept_id(c, id, 0, NULL));
		done++;
		for (int i = 0; i < 1000 && established < done; i++)
			usleep(5000);
		REQUIRE_EQ(done, established);
	}
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(movers[i], NULL);
	for (int i = 0; i < FILES; i++)
		pthread_join(servers[i], NULL);
	CHECK_EQ(done, accepted);
	/* The requests count with the listener. */
	CHECK_EQ(accepted, WHEREVER("destroy", destroy_id(f, moving[0])));
	note("%u connections, %lu moves", done, moves);
	CHECK(done > 5);
}

/* --- the device goes --- */

TEST_LIMIT(migrate_race, removal, 90)
{
	pthread_t movers[2], readers[FILES];

	open_files();
	for (uintptr_t i = 0; i < 2; i++)
		start(&movers[i], mover, (void *)i);
	for (uintptr_t i = 0; i < FILES; i++)
		start(&readers[i], reader, (void *)i);
	for (int round = 0; round < 5; round++) {
		uint32_t id[IDS];

		plug();
		for (int i = 0; i < IDS; i++) {
			id[i] = REQUIRE_ID(create_id(files[i % FILES], PS_TCP, 1 + round * IDS + i));
			REQUIRE_OK(bind4(files[i % FILES], id[i], PLUG_ADDR, 0));
			moving[i] = id[i];
		}
		unplug();
		for (int i = 0; i < IDS; i++) {
			await_events(1 + round * IDS + i, 1);
			CHECK_EQ(1, WHEREVER("destroy", destroy_id(f, id[i])));
			moving[i] = ~0u;
		}
		unwire();
	}
	over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(movers[i], NULL);
	for (int i = 0; i < FILES; i++)
		pthread_join(readers[i], NULL);
	for (int i = 1; i <= 5 * IDS; i++)
		CHECK_EQ(1, got[i]);
}
