// SPDX-License-Identifier: GPL-2.0
/* Compares values with the expected ones. fail() is the caller's. */
#include "abi.h"

const char *errno_name(long err)
{
	static char number[2][32];
	static int turn;
	const char *name = strerrorname_np(err);

	if (name)
		return name;
	turn = !turn;
	snprintf(number[turn], sizeof(number[turn]), "%ld", err);
	return number[turn];
}

bool check_err(const char *file, int line, const char *what, int want, long got)
{
	if (want ? got == -want : got >= 0)
		return true;
	fail(file, line, "%s: want %s, got %s", what,
	     want ? errno_name(want) : "success", got < 0 ? errno_name(-got) : "success");
	return false;
}

bool check_eq(const char *file, int line, const char *what, uint64_t want, uint64_t got)
{
	if (want == got)
		return true;
	fail(file, line, "%s: want %#llx, got %#llx", what,
	     (unsigned long long)want, (unsigned long long)got);
	return false;
}

bool check_mem(const char *file, int line, const char *what,
	       const void *want, const void *got, size_t len)
{
	const uint8_t *w = want, *g = got;

	for (size_t i = 0; i < len; i++) {
		if (w[i] != g[i]) {
			fail(file, line, "%s: byte %zu of %zu: want %#x, got %#x",
			     what, i, len, w[i], g[i]);
			return false;
		}
	}
	return true;
}
