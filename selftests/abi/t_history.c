// SPDX-License-Identifier: GPL-2.0
/* Old bugs of C that no other file tests for. */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 1));
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* A reference that an error path forgets makes DESTROY_ID wait for ever. */
TEST(destroy, soon_after_commands_that_failed)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_query_addr_resp addr;
	struct ib_uverbs_qp_attr attr;
	union addr far = addr4("192.0.2.1", 7471), bad = { 0 };
	int f = fd(), one = 1;
	double before;
	uint32_t id;

	for (int command = 0; command < 14; command++) {
		long ret;

		id = new_id(f);
		switch (command) {
		case 0:
			ret = bind_addr(f, id, &far);
			break;
		case 1:
			ret = bind_ip(f, id, &bad);
			break;
		case 2:
			ret = resolve_ip(f, id, NULL, &bad, 1000);
			break;
		case 3:
			ret = resolve_route(f, id, 1000);
			break;
		case 4:
			ret = connect_id(f, id, &param);
			break;
		case 5:
			ret = accept_id(f, id, 1, &param);
			break;
		case 6:
			ret = reject_id(f, id, NULL, 0, 0);
			break;
		case 7:
			ret = disconnect_id(f, id);
			break;
		case 8:
			ret = notify_id(f, id, 4);
			break;
		case 9:
			ret = init_qp_attr(f, id, 1, &attr);
			break;
		case 10:
			ret = set_option(f, id, 0, RDMA_OPTION_ID_TOS, &one, 4);
			break;
		case 11:
			ret = set_option(f, id, 7, 0, &one, 4);
			break;
		case 12:
			ret = query(f, id, 99, &addr, sizeof(addr));
			break;
		default:
			ret = set_option(f, id, 0, RDMA_OPTION_ID_TOS, unmapped(), 1);
			break;
		}
		CHECK(ret < 0);
		before = seconds();
		CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
		CHECK(seconds() - before < 1);
	}
}

/* The route is asked for while the address is being found, by somebody who waits for nothing. */
TEST(route, asked_again_and_again_while_resolving)
{
	union addr dst = addr4(ADDR4, 7471);

	for (int i = 0; i < 50; i++) {
		int f = fd();
		uint32_t id = new_id(f);
		double until = seconds() + 5;
		long ret;

		REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
		do {
			ret = resolve_route(f, id, 2000);
			if (ret < 0)
				sched_yield();
		} while (ret == -EINVAL && seconds() < until);
		CHECK_OK(ret);
		/* Once, and not again. */
		CHECK_ERR(EINVAL, resolve_route(f, id, 2000));
		NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
		NEED_EVENT(f, EV_ROUTE_RESOLVED, NULL);
		CHECK(no_event(f, 0));
		close(f);
	}
}

struct setter {
	int f;
	uint32_t id, name, len;
	long bad;
};

static void *set_many(void *arg)
{
	struct setter *s = arg;
	int one = 1;

	for (int i = 0; i < 300; i++)
		s->bad += set_option(s->f, s->id, 0, s->name, &one, s->len) != 0;
	return NULL;
}

/* No option is lost because another one is set at the same time. */
TEST(option, set_by_three_threads_at_once)
{
	union addr any = addr4("0.0.0.0", 0);
	struct rdma_ucm_query_addr_resp resp;

	for (int round = 0; round < 5; round++) {
		int f = fd();
		uint32_t id = new_id(f), other;
		struct setter setters[] = {
			{ f, id, RDMA_OPTION_ID_TOS, 1, 0 },
			{ f, id, RDMA_OPTION_ID_REUSEADDR, 4, 0 },
			{ f, id, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 0 },
		};
		pthread_t threads[3];
		union addr same;
		int one = 1;

		for (int i = 0; i < 3; i++)
			REQUIRE_EQ(0, pthread_create(&threads[i], NULL, set_many, &setters[i]));
		for (int i = 0; i < 3; i++) {
			pthread_join(threads[i], NULL);
			CHECK_EQ(0, setters[i].bad);
		}
		/* Another one that shares its address may have the same port. */
		REQUIRE_OK(bind_addr(f, id, &any));
		REQUIRE_OK(query_addr(f, id, &resp));
		memcpy(&same, &resp.src_addr, sizeof(same));
		other = new_id(f);
		REQUIRE_OK(set_option(f, other, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4));
		CHECK_OK(bind_addr(f, other, &same));
		close(f);
	}
}

/* Two queries for one id would be one too many to cancel. */
TEST(resolve, again_after_an_error_and_destroy)
{
	union addr dst = absent4(7471);

	for (int i = 0; i < 20; i++) {
		int f = fd();
		uint32_t id = new_id(f);

		REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 1 + i));
		NEED_EVENT(f, EV_ADDR_ERROR, NULL);
		REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 100000));
		if (i % 2)
			CHECK_ERR(EINVAL, resolve_addr(f, id, NULL, &dst, 1000));
		CHECK(destroy_id(f, id) >= 0);
		CHECK(no_event(f, 10));
		close(f);
	}
}
