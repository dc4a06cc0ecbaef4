// SPDX-License-Identifier: GPL-2.0
/*
 * race [OPTION]...: every ordered pair of commands, given to one id by two threads at the
 * same time; and every command against closing the file, and against moving the id to
 * another file and back.
 *
 *	-r ROUNDS	at least so many times each (1)
 *	-s SECONDS	for at least so long in all (0)
 *	-f FIRST	the number of the first round (0). In each round a pair gets the next
 *			state: a long run can be cut into several
 *	-w		only the commands one after the other, while somebody else changes
 *			the world
 *
 * It passes if every call returns, every file can be closed, and each answer is one that
 * the interface knows; the kernel log is for the caller to look at. Last come the states
 * that were raced in, with the mean time of a round.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
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

/* Actions on an id at the same time that are no commands. */
static const struct command close_file = { .name = "close" };
static const struct command move_about = { .name = "moves" };

static jmp_buf unenterable;
static atomic_long rounds_done, unentered;

/* By place: rounds, the time they took, and how often the state could not be entered. */
static struct {
	long rounds, us, unentered;
} stats[PLACES];

/* Turns of the second thread: it sleeps until there is one, and says when it is awake. */
static sem_t ready;
static atomic_int turns, go, done;
static unsigned int seed = 1;

/* The task of the second thread. */
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

static long now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static time_t now(void)
{
	return now_us() / 1000000;
}

static void skew(int turns)
{
	for (volatile int i = 0; i < turns; i++)
		;
}

/* To the other file and back, several times. */
static long move(const struct subject *s)
{
	long ret = 0;

	for (int i = 0; i < 10 && ret >= 0; i++) {
		ret = migrate_id(s->other, s->id, s->fd);
		if (ret >= 0)
			ret = migrate_id(s->fd, s->id, s->other);
	}
	return ret;
}

static long give(const struct command *c, struct subject *s, const struct call *call)
{
	struct tcase t = { .command = c };

	if (c == &close_file)
		return close(s->fd) < 0 ? -errno : 0;
	if (c == &move_about)
		return move(s);
	return issue(&t, s, call);
}

static void *second(void *arg)
{
	int turn = 0;

	for (;;) {
		turn++;
		while (sem_wait(&ready) < 0)
			;
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
	case ENOBUFS:	/* no memory, in the words of the routes */
		return true;
	default:
		return ret >= 0;
	}
}

enum outcome { FINE, WRONG, NO_STATE };

/* One round of a against b in some state. */
static enum outcome round_in(const struct state *state, const struct command *a,
			     const struct command *b)
{
	struct tcase t = { .command = a };
	/* Static: what is changed before a longjmp must still be there. */
	static struct subject s;
	struct call call = { 0 };
	volatile enum outcome outcome = FINE;
	long ret;

	memset(&s, 0, sizeof(s));
	if (setjmp(unenterable)) {
		leave(&s);
		return NO_STATE;
	}
	enter(state, &s);
	make_call(&t, &s, 0, &call);
	if (b) {
		t.command = b;
		if (b->in)
			make_call(&t, &s, 0, &other.call);
		other.command = b;
		other.subject = &s;
		other.delay = rand_r(&seed) % 2000;
		atomic_fetch_add(&turns, 1);
		sem_post(&ready);
		while (atomic_load(&go) != atomic_load(&turns))
			sched_yield();
		skew(rand_r(&seed) % 2000);
	}
	ret = give(a, &s, &call);
	if (b)
		while (atomic_load(&done) != atomic_load(&turns))
			sched_yield();
	if (!is_answer(ret) || (b && !is_answer(other.ret))) {
		printf("# %s: %s %s, %s %s\n", state->name, a->name,
		       ret < 0 ? errno_name(-ret) : "ok", b ? b->name : "alone",
		       !b ? "" : other.ret < 0 ? errno_name(-other.ret) : "ok");
		outcome = WRONG;
	}
	if (b == &close_file) {
		/* The number may be another file's by now: no, nobody opens one. */
		if (s.p.cfd == s.fd)
			s.p.cfd = 0;
		if (s.p.sfd == s.fd)
			s.p.sfd = 0;
	}
	leave(&s);
	/* Not after each: it stops the other processors. */
	if (atomic_load(&rounds_done) % 128 == 0)
		unmap_all();
	return outcome;
}

/* The number of tries of each state before a round in a changing world is given up. */
#define PATIENCE 100

/*
 * Like the function before, in the state that this number stands for, or the next that can be
 * entered. A state may need something that fails in a changing world, and succeeds the next time.
 */
static bool round_of(const struct command *a, const struct command *b, long number, size_t tries)
{
	for (size_t i = 0; i < tries * PLACES; i++) {
		size_t place = (number + i) % PLACES;
		const struct state *state = state_named(places[place]);
		enum outcome outcome;
		long start = now_us();

		if (!is_rust() && (hangs_on_c(state, a) || (b && hangs_on_c(state, b))))
			continue;
		outcome = round_in(state, a, b);
		if (outcome == NO_STATE) {
			atomic_fetch_add(&unentered, 1);
			stats[place].unentered++;
			continue;
		}
		stats[place].us += now_us() - start;
		stats[place].rounds++;
		atomic_fetch_add(&rounds_done, 1);
		return outcome == FINE;
	}
	printf("# %s, %s: no state could be entered\n", a->name, b ? b->name : "alone");
	return false;
}

static void report(void)
{
	for (size_t i = 0; i < PLACES; i++) {
		long rounds = 0, us = 0, none = 0;
		bool again = false;

		/* The same state may have several places. */
		for (size_t j = 0; j < PLACES; j++) {
			if (strcmp(places[i], places[j]) != 0)
				continue;
			again |= j < i;
			rounds += stats[j].rounds;
			us += stats[j].us;
			none += stats[j].unentered;
		}
		if (!again)
			printf("# %s: %ld rounds of %.1f ms, not entered %ld times\n", places[i],
			       rounds, rounds ? us / 1e3 / rounds : 0, none);
	}
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
	long seconds = 0, rounds = 1, first = 0, number, failures = 0;
	bool alone = false;
	pthread_t thread;
	time_t start;
	int option;

	while ((option = getopt(argc, argv, "s:r:f:w")) != -1) {
		switch (option) {
		case 's':
			seconds = atol(optarg);
			break;
		case 'r':
			rounds = atol(optarg);
			break;
		case 'f':
			first = atol(optarg);
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
	sem_init(&ready, 0, 0);
	pthread_create(&thread, NULL, second, NULL);
	pthread_create(&thread, NULL, watch, NULL);
	start = now();
	seed = first + 1;
	for (long turn = 0; turn < rounds || now() - start < seconds; turn++) {
		number = first + turn;
		for (size_t a = 0; a < nr_commands; a++) {
			if (!known(&commands[a]))
				continue;
			if (alone) {
				failures += !round_of(&commands[a], NULL, number++, PATIENCE);
				continue;
			}
			for (size_t b = 0; b < nr_commands; b++)
				if (known(&commands[b]))
					failures += !round_of(&commands[a], &commands[b], number++, 1);
			failures += !round_of(&commands[a], &close_file, number++, 1);
			failures += !round_of(&commands[a], &move_about, number++, 1);
		}
	}
	report();
	printf("# %ld rounds in %ld s\n", atomic_load(&rounds_done), (long)(now() - start));
	return failures || !atomic_load(&rounds_done);
}
