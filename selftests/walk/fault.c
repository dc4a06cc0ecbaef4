// SPDX-License-Identifier: GPL-2.0
/*
 * fault [-v] [PATTERN]: every allocation, and every copy from and to user memory, that a
 * command makes fails in turn, in each state that matters. Needs a kernel with fault
 * injection, set up by fault.sh. PATTERN chooses among "STATE: COMMAND"; -v shows what each
 * fault did.
 *
 * A command that fails says that memory was short or could not be reached, leaves the id as it
 * was (but for a binding), makes none, and does the same as ever when it is given again. One that succeeds although
 * something failed still gets its event. One KTAP line for each state and command; the kernel
 * log and leaks are for the caller to look at.
 */
#include <fnmatch.h>
#include <setjmp.h>
#include <signal.h>
#include <time.h>

#include "walk.h"

#define MOST 400	/* more than any command has places */
#define ENOUGH 20	/* bad ones, of one command */
#define TRIES 3		/* to enter a state */
#define QUIET_MS 300	/* no event comes after that */
#define PATIENCE_MS 20000	/* a message that was not sent is made up for by a repetition */

static const char *const places[] = {
	"idle", "bound", "bound_any", "bound_shared", "listening", "addr_resolved", "route_resolved",
	"req_received", "rep_received", "established_active", "event_waiting", "child_waiting",
	"ud_bound", "ud_route_resolved", "ud_req_received", "ud_joined",
};
#define PLACES (sizeof(places) / sizeof(places[0]))

/* The result of a sweep, over all commands and states. */
static struct {
	long refused[2];	/* for want of memory; EFAULT */
	long absorbed;		/* the command did without */
} sum;

static jmp_buf unenterable;
static const char *why_not;
static struct subject subject;
static bool show;
static int nth_fd;

void stopped(const char *why)
{
	why_not = why;
	longjmp(unenterable, 1);
}

static void give_up(void)
{
	leave(&subject);
	unmap_all();
}

static bool try_enter(const struct state *state)
{
	/* A variable that is changed before a longjmp must still have its value. */
	static int tries;

	for (tries = 0; tries < TRIES; tries++) {
		memset(&subject, 0, sizeof(subject));
		if (!setjmp(unenterable)) {
			enter(state, &subject);
			return true;
		}
		give_up();
	}
	return false;
}

/* The n-th place from now on fails; none if n is 0. */
static void fail_nth(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	/* The copy of this very text may be the one that fails. */
	for (int i = 0; i < 2; i++)
		if (pwrite(nth_fd, text, len, 0) == len)
			return;
	printf("Bail out! fail-nth: %s\n", strerror(errno));
	exit(1);
}

/* Returns true if a place has failed. */
static bool has_failed(void)
{
	char text[16] = "";

	/* If the copy of the answer fails, nothing had failed before. */
	if (pread(nth_fd, text, sizeof(text) - 1, 0) <= 0)
		return false;
	return atoi(text) == 0;
}

/* The id, what it is to others, and the number that the next new one gets. */
static uint64_t look(struct subject *s)
{
	uint64_t seen = view(s);
	long id = create_id(s->other, PS_TCP, 0);
	struct footprint f;

	if (id >= 0)
		destroy_id(s->other, id);
	footprint(&f, s->fd, s->id);
	return (((seen * 31 + id) * 31 + f.bind) * 31 + f.shown) * 31 + f.events;
}

static bool event_comes(struct subject *s, int ms)
{
	struct pollfd p[] = {
		{ .fd = s->p.cfd > 0 ? s->p.cfd : -1, .events = POLLIN },
		{ .fd = s->p.sfd > 0 ? s->p.sfd : -1, .events = POLLIN },
	};

	return poll(p, 2, ms) > 0;
}

/*
 * Commands that nobody can undo when then the answer cannot be written; C does not, either.
 * They may have been done.
 */
static bool may_be_done(const struct command *c, long ret)
{
	if (ret != -EFAULT)
		return false;
	return c->number == RDMA_USER_CM_CMD_DESTROY_ID ||
	       c->number == RDMA_USER_CM_CMD_MIGRATE_ID ||
	       c->number == RDMA_USER_CM_CMD_LEAVE_MCAST;
}

/*
 * On an id that is not bound, these bind it first, and that stays. The same is true if a lookup of
 * a route finds nothing; as with C.
 */
static bool binds_first(const struct command *c, const struct state *state)
{
	return strncmp(state->name, "idle", 4) == 0 &&
	       (c->number == RDMA_USER_CM_CMD_RESOLVE_IP ||
		c->number == RDMA_USER_CM_CMD_RESOLVE_ADDR ||
		c->number == RDMA_USER_CM_CMD_LISTEN);
}

/* That memory was short, ENOBUFS in the words of the routes; or that it could not be reached. */
static bool is_refusal(long ret)
{
	return ret == -ENOMEM || ret == -ENOBUFS || ret == -EFAULT;
}

