// SPDX-License-Identifier: GPL-2.0
/*
 * A plugin of QEMU that counts the instructions of a guest's kernel exactly, by the calls that led
 * to them.
 *
 * A line of a stretch is "NODE PARENT ADDRESS SELF CALLS": a function that was entered at ADDRESS
 * so often from the function of the node PARENT, or from nowhere known if that is 0, and the
 * instructions of its own. Before the last line stands "user N", the instructions of user space.
 */
#include "calls.h"

static void end(unsigned int cpu, void *unused)
{
	FILE *file = end_calls();

	(void)cpu;
	(void)unused;
	fprintf(file, "user %" PRIu64 "\n", user);
	close_stretch(file);
}

static void translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	watch_marks(tb, begin_calls, end);
	watch_calls(tb);
}

int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_info *info, int argc, char **argv)
{
	(void)info;
	return install_calls(id, argc, argv, init_calls, translate);
}
