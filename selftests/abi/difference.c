// SPDX-License-Identifier: GPL-2.0
/*
 * Where the Rust module differs from C on purpose. A test that meets one of
 * these accepts exactly the one value of the module that is loaded.
 */
#include "abi.h"

static const struct {
	const char *key;
	int c, rust;
	const char *reason;
} differences[] = {
	{ "short_request", false, true,
	  "C reads a whole structure, also where the request is said to end earlier; "
	  "in Rust what is not there is zero" },
	{ "backlog_after_failed_listen", 3, 1,
	  "a call that fails changes nothing" },
	{ "option_path", 0, ENOSYS, "the option is not built yet" },
	{ "leave_mcast", ENOENT, ENOSYS, "multicast is not built yet" },
	{ "join_ip_mcast", ENOENT, ENOSYS, "multicast is not built yet" },
	{ "join_mcast", ENOENT, ENOSYS, "multicast is not built yet" },
	{ "migrate_wakes", false, true,
	  "C wakes who waits for events of the new file only with the next event" },
	{ "request_moves_alone", true, false,
	  "C moves an unread request with its listener, but not the id that it announces" },
	{ "migrate_short_answer", true, false,
	  "C answers MIGRATE_ID also where the answer is said to have no room" },
	{ "resolve_ib_service", ENOENT, ENOSYS, "service resolution is not built yet" },
	{ "write_cm_event", ENOENT, ENOSYS, "user events are not built yet" },
};

int differs(const char *key)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		if (strcmp(differences[i].key, key) == 0)
			return is_rust() ? differences[i].rust : differences[i].c;
	fail(__FILE__, __LINE__, "no such difference: %s", key);
	stop();
}
