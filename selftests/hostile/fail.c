// SPDX-License-Identifier: GPL-2.0
/* The functions that the files of ../abi want of their harness: here all ends with the first failure. */
#include <stdarg.h>

#include "../abi/abi.h"

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
