// SPDX-License-Identifier: GPL-2.0
/*
 * A user who holds very many of something and goes on using it, and the time of the calls of others meanwhile.
 *
 * An act holds one first, and then very many. Each time it prints the median of calls in nanoseconds, as CALL_few and
 * CALL_many. The calls are those of another user, in the same network namespace (CALL_here) and in another one
 * (CALL_elsewhere), or the user's own.
 */
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "../abi/mcast.h"
#include "hostile.h"

#define HONEST 1000
#define CALLS (patience() > 1 ? 60 : 400)
/* Port that one user binds again and again, and ports that another one binds. */
#define SHARED_PORT 5555
#define FREE_PORT 20000

/* The median time of a call, which says by itself how long it took. */
static uint64_t median(uint64_t (*call)(int, unsigned int), int fd)
{
	uint64_t took[400];
	unsigned int calls = CALLS;

	for (unsigned int i = 0; i < calls; i++)
		took[i] = call(fd, i);
	return percentile(took, calls, 50);
}

/* The users do not share a processor. */
static void on_processor(int number)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(number % sysconf(_SC_NPROCESSORS_ONLN), &set);
	REQUIRE(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static uint32_t reusable(int fd)
{
	uint32_t id = REQUIRE_ID(create_id(fd, PS_TCP, 1)), on = 1;

	REQUIRE_OK(set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &on, sizeof(on)));
	return id;
}

/* --- calls of another user --- */

static const char *address;	/* of the namespace */

static uint64_t bound(int fd, uint32_t id, uint16_t port, int want)
{
	uint64_t start = now_ns(), end;
	long ret = bind4(fd, id, address, port);

	end = now_ns();
	REQUIRE(ret == -want);
	REQUIRE_OK(destroy_id(fd, id));
	return end - start;
}

static uint64_t honest_bind(int fd, unsigned int n)
{
	return bound(fd, REQUIRE_ID(create_id(fd, PS_TCP, 1)), FREE_PORT + n, 0);
}

/* A port that another one has. */
static uint64_t honest_refused(int fd, unsigned int n)
{
	return bound(fd, REQUIRE_ID(create_id(fd, PS_TCP, 1)), SHARED_PORT, EADDRINUSE);
}

/* An ephemeral port. */
static uint64_t honest_any(int fd, unsigned int n)
{
	return bound(fd, REQUIRE_ID(create_id(fd, PS_TCP, 1)), 0, 0);
}

/* An ephemeral port, if there is one. */
static uint64_t honest_perhaps(int fd, unsigned int n)
{
	uint32_t id = REQUIRE_ID(create_id(fd, PS_TCP, 1));
	uint64_t start = now_ns(), end;
	long ret = bind4(fd, id, address, 0);

	end = now_ns();
	REQUIRE(ret == 0 || ret == -EADDRNOTAVAIL);
	REQUIRE_OK(destroy_id(fd, id));
	return end - start;
}

/* A client, which shares its port with ids that have no peer. */
static uint64_t honest_resolve(int fd, unsigned int n)
{
	uint32_t id = REQUIRE_ID(create_id(fd, PS_TCP, 1));
	union addr src = addr4(address, 0), dst = addr4(address, 7000);
	uint64_t start = now_ns(), end;
	long ret = resolve_addr(fd, id, &src, &dst, 2000);

	end = now_ns();
	/* C finds no port to share. */
	REQUIRE(ret == 0 || (!is_rust() && ret == -EADDRNOTAVAIL));
	REQUIRE_OK(destroy_id(fd, id));
	return end - start;
}

/* The median of a call of another user. */
static uint64_t of_another(uint64_t (*call)(int, unsigned int), bool elsewhere)
{
	pid_t pid = child();

	if (pid == 0) {
		on_processor(0);
		address = ADDR4;
		if (elsewhere) {
			int ns = open("/run/netns/peer", O_RDONLY | O_CLOEXEC);

			REQUIRE(ns >= 0 && setns(ns, CLONE_NEWNET) == 0);
			address = FAR4;
		}
		become(HONEST);
		shared->took = median(call, file());
		finished();
	}
	REQUIRE(reap(pid) == 0);
	return shared->took;
}

/* --- what is held --- */

struct holder {
	/* Holds so many, or as many as there are. */
	void (*hold)(int fd, unsigned int count);
	/* One more use of it. Returns how long that took. */
	uint64_t (*use)(int fd, unsigned int n);
	unsigned int many;
	struct {
		const char *name;
		uint64_t (*call)(int, unsigned int);
		bool elsewhere;
	} calls[6];
};