static const char *said(long ret)
{
	return ret < 0 ? errno_name(-ret) : "ok";
}

/* The result of the command when nothing fails. */
struct normal {
	long ret;
	bool event;
};

/* Returns the error of the n-th place, or NULL; *hit is false if there is no such place. */
static const char *one_fault(const struct state *state, const struct command *c, int n,
			     const struct normal *normal, bool *hit)
{
	static char text[200];
	struct subject *s = &subject;
	struct tcase t = { .command = c };
	uint64_t before, after;
	struct call call;
	long ret, again;

	*hit = true;
	if (!try_enter(state)) {
		snprintf(text, sizeof(text), "the state cannot be entered: %s", why_not);
		return text;
	}
	before = look(s);
	make_call(&t, s, 0xa5, &call);
	fail_nth(n);
	ret = issue(&t, s, &call);
	*hit = has_failed();
	fail_nth(0);
	if (!*hit)
		return NULL;
	if (show)
		printf("# %s: %s: place %d: %s\n", state->name, c->name, n, said(ret));
	if (ret == normal->ret) {
		sum.absorbed++;
		if (normal->event && !event_comes(s, PATIENCE_MS))
			return "it succeeds, and its event never comes";
		return NULL;
	}
	if (!is_refusal(ret)) {
		snprintf(text, sizeof(text), "%s", said(ret));
		return text;
	}
	sum.refused[ret == -EFAULT]++;
	after = look(s);
	if (after != before && !binds_first(c, state)) {
		snprintf(text, sizeof(text), "%s, and something has changed", said(ret));
		return may_be_done(c, ret) ? NULL : text;
	}
	make_call(&t, s, 0xa5, &call);
	again = issue(&t, s, &call);
	if (again == -ENOENT && may_be_done(c, ret))
		return NULL;
	if (again != normal->ret) {
		snprintf(text, sizeof(text), "%s; given again: %s, not %s", said(ret), said(again),
			 said(normal->ret));
		return text;
	}
	if (normal->event && !event_comes(s, PATIENCE_MS)) {
		snprintf(text, sizeof(text), "%s; given again, its event never comes", said(ret));
		return text;
	}
	return NULL;
}

/* Returns how many places there are; negative if something was wrong. */
static int sweep(const struct state *state, const struct command *c)
{
	struct subject *s = &subject;
	struct tcase t = { .command = c };
	struct normal normal;
	struct call call;
	int n, bad = 0;

	if (!try_enter(state)) {
		printf("# the state cannot be entered: %s\n", why_not);
		return -1;
	}
	make_call(&t, s, 0xa5, &call);
	normal.ret = issue(&t, s, &call);
	/* A farewell is sent once: without it the peer finds out later, or never. */
	normal.event = event_comes(s, QUIET_MS) && normal.ret >= 0 &&
		       c->number != RDMA_USER_CM_CMD_DESTROY_ID;
	give_up();

	for (n = 1; n <= MOST; n++) {
		bool hit;
		const char *wrong = one_fault(state, c, n, &normal, &hit);

		give_up();
		if (wrong) {
			printf("# place %d: %s\n", n, wrong);
			bad++;
		}
		if (!hit || bad == ENOUGH)
			break;
	}
	return !bad && n <= MOST ? n - 1 : -1;
}

int main(int argc, char **argv)
{
	int number = 0, failures = 0;
	long total = 0;

	if (argc > 1 && strcmp(argv[1], "-v") == 0) {
		show = true;
		argv++;
		argc--;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (nth_fd < 0) {
		printf("Bail out! fail-nth: %s\n", strerror(errno));
		return 1;
	}
	for (size_t p = 0; p < PLACES; p++) {
		const struct state *state = state_named(places[p]);

		for (size_t i = 0; i < nr_commands; i++) {
			const struct command *c = &commands[i];
			char name[100];
			int found;

			snprintf(name, sizeof(name), "%s: %s", state->name, c->name);
			if (argc > 1 && fnmatch(argv[1], name, 0) != 0)
				continue;
			if (c->number >= CMD_END || (!is_rust() && hangs_on_c(state, c)))
				continue;
			/* It knows no other id. */
			if (c->number == RDMA_USER_CM_CMD_CREATE_ID && p > 0)
				continue;
			found = sweep(state, c);
			number++;
			failures += found < 0;
			total += found > 0 ? found : 0;
			if (found < 0)
				printf("not ok %d - %s\n", number, name);
			else
				printf("ok %d - %s: %d places\n", number, name, found);
		}
	}
	printf("# %ld places: no memory %ld, EFAULT %ld, done without %ld\n", total, sum.refused[0],
	       sum.refused[1], sum.absorbed);
	if (number == 0) {
		printf("Bail out! no case matches \"%s\"\n", argc > 1 ? argv[1] : "*");
		return 2;
	}
	printf("1..%d\n", number);
	return failures > 0;
}
