// SPDX-License-Identifier: GPL-2.0
/*
 * Acts of a hostile user.
 *
 *	hostile ACT ARGUMENT...
 */
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "hostile.h"

static struct act *acts;

void act_register(struct act *a)
{
	a->next = acts;
	acts = a;
}

void become(unsigned int uid)
{
	REQUIRE(setgroups(0, NULL) == 0);
	REQUIRE(setresgid(uid, uid, uid) == 0);
	REQUIRE(setresuid(uid, uid, uid) == 0);
}

int file(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	REQUIRE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

uint64_t percentile(uint64_t *values, size_t number, unsigned int percent)
{
	REQUIRE(number > 0);
	qsort(values, number, sizeof(values[0]), ascending);
	return values[(number * percent - 1) / 100];
}

/* --- processes --- */

struct shared *shared;

void share(void)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED);
	sem_init(&shared->ready, 1, 0);
	sem_init(&shared->go, 1, 0);
	sem_init(&shared->done, 1, 0);
}

pid_t child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	REQUIRE(pid >= 0);
	return pid;
}

void finished(void)
{
	fflush(stdout);
	_exit(0);
}

int reap(pid_t pid)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

void kill_child(pid_t pid)
{
	REQUIRE(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

void wait_for(sem_t *s)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += 20 * patience();
	while (sem_timedwait(s, &end))
		REQUIRE(errno == EINTR);
}

int count_events(int fd, enum event kind, int enough, int ms, struct rdma_ucm_event_resp *last)
{
	struct rdma_ucm_event_resp ev;
	int count = 0;

	while (count < enough && wait_event(fd, &ev, ms * patience()) >= 0) {
		if (ev.event != kind)
			continue;
		count++;
		if (last)
			*last = ev;
	}
	return count;
}

int main(int argc, char **argv)
{
	setlinebuf(stdout);
	for (struct act *a = acts; a; a = a->next) {
		if (argc >= 2 && strcmp(argv[1], a->name) == 0) {
			a->run(argv + 2);
			return 0;
		}
	}
	for (struct act *a = acts; a; a = a->next)
		fprintf(stderr, "%s %s %s\n", argv[0], a->name, a->arguments);
	return 2;
}