/* Holds that and goes on using it until it is killed. Returns how long a use takes. */
static uint64_t start_holder(const struct holder *holder, unsigned int count, pid_t *pid)
{
	*pid = child();
	if (*pid == 0) {
		int fd;

		become(NOBODY);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		on_processor(1);
		fd = file();
		holder->hold(fd, count);
		shared->took = median(holder->use, fd);
		sem_post(&shared->ready);
		for (unsigned int n = 0;; n++)
			holder->use(fd, n);
	}
	wait_for(&shared->ready);
	return shared->took;
}

static void measure(const struct holder *holder, unsigned int count, const char *how)
{
	pid_t pid;

	printf("own_%s=%llu\n", how, (unsigned long long)start_holder(holder, count, &pid));
	for (size_t i = 0; i < 6 && holder->calls[i].call; i++) {
		uint64_t took = of_another(holder->calls[i].call, holder->calls[i].elsewhere);

		printf("%s_%s_%s=%llu\n", holder->calls[i].name, holder->calls[i].elsewhere ? "elsewhere" : "here",
		       how, (unsigned long long)took);
	}
	kill_child(pid);
}

static void compare(const struct holder *holder, char **arguments)
{
	share();
	measure(holder, 1, "few");
	measure(holder, arguments[0] ? strtoul(arguments[0], NULL, 0) : holder->many, "many");
}

/* Owners of one port. */
static void hold_owners(int fd, unsigned int count)
{
	while (count--)
		REQUIRE_OK(bind4(fd, reusable(fd), ADDR4, SHARED_PORT));
}

static uint64_t use_owners(int fd, unsigned int n)
{
	address = ADDR4;
	return bound(fd, reusable(fd), SHARED_PORT, 0);
}

ACT(owners, "[COUNT]")
{
	static const struct holder holder = {
		hold_owners, use_owners, 14000,
		{
			{ "bind", honest_bind, false },
			{ "bind", honest_bind, true },
			{ "refused", honest_refused, false },
			{ "any", honest_any, false },
			{ "any", honest_any, true },
		},
	};

	compare(&holder, arguments);
}

/* Ephemeral ports. */
static void hold_ports(int fd, unsigned int count)
{
	while (count--) {
		long ret = bind4(fd, REQUIRE_ID(create_id(fd, PS_TCP, 1)), ADDR4, 0);

		if (ret == -EADDRNOTAVAIL)
			return;
		REQUIRE_OK(ret);
	}
}

static uint64_t use_ports(int fd, unsigned int n)
{
	address = ADDR4;
	return honest_perhaps(fd, n);
}

ACT(ports, "[COUNT]")
{
	static const struct holder holder = {
		hold_ports, use_ports, 65536,
		{
			{ "bind", honest_bind, false },
			{ "bind", honest_bind, true },
			{ "any", honest_perhaps, false },
			{ "any", honest_any, true },
			{ "resolve", honest_resolve, false },
			{ "resolve", honest_resolve, true },
		},
	};

	compare(&holder, arguments);
}

/* Unread events of memberships. The interface is not asked, so that its list of groups does not count. */
static uint32_t member, last, other_file;

static uint32_t join_one(int fd)
{
	return REQUIRE_ID(join4(fd, member, 2, GROUP, SEND_ONLY));
}

static void hold_events(int fd, unsigned int count)
{
	member = datagram_id(fd, 1);
	while (count--)
		last = join_one(fd);
	other_file = file();
}

static uint64_t use_events(int fd, unsigned int n)
{
	uint64_t start = now_ns(), end;
	long ret = leave(fd, last);

	end = now_ns();
	REQUIRE(ret >= 0);
	last = join_one(fd);
	return end - start;
}

ACT(events, "[COUNT]")
{
	static const struct holder holder = {
		hold_events, use_events, 30000,
		{
			{ "bind", honest_bind, false },
			{ "bind", honest_bind, true },
		},
	};

	compare(&holder, arguments);
}

/* The same, in an id that moves from file to file. */
static uint64_t use_moved(int fd, unsigned int n)
{
	int from = n & 1 ? (int)other_file : fd, to = n & 1 ? fd : (int)other_file;
	uint64_t start = now_ns(), end;
	long ret = migrate_id(to, member, from);

	end = now_ns();
	REQUIRE(ret >= 0);
	return end - start;
}

ACT(moved, "[COUNT]")
{
	static const struct holder holder = { hold_events, use_moved, 30000, { { NULL } } };

	compare(&holder, arguments);
}
