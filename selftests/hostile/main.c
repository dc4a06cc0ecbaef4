// SPDX-License-Identifier: GPL-2.0
/*
 * Acts of a hostile user.
 *
 *	hostile ACT ARGUMENT...
 */
#include <grp.h>
#include <stdarg.h>

#include "hostile.h"

static struct act *acts;

void act_register(struct act *a)
{
	a->next = acts;
	acts = a;
}

void become(unsigned int uid)
{
	REQUIRE(setgroups(0, NULL) == 0);
	REQUIRE(setresgid(uid, uid, uid) == 0);
	REQUIRE(setresuid(uid, uid, uid) == 0);
}

int file(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

/* --- what the files of ../abi want of their harness: here all ends with the first failure --- */

void note(const char *format, ...)
{
}

void fail(const char *at, int line, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: ", at, line);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
}

void stop(void)
{
	fflush(stdout);
	_exit(1);
}

void skip(const char *format, ...)
{
	fail("skipped", 0, "%s", format);
	stop();
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	for (struct act *a = acts; a; a = a->next) {
		if (argc >= 2 && strcmp(argv[1], a->name) == 0) {
			a->run(argv + 2);
			return 0;
		}
	}
	for (struct act *a = acts; a; a = a->next)
		fprintf(stderr, "%s %s %s\n", argv[0], a->name, a->arguments);
	return 2;
}
