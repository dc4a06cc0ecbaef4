// SPDX-License-Identifier: GPL-2.0
/*
 * walk [OPTION]... [PATTERN]...: one line for each case, "STATE: COMMAND: CASE" and, after a
 * tab, what happened. A pattern chooses cases, as a shell does files.
 *
 *	-s	of those only the cases that matter in their state
 *	-l	only lists them
 *	-v	whole events and views of the id instead of their sums
 *	-t	writes to standard error how many milliseconds each case took
 *	-j N	N states at a time; their lines come mixed
 *	-q MS	how long nothing has to happen until an id has settled (40)
 *
 * A state is walked by a process of its own, with a time limit for each case.
 */
#include <fnmatch.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "walk.h"

#define MAX_CASES 200
#define SECONDS 20	/* for one case */

static int quiet_ms = 40;
/* The time that a program or a peer may take to answer, on a busy machine. */
#define ANSWER_MS 3000
static bool timed, only_short, only_list;
static int nr_patterns;
static char **patterns;

/* Where the walking process is; the parent reads it. */
static struct progress {
	volatile long at;	/* the number of the case in this state, from 1 */
	volatile time_t since;
	volatile bool entered;	/* the state, at least once */
	char name[256];
} *progress;

static time_t now(void)
{
	return now_ms() / 1000;
}

void stopped(const char *why)
{
	/* A call shows only its name, and no line number. */
	const char *end = strchr(why, '('), *last = strrchr(why, ':');

	if (!progress) {
		fprintf(stderr, "walk: %s\n", why);
		exit(1);
	}
	/* It could be entered before: the machine was too slow. */
	if (progress->entered)
		_exit(4);
	printf("%s\tno such state: %.*s%s\n", progress->name, end ? (int)(end - why) : 100, why,
	       last ? last : "");
	fflush(stdout);
	_exit(3);
}

/* --- walking --- */

#define NAME_SIZE 256

static void case_name(char *name, const struct state *s, const struct command *c,
		      const struct tcase *t)
{
	snprintf(name, NAME_SIZE, "%.60s: %.60s: %.95s", s->name, c->name, t->name);
}

static bool chosen(const char *name)
{
	for (int i = 0; i < nr_patterns; i++)
		if (fnmatch(patterns[i], name, 0) == 0)
			return true;
	return nr_patterns == 0;
}

/* Returns true if there is a case that this pattern chooses. */
static bool chooses(const char *pattern)
{
	static struct tcase cases[MAX_CASES];
	char name[NAME_SIZE];

	for (size_t s = 0; s < nr_states; s++)
		for (size_t c = 0; c < nr_commands; c++) {
			size_t n = cases_of(&commands[c], &states[s], cases, MAX_CASES);

			for (size_t i = 0; i < n && i < MAX_CASES; i++) {
				case_name(name, &states[s], &commands[c], &cases[i]);
				if (fnmatch(pattern, name, 0) == 0)
					return true;
			}
		}
	return false;
}

/* One case. Returns whether the id is as it was before. */
static bool walk_case(const struct state *state, const struct tcase *t, struct subject *s,
		      uint64_t before)
{
	static struct line l;
	static struct events events;
	struct footprint had, has;
	struct call one, two = { 0 };
	const char *changed;
	uint64_t after;
	struct subject again;
	int first_ms = t->command->asks ? ANSWER_MS : quiet_ms;
	long ret, ret2;

	l.len = 0;
	for (int i = 0; i < 3; i++)
		events.of[i].len = 0;
	make_call(t, s, 0xa5, &one);
	footprint(&had, s->fd, s->id);
	ret = issue(t, s, &one);
	if (ret >= 0 && (size_t)ret != one.len)
		add(&l, "%ld of %zu bytes", ret, one.len);
	else
		add(&l, "%s", ret < 0 ? errno_name(-ret) : "ok");

	if (ret < 0) {
		footprint(&has, s->fd, s->id);
		changed = footprint_differs(&had, &has);
		if (changed)
			add(&l, " changes %s", changed);
	}

	/*
	 * With another pattern: of an id that was not changed the same, else of another one.
	 * DESTROY_ID may fail, and the id is gone.
	 */
	if (one.answer && (t->command->pure ||
			   (ret < 0 && t->command->number != RDMA_USER_CM_CMD_DESTROY_ID))) {
		make_call(t, s, 0x5a, &two);
		ret2 = issue(t, s, &two);
	} else if (one.answer) {
		read_events(&events, s, first_ms, quiet_ms);
		enter(state, &again);
		make_call(t, &again, 0x5a, &two);
		ret2 = issue(t, &again, &two);
		leave(&again);
	} else {
		ret2 = ret;
	}
	if (ret2 != ret)
		add(&l, " then %s", ret2 < 0 ? errno_name(-ret2) : "ok");
	if (one.answer)
		add_answer(&l, t->command, one.answer, 0xa5, two.answer, 0x5a);
	/* One that is late comes before the answer to the other pattern, or after it. */
	if (ret >= 0 && !t->command->pure)
		read_events(&events, s, one.answer ? quiet_ms : first_ms, quiet_ms);
	add_events(&l, &events);
	after = view(s);
	if (after != before)
		add_view(&l, s);
	/* The number of its events that were read. */
	if (ret >= 0 && !t->command->pure && t->command->number != RDMA_USER_CM_CMD_DESTROY_ID) {
		ret = destroy_id(s->fd, s->id);
		if (ret < 0)
			add(&l, " destroy=%s", errno_name(-ret));
		else
			add(&l, " destroy=%ld", ret);
		after = ~before;
	}
	printf("%s\t%s\n", progress->name, l.text);
	unmap_all();
	return after == before;
}

