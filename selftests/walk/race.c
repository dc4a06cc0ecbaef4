// SPDX-License-Identifier: GPL-2.0
/*
 * race [-s SECONDS] [-r ROUNDS] [-w]: every ordered pair of commands, given to one id by two
 * threads at the same time, and every command against closing the file: at least ROUNDS
 * (1) times each, and for at least SECONDS (0) in all. With -w only the commands one
 * after the other, while somebody else changes the world.
 *
 * It passes if every call returns, every file can be closed, and each answer is one that
 * the interface knows; the kernel log is for the caller to look at.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "walk.h"

#define SECONDS_STUCK 60

/* States that are quickly entered come more often. */
static const char *const places[] = {
	"idle", "bound", "idle", "addr_resolved", "idle", "route_resolved", "bound",
	"req_received", "idle", "established_active", "addr_query", "listening", "bound_any",
	"established_passive", "rep_received", "child_waiting", "event_waiting", "ud_bound",
	"ud_route_resolved", "ud_joined",
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static const struct command close_file = { .name = "close" };

static jmp_buf unenterable;
static atomic_long rounds_done, unentered;
static atomic_int ready, go, done;
static unsigned int seed = 1;

/* What the second thread is to do. */
static struct {
	const struct command *command;
	struct subject *subject;
	struct call call;
	long ret;
	int delay;
} other;

void stopped(const char *why)
{
	longjmp(unenterable, 1);
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void skew(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

static long give(const struct command *c, struct subject *s, const struct call *call)
{
	struct tcase t = { .command = c };

	if (c == &close_file)
		return close(s->fd) < 0 ? -errno : 0;
	return issue(&t, s, call);
}

static void *second(void *arg)
{
	int turn = 0;

	for (;;) {
		turn++;
		while (atomic_load(&ready) != turn)
			sched_yield();
		atomic_store(&go, turn);
		skew(other.delay);
		other.ret = give(other.command, other.subject, &other.call);
		atomic_store(&done, turn);
	}
	return NULL;
}

/* An answer that the interface knows. */
static bool is_answer(long ret)
{
	switch (-ret) {
	case EINVAL: case ENOENT: case ENXIO: case EBUSY: case EAGAIN: case ENODEV:
	case EADDRINUSE: case EADDRNOTAVAIL: case ENOSYS: case EISCONN: case ENODATA:
	case EOPNOTSUPP: case ENETUNREACH: case EHOSTUNREACH: case ENOTCONN: case EBADF:
	case ETIMEDOUT: case ENOMEM: case ECONNRESET: case EPROTONOSUPPORT: case 524:
		return true;
	default:
		return ret >= 0;
	}
}

/* One round of a against b in some state. */
static bool round_of(const struct command *a, const struct command *b, long number)
{
	const struct state *state = state_named(places[number % PLACES]);
	struct tcase t = { .command = a };
	/* Static: what is changed before a longjmp must still be there. */
	static struct subject s;
	struct call call = { 0 };
	bool good = true;
	long ret;

	if (!is_rust() && (hangs_on_c(state, a) || hangs_on_c(state, b)))
		return true;
	memset(&s, 0, sizeof(s));
	if (setjmp(unenterable)) {
		/* Where a command is not built, or in a world that changes. */
		atomic_fetch_add(&unentered, 1);
		leave(&s);
		return true;
	}
	enter(state, &s);
	make_call(&t, &s, 0, &call);
	if (b) {
		t.command = b;
		if (b != &close_file)
			make_call(&t, &s, 0, &other.call);
		other.command = b;
		other.subject = &s;
		other.delay = rand_r(&seed) % 2000;
		atomic_fetch_add(&ready, 1);
		while (atomic_load(&go) != atomic_load(&ready))
			sched_yield();
		skew(rand_r(&seed) % 2000);
	}
	ret = give(a, &s, &call);
	if (b) {
		while (atomic_load(&done) != atomic_load(&ready))
			sched_yield();
		good = is_answer(other.ret);
	}
	if (!is_answer(ret) || !good) {
		printf("# %s: %s %s, %s %s\n", state->name, a->name,
		       ret < 0 ? errno_name(-ret) : "ok", b ? b->name : "alone",
		       !b ? "" : other.ret < 0 ? errno_name(-other.ret) : "ok");
		good = false;
	}
	if (b == &close_file) {
		/* The number may be another file's by now: no, nobody opens one. */
		if (s.p.cfd == s.fd)
			s.p.cfd = 0;
		if (s.p.sfd == s.fd)
			s.p.sfd = 0;
	}
	leave(&s);
	unmap_all();
	atomic_fetch_add(&rounds_done, 1);
	return good;
}

static void *watch(void *arg)
{
	long last = -1;
	time_t since = now();

	for (;;) {
		long at = atomic_load(&rounds_done) + atomic_load(&unentered);

		if (at != last) {
			last = at;
			since = now();
		} else if (now() - since > SECONDS_STUCK) {
			printf("Bail out! stuck in a round for %d s\n", SECONDS_STUCK);
			fflush(stdout);
			_exit(1);
		}
		sleep(1);
	}
	return NULL;
}

static bool known(const struct command *c)
{
	return c->number < CMD_END;
}

int main(int argc, char **argv)
{
	long seconds = 0, rounds = 1, number = 0, failures = 0;
	bool alone = false;
	pthread_t thread;
	time_t start;
	int option;

	while ((option = getopt(argc, argv, "s:r:w")) != -1) {
		switch (option) {
		case 's':
			seconds = atol(optarg);
			break;
		case 'r':
			rounds = atol(optarg);
			break;
		case 'w':
			alone = true;
			break;
		default:
			return 2;
		}
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	pthread_create(&thread, NULL, second, NULL);
	pthread_create(&thread, NULL, watch, NULL);
	start = now();
	/* All pairs once, then all again: so each state meets each pair after some time. */
	for (long turn = 0; turn < rounds || now() - start < seconds; turn++) {
		for (size_t a = 0; a < nr_commands; a++) {
			if (!known(&commands[a]))
				continue;
			if (alone) {
				failures += !round_of(&commands[a], NULL, number++);
				continue;
			}
			for (size_t b = 0; b < nr_commands; b++)
				if (known(&commands[b]))
					failures += !round_of(&commands[a], &commands[b], number++);
			failures += !round_of(&commands[a], &close_file, number++);
		}
		/* Another state for the same pair in the next turn. */
		number += 7;
	}
	printf("# %ld rounds in %ld s, %ld more could not begin\n", atomic_load(&rounds_done),
	       (long)(now() - start), atomic_load(&unentered));
	return failures || !atomic_load(&rounds_done);
}
