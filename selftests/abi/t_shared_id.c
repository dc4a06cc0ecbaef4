// SPDX-License-Identifier: GPL-2.0
/*
 * Three threads that share a number: one makes ids and destroys them, the others bind and listen to
 * whatever has the number at the moment. The suite looks at the messages in the kernel log.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "abi.h"

static int file;
static atomic_uint shared;
static atomic_bool over;
static unsigned long made;
static atomic_ulong bound, listening;

static void *maker(void *arg)
{
	long before = -1;

	while (!over) {
		long id = create_id(file, PS_IPOIB, 0);

		if (!CHECK(id >= 0))
			break;
		shared = id;
		made++;
		if (before >= 0)
			CHECK_OK(destroy_id(file, before));
		before = id;
	}
	if (before >= 0)
		CHECK_OK(destroy_id(file, before));
	over = true;
	return NULL;
}

static bool is_late(long ret)
{
	/* Destroyed, or not yet in the state. */
	return ret == -ENOENT || ret == -EINVAL;
}

static void *binder(void *arg)
{
	/* A group, of no interface: no device leads there, and nothing is known of it. */
	union addr group = { .in6 = { .sin6_family = AF_INET6, .sin6_addr.s6_addr = { 0xff } } };

	while (!over) {
		long ret = bind_ip(file, shared, &group);

		bound += !is_late(ret);
		if (!CHECK(ret == 0 || is_late(ret) || ret == -EADDRNOTAVAIL || ret == -ENODEV))
			break;
	}
	return NULL;
}

static void *listener(void *arg)
{
	while (!over) {
		long ret = listen_id(file, shared, 0);

		listening += ret == 0;
		if (!CHECK(ret == 0 || is_late(ret) || ret == -EADDRINUSE))
			break;
	}
	return NULL;
}

TEST_LIMIT(shared_id, create_bind_listen, 60)
{
	void *(*const runs[])(void *) = { maker, binder, listener };
	pthread_t threads[3];

	file = cm_open(O_RDWR | O_NONBLOCK);
	shared = REQUIRE_ID(create_id(file, PS_IPOIB, 0));
	for (int i = 0; i < 3; i++)
		REQUIRE_EQ(0, pthread_create(&threads[i], NULL, runs[i], NULL));
	sleep(10);
	over = true;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	note("%lu ids, %lu binds that met one, %lu listeners", made, bound, listening);
	CHECK(made > 100);
	CHECK(bound > 0);
	CHECK(listening > 0);
}
