// SPDX-License-Identifier: GPL-2.0
/* The clock. */
#include <time.h>
#include "abi.h"

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

uint64_t now_ms(void)
{
	return now_ns() / 1000000;
}
