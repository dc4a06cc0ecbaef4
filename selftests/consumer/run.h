/* SPDX-License-Identifier: GPL-2.0 */
/* How a consumer for tests finds its device and runs them. For the file with its init function. */
#ifndef CONSUMER_RUN_H
#define CONSUMER_RUN_H

#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

#include "check.h"

static char *device = "rxe0";
module_param(device, charp, 0);
MODULE_PARM_DESC(device, "RoCE device, or iWARP where there are tests for it");

struct ib_device *dev;
bool good;
static int number;
static bool failed;

static void run(const char *name, void (*test)(void))
{
	good = true;
	test();
	failed |= !good;
	pr_info(KBUILD_MODNAME ": %s %d - %s\n", good ? "ok" : "not ok", ++number, name);
}

/* To be returned by the init function: EIO if something was wrong. */
static int outcome(void)
{
	pr_info(KBUILD_MODNAME ": 1..%d\n", number);
	return failed ? -EIO : 0;
}

static int add(struct ib_device *added)
{
	if (!strcmp(dev_name(&added->dev), device))
		dev = added;
	return 0;
}

static void removed(struct ib_device *device, void *data)
{
}

/* While it is registered the device stays. */
static struct ib_client client = {
	.name = KBUILD_MODNAME,
	.add = add,
	.remove = removed,
};

#endif
