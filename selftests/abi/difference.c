// SPDX-License-Identifier: GPL-2.0
/*
 * The places where the Rust module differs from C on purpose. A test that meets one of these
 * accepts exactly the one value of the module that is loaded.
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
	{ "listen_loses_reuseaddr", EADDRINUSE, 0, "a call that fails changes nothing" },
	{ "peer_moves_again", true, false,
	  "a connection whose peer has moved is told once: a peer cannot fill its queue" },
	{ "peer_moves_after_the_end", true, false,
	  "where a peer is, is news as long as there is a connection or an attempt at one" },
	{ "migrate_wakes", false, true,
	  "C wakes who waits for events of the new file only with the next event" },
	{ "request_moves_alone", true, false,
	  "C moves an unread request with its listener, but not the id that it announces" },
	{ "migrate_short_answer", true, false,
	  "C answers MIGRATE_ID also where the answer is said to have no room" },
	{ "igmp_of_no_group", 1, 0,
	  "no interface becomes a member of what is no multicast address" },
	{ "igmp_after_failed_join", 1, 0, "a call that fails changes nothing" },
	{ "igmp_of_another", 0, 1,
	  "C ends whatever membership there is by that address" },
	{ "ipv6_groups", 524 /* ENOTSUPP */, 0, "C has no IPv6 groups over RoCE v2" },
	{ "mcast_error_status", 0, -ENOENT, "an error event has an error" },
	{ "failed_bind_leaves_address", true, false,
	  "a call that fails changes nothing" },
	{ "scope_of_lo", 0, ENODEV,
	  "a link-local address is bound only where it is; C has an exception of soft-RoCE" },
	{ "scope_of_another_interface", 0, EINVAL,
	  "the address means another peer at each interface; C asks where the source is" },
	{ "route_after_failed_resolve", ENODEV, 0,
	  "a call that fails changes nothing; C takes the scope of the address" },
	{ "foreign_id", EINVAL, ENOENT, "an id of another file cannot be told from none" },
	{ "claims_end_connections", true, false,
	  "who claims a queue pair number is refused; its peer is asked before a connection is given up" },
	{ "requests_block_numbers", true, false,
	  "a request that its sender has not confirmed makes no other stale" },
	{ "written_events", 0, EAGAIN, "so many events of programs, and no more, may be unread" },
};

int differs(const char *key)
{
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++)
		if (strcmp(differences[i].key, key) == 0)
			return is_rust() ? differences[i].rust : differences[i].c;
	fail(__FILE__, __LINE__, "no such difference: %s", key);
	stop();
}