/* All cases of a state after the one with this number. */
static void walk_state(const struct state *state, long from)
{
	static struct tcase cases[MAX_CASES];
	struct subject s;
	bool entered = false;
	uint64_t seen = 0;
	long number = 0;

	for (size_t c = 0; c < nr_commands; c++) {
		size_t n = cases_of(&commands[c], state, cases, MAX_CASES);

		for (size_t i = 0; i < n && i < MAX_CASES; i++) {
			char name[NAME_SIZE];
			long start;

			case_name(name, state, &commands[c], &cases[i]);
			if (++number <= from || !chosen(name) ||
			    (only_short && !is_short(state, &cases[i])))
				continue;
			if (only_list) {
				printf("%s\n", name);
				continue;
			}
			strcpy(progress->name, name);
			progress->at = number;
			progress->since = now();
			if (hangs_on_c(state, &commands[c]) || breaks_c(state, &cases[i]))
				continue;
			start = now_ms();
			if (!entered) {
				enter(state, &s);
				progress->entered = true;
				seen = view(&s);
			}
			entered = walk_case(state, &cases[i], &s, seen);
			if (!entered)
				leave(&s);
			if (timed)
				fprintf(stderr, "%s\t%ld\n", name, now_ms() - start);
		}
	}
	if (entered)
		leave(&s);
	fflush(stdout);
	_exit(0);
}

/* Waits for the walking process, which is killed if a case takes too long. Returns false if it does not end even then. */
static bool ends(pid_t pid, int *status)
{
	struct pollfd p = { .fd = pidfd_open(pid, 0), .events = POLLIN };

	while (waitpid(pid, status, WNOHANG) == 0) {
		if (now() - progress->since > SECONDS)
			kill(pid, SIGKILL);
		if (now() - progress->since > 6 * SECONDS)
			return false;
		poll(&p, 1, 1000);
	}
	close(p.fd);
	return true;
}

/* Returns false when there is no going on. */
static bool run_state(const struct state *state)
{
	int tries = 10;

	progress->at = 0;
	progress->entered = false;
	for (;;) {
		int status;
		pid_t pid;

		fflush(stdout);
		progress->since = now();
		pid = fork();
		if (pid < 0)
			return false;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			setvbuf(stdout, NULL, _IOLBF, 1 << 15);
			walk_state(state, progress->at);
		}
		if (!ends(pid, &status)) {
			printf("%s\tcannot be ended\n", progress->name);
			return false;
		}
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			return true;
		/* The state cannot be entered: nor will it for the next case. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == 3)
			return true;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 4 && tries-- > 0) {
			progress->at--;
			continue;
		}
		printf("%s\tended by signal %d\n", progress->name,
		       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	}
}

/* Takes one state after the other; "next" is the number of the next that nobody has taken. */
static int take_states(atomic_size_t *next)
{
	progress = mmap(NULL, sizeof(*progress), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (progress == MAP_FAILED)
		return 1;
	for (;;) {
		size_t i = atomic_fetch_add(next, 1);

		if (i >= nr_states)
			return 0;
		if (!run_state(&states[i])) {
			fflush(stdout);
			return 1;
		}
	}
}

int main(int argc, char **argv)
{
	int option, jobs = 1, status, failed = 0;
	atomic_size_t *next;

	while ((option = getopt(argc, argv, "lsvtj:q:")) != -1) {
		switch (option) {
		case 'l':
			only_list = true;
			break;
		case 's':
			only_short = true;
			break;
		case 'v':
			verbose = true;
			break;
		case 't':
			timed = true;
			break;
		case 'j':
			jobs = atoi(optarg);
			break;
		case 'q':
			quiet_ms = atoi(optarg);
			break;
		default:
			return 2;
		}
	}
	nr_patterns = argc - optind;
	patterns = argv + optind;
	for (int i = 0; i < nr_patterns; i++)
		if (!chooses(patterns[i])) {
			fprintf(stderr, "walk: no case matches \"%s\": -l lists them\n", patterns[i]);
			return 2;
		}
	signal(SIGPIPE, SIG_IGN);
	next = mmap(NULL, sizeof(*next), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		    0);
	if (next == MAP_FAILED || (!only_list && access(DEVICE, R_OK | W_OK))) {
		fprintf(stderr, "walk: %s: %s\n", DEVICE, strerror(errno));
		return 1;
	}
	if (!only_list)
		take_zero();
	for (int i = 0; i < jobs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(take_states(next));
		}
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
