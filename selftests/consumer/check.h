/* SPDX-License-Identifier: GPL-2.0 */
/* How the consumers for tests, ibcm and cmid, find and say that something is wrong. */
#ifndef CONSUMER_CHECK_H
#define CONSUMER_CHECK_H

#include <linux/printk.h>
#include <linux/types.h>

/* The most events that one end of a conversation is told of. */
#define EVENTS 16

/* Whether the test that runs has found nothing wrong. */
extern bool good;

#define CHECK(x) \
	((x) || (pr_err(KBUILD_MODNAME ": %s:%d: %s\n", __func__, __LINE__, #x), good = false))
#define IS(x, y) ({ \
	long __x = (x), __y = (y); \
	if (__x != __y) { \
		pr_err(KBUILD_MODNAME ": %s:%d: %s is %ld, not %ld\n", __func__, __LINE__, #x, \
		       __x, __y); \
		good = false; \
	} \
	__x == __y; })

#endif
