// SPDX-License-Identifier: GPL-2.0
/* Runs the tests: one process and one KTAP line each. */
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "abi.h"

enum { PASSED = 0, FAILED = 1, SKIPPED = 4 };

static struct test *tests, **tail = &tests;
static bool failed;
static int report[2];	/* reason of a skip */

void test_register(struct test *t)
{
	*tail = t;
	tail = &t->next;
}

static void vnote(const char *format, va_list args)
{
	printf("# ");
	vprintf(format, args);
	printf("\n");
	fflush(stdout);
}

void note(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vnote(format, args);
	va_end(args);
}

void fail(const char *file, int line, const char *format, ...)
{
	va_list args;

	failed = true;
	printf("# %s:%d: ", file, line);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void stop(void)
{
	fflush(stdout);
	_exit(failed ? FAILED : PASSED);
}

void skip(const char *format, ...)
{
	va_list args;
	char reason[200];

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	if (write(report[1], reason, strlen(reason)) < 0)
		_exit(FAILED);
	_exit(failed ? FAILED : SKIPPED);
}

int run_within(int seconds, const char *command)
{
	/* With all the checks the kernel needs a minute to take a device away, on a busy host more. */
	int limit = patience() > 1 ? 20 * seconds : seconds;
	char line[300];

	snprintf(line, sizeof(line), "timeout %d %s", limit, command);
	return system(line);
}

/* --- what must be the same before and after each test --- */

struct counts {
	long opens;	/* references on the module, one per open file */
	long tracked;	/* ids that rdma resource shows */
	long next_id;	/* the number a new id gets: the lowest that is free */
};

static struct counts counts(void)
{
	struct counts c = {
		.opens = read_number(is_rust() ? "/sys/module/rust_rdma_cm/refcnt"
					       : "/sys/module/rdma_ucm/refcnt"),
		.tracked = count_cm_ids(),
	};
	int fd = cm_open(O_RDWR);

	c.next_id = create_id(fd, PS_TCP, 1);
	close(fd);
	return c;
}

static bool same(const struct counts *a, const struct counts *b)
{
	return a->opens == b->opens && a->tracked == b->tracked && a->next_id == b->next_id;
}

static bool back_to(const struct counts *before)
{
	/* A file with many ids ends in the background. */
	int tries = 100 * patience();
	struct counts now;

	for (;;) {
		now = counts();
		if (same(&now, before))
			return true;
		if (--tries <= 0)
			break;
		usleep(50000);
	}
	note("left behind: open files %ld -> %ld, tracked ids %ld -> %ld, lowest free id %ld -> %ld",
	     before->opens, now.opens, before->tracked, now.tracked,
	     before->next_id, now.next_id);
	return false;
}

static bool ends_within(pid_t pid, int seconds)
{
	struct pollfd p = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int ready = poll(&p, 1, seconds * 1000);

	close(p.fd);
	return ready == 1;
}

static int run(struct test *t, char *reason, size_t size)
{
	int seconds = t->seconds * patience();
	ssize_t len;
	int status;
	pid_t pid;

	if (pipe2(report, O_CLOEXEC | O_NONBLOCK))
		return FAILED;
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return FAILED;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpgid(0, 0);
		failed = false;
		t->fn();
		stop();
	}
	if (!ends_within(pid, seconds)) {
		kill(-pid, SIGKILL);
		kill(pid, SIGKILL);
		if (!ends_within(pid, 20)) {
			note("%s: took too long, and cannot be ended: left behind", t->name);
			reason[0] = 0;
			return FAILED;
		}
	}
	waitpid(pid, &status, 0);
	kill(-pid, SIGKILL);
	len = read(report[0], reason, size - 1);
	reason[len > 0 ? len : 0] = 0;
	close(report[0]);
	close(report[1]);
	if (WIFSIGNALED(status)) {
		note("%s: ended by signal %d (%s)", t->name, WTERMSIG(status),
		     WTERMSIG(status) == SIGKILL ? "took too long" : strsignal(WTERMSIG(status)));
		return FAILED;
	}
	return WEXITSTATUS(status);
}

static bool selected(const char *name, int argc, char **argv)
{
	if (argc < 2)
		return true;
	for (int i = 1; i < argc; i++)
		if (fnmatch(argv[i], name, FNM_EXTMATCH) == 0)
			return true;
	return false;
}

/* A pattern that is mistyped would leave out what it should choose. */
static bool names_a_test(const char *pattern)
{
	for (struct test *t = tests; t; t = t->next)
		if (fnmatch(pattern, t->name, FNM_EXTMATCH) == 0)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	int total = 0, number = 0, bad = 0;
	struct counts base;
	char reason[256];

	if (argc == 2 && strcmp(argv[1], "-l") == 0) {
		for (struct test *t = tests; t; t = t->next)
			puts(t->name);
		return 0;
	}
	signal(SIGPIPE, SIG_IGN);
	puts("KTAP version 1");
	for (int i = 1; i < argc; i++)
		if (!names_a_test(argv[i])) {
			printf("Bail out! no case matches \"%s\": -l lists them\n", argv[i]);
			return 2;
		}
	for (struct test *t = tests; t; t = t->next)
		total += selected(t->name, argc, argv);
	printf("1..%d\n", total);
	if (access(DEVICE, R_OK | W_OK)) {
		printf("Bail out! %s: %s\n", DEVICE, strerror(errno));
		return 1;
	}
	base = counts();
	for (struct test *t = tests; t; t = t->next) {
		int result;

		if (!selected(t->name, argc, argv))
			continue;
		result = run(t, reason, sizeof(reason));
		if (!back_to(&base)) {
			result = FAILED;
			base = counts();
		}
		number++;
		if (result == SKIPPED)
			printf("ok %d - %s # SKIP %s\n", number, t->name, reason);
		else
			printf("%s %d - %s\n", result == PASSED ? "ok" : "not ok", number, t->name);
		fflush(stdout);
		bad += result != PASSED && result != SKIPPED;
	}
	return bad != 0;
}
