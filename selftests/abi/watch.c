// SPDX-License-Identifier: GPL-2.0
/* Watches for the time that a guest loses on a busy host. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "abi.h"

/* A watch sleeps for so long at a time. */
#define NAP_US 10000ull

/* The time by which the watches have slept too long. */
static atomic_long lost_us;

/* No task of the guest keeps it from its processor, so that a nap is too long when the host does not run that. */
static void *watch(void *processor)
{
	struct sched_param first = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((long)processor, &set);
	REQUIRE_EQ(0, pthread_setaffinity_np(pthread_self(), sizeof(set), &set));
	REQUIRE_EQ(0, pthread_setschedparam(pthread_self(), SCHED_FIFO, &first));
	for (;;) {
		uint64_t begun = now_ns(), late;

		usleep(NAP_US);
		late = (now_ns() - begun) / 1000 - NAP_US;
		if (late > NAP_US)
			atomic_fetch_add(&lost_us, late);
	}
	return NULL;
}

uint64_t begin_ms(void)
{
	static bool watched;

	for (long i = 0; !watched && i < sysconf(_SC_NPROCESSORS_ONLN); i++) {
		pthread_t thread;

		REQUIRE_EQ(0, pthread_create(&thread, NULL, watch, (void *)i));
	}
	watched = true;
	atomic_store(&lost_us, 0);
	return now_ms();
}

long slack_ms(void)
{
	return 700 * patience() + atomic_load(&lost_us) / 1000;
}
