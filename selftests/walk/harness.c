// SPDX-License-Identifier: GPL-2.0
/* The functions of a harness that the files of ../abi need, where nothing is judged case by case. */
#include <stdarg.h>

#include "walk.h"

static __thread char why[512];

void note(const char *format, ...)
{
}

void fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
}

void stop(void)
{
	stopped(why);
	abort();
}

void skip(const char *format, ...)
{
	snprintf(why, sizeof(why), "%s", format);
	stop();
}

const char *errno_name(long err)
{
	return strerrorname_np(err) ?: "?";
}

bool check_err(const char *file, int line, const char *what, int want, long got)
{
	if (want ? got == -want : got >= 0)
		return true;
	fail(file, line, "%s: %s", what, got < 0 ? errno_name(-got) : "success");
	return false;
}

bool check_eq(const char *file, int line, const char *what, uint64_t want, uint64_t got)
{
	if (want != got)
		fail(file, line, "%s: another value", what);
	return want == got;
}
