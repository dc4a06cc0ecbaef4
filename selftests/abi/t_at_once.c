// SPDX-License-Identifier: GPL-2.0
/* Commands that come at the same time as others, of which one has to see what the other has done. */
#include <poll.h>
#include <pthread.h>

#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 1));
}

struct caller {
	int f;
	uint32_t id;
	struct rdma_ucm_conn_param param;
	pthread_barrier_t *start;
	long ret;
};

static void *connects(void *arg)
{
	struct caller *c = arg;

	pthread_barrier_wait(c->start);
	c->ret = connect_id(c->f, c->id, &c->param);
	return NULL;
}

/* One of them makes the connection, and there is no other. */
TEST(connect, twice_at_once)
{
	for (int round = 0; round < 10; round++) {
		struct pair p = { 0 };
		union addr a = any_port4();
		pthread_barrier_t start;
		struct caller callers[2];
		pthread_t threads[2];
		int made = 0;

		pair_routed(&p, &a);
		pthread_barrier_init(&start, NULL, 2);
		for (int i = 0; i < 2; i++) {
			callers[i] = (struct caller){ p.cfd, p.client, p.cparam, &start, 0 };
			REQUIRE_EQ(0, pthread_create(&threads[i], NULL, connects, &callers[i]));
		}
		for (int i = 0; i < 2; i++) {
			pthread_join(threads[i], NULL);
			if (callers[i].ret >= 0)
				made++;
			else
				CHECK_ERR(EINVAL, callers[i].ret);
		}
		CHECK_EQ(1, made);
		NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
		CHECK(no_event(p.sfd, 100));
		REQUIRE_OK(accept_id(p.sfd, p.request.id, 2, &p.sparam));
		NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
		close(p.cfd);
		close(p.sfd);
	}
}

/*
 * The identifier of a request that nobody has read is destroyed by its number, which is the next identifier's
 * then: that does not go when the request does. C looks for the number in memory that it has freed.
 */
TEST(destroy, number_of_an_unread_request)
{
	struct pair p = { 0 };
	union addr a = any_port4();
	struct pollfd queued;
	uint32_t number;

	if (!is_rust())
		skip("C reads freed memory");
	pair_routed(&p, &a);
	number = new_id(p.sfd);
	REQUIRE_OK(destroy_id(p.sfd, number));
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	queued = (struct pollfd){ .fd = p.sfd, .events = POLLIN };
	REQUIRE_EQ(1, poll(&queued, 1, 5000 * patience()));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(p.sfd, number)));
	NEED_EVENT(p.cfd, EV_REJECTED, NULL);
	REQUIRE_EQ(number, new_id(p.sfd));
	REQUIRE_OK(destroy_id(p.sfd, p.listener));
	CHECK_OK(bind4(p.sfd, number, ADDR4, 0));
}

static void *destroys(void *arg)
{
	struct caller *c = arg;

	pthread_barrier_wait(c->start);
	c->ret = destroy_id(c->f, c->id);
	return NULL;
}

/* A number is free when nothing is left under it: the events of the next identifier that has it arrive. */
TEST(create, number_that_becomes_free)
{
	union addr dst = addr4(ADDR4, 7499);

	for (int round = 0; round < 20; round++) {
		int f = fd();
		pthread_barrier_t start;
		struct rdma_ucm_event_resp ev;
		struct caller c = { .f = f, .id = new_id(f), .start = &start };
		pthread_t thread;
		uint32_t number;

		pthread_barrier_init(&start, NULL, 2);
		REQUIRE_EQ(0, pthread_create(&thread, NULL, destroys, &c));
		pthread_barrier_wait(&start);
		/* The lowest free one is given. */
		do
			number = new_id(f);
		while (number != c.id);
		REQUIRE_OK(resolve_addr(f, number, NULL, &dst, 2000));
		pthread_join(thread, NULL);
		CHECK_EQ(0, REQUIRE_ID(c.ret));
		NEED_EVENT(f, EV_ADDR_RESOLVED, &ev);
		CHECK_EQ(number, ev.id);
		CHECK_OK(destroy_id(f, number));
		close(f);
	}
}
