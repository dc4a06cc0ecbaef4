// SPDX-License-Identifier: GPL-2.0
/* The limits of a user, who has many files, processes, user namespaces, users of these, and descriptors to pass on. */
#include <sched.h>
#include <sys/prctl.h>

#include "../abi/mcast.h"
#include "limits.h"

/* Users of a namespace. */
#define SUB_USERS 100000
#define PROCESSES 4
#define FILES 2

/* --- resources --- */

/* A file, and an id that has what is made. */
struct maker {
	int fd;
	uint32_t id;
	int made;
};

static long make_id(struct maker *m)
{
	return create_id(m->fd, PS_TCP, 1);
}

static long make_listener(struct maker *m)
{
	union addr to = addr4(FAR4, 7);
	uint32_t id = REQUIRE_ID(create_id(m->fd, PS_TCP, 1));
	long error;

	REQUIRE_OK(bind4(m->fd, id, ADDR4, 0));
	error = listen_id(m->fd, id, 1);
	/* As one that has not been told to listen. */
	if (error < 0)
		REQUIRE_OK(resolve_addr(m->fd, id, NULL, &to, 1000));
	return error;
}

static long make_membership(struct maker *m)
{
	char group[32];
	long mc;

	if (!m->made)
		m->id = datagram_id(m->fd, 1);
	/* No other process has this group. */
	snprintf(group, sizeof(group), "239.%d.%d.%d", 64 + getpid() % 128, m->fd, m->made);
	mc = join4(m->fd, m->id, 1, group, FULL);
	if (mc < 0)
		REQUIRE_EQ(0, igmp(group));
	return mc;
}

static long make_event(struct maker *m)
{
	/* The headers of a release may lack struct rdma_ucm_write_cm_event. */
	struct {
		uint32_t id, reserved, event, status;
		uint8_t param[304];
	} req = { .event = 18 };

	if (!m->made)
		m->id = REQUIRE_ID(create_id(m->fd, PS_TCP, 1));
	req.id = m->id;
	return cm_cmd(m->fd, CMD_WRITE_CM_EVENT, &req, sizeof(req), 0);
}

static const struct resource {
	const char *name;
	long (*make)(struct maker *m);
} resources[] = {
	{ "ids", make_id },
	{ "listeners", make_listener },
	{ "memberships", make_membership },
	{ "written_events", make_event },
};

static const struct resource *resource(const char *name)
{
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		if (!strcmp(resources[i].name, name))
			return &resources[i];
	fail(__FILE__, __LINE__, "no resource is called %s", name);
	stop();
}

/* Makes up to "wanted" of a resource with a new file, and stores the error that ends that. */
static struct maker fill(const struct resource *r, int wanted, int *error)
{
	struct maker m = { .fd = file() };

	while (m.made < wanted) {
		long result = r->make(&m);

		if (result < 0) {
			*error = -result;
			break;
		}
		m.made++;
	}
	return m;
}

int shown(unsigned int user, const char *name)
{
	pid_t pid = child();
	char line[128], path[64];
	int fd, result = -1;
	FILE *f;

	if (pid) {
		wait_for(&shared->ready);
		REQUIRE(reap(pid) == 0);
		return shared->made;
	}
	become(user);
	fd = file();
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	REQUIRE((f = fopen(path, "r")));
	while (result < 0 && fgets(line, sizeof(line), f)) {
		size_t length = strlen(name);

		if (!strncmp(line, name, length) && line[length] == ':')
			result = atoi(line + length + 1);
	}
	shared->made = result;
	sem_post(&shared->ready);
	_exit(0);
}

int left(unsigned int user, const char *name)
{
	int now;

	for (int i = 0; (now = shown(user, name)) > 0 && i < 50 * patience(); i++)
		usleep(100000);
	return now;
}

/* Returns the number that a user gets who wants one. */
static int gets_one(unsigned int user, const struct resource *r)
{
	pid_t pid = child();
	int error;

	if (pid)
		return reap(pid);
	become(user);
	_exit(fill(r, 1, &error).made);
}

/* --- ways to be more than one --- */

static void own_namespace(unsigned int outside)
{
	char map[32];

	REQUIRE(unshare(CLONE_NEWUSER) == 0);
	/* A process that has changed its user may not write to its own files in /proc. */
	REQUIRE(prctl(PR_SET_DUMPABLE, 1) == 0);
	snprintf(map, sizeof(map), "0 %u 1", outside);
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", map);
	write_file("/proc/self/gid_map", map);
}

static void as_processes(int number)
{
	become(NOBODY);
}

static void as_namespaces(int number)
{
	become(NOBODY);
	own_namespace(NOBODY);
}

static void as_nested(int number)
{
	as_namespaces(number);
	for (int i = 0; i < number; i++)
		own_namespace(0);
}

/* Each process is another user of a namespace of the user. */
static void as_sub_users(int number)
{
	pid_t self = getpid(), mapper = child();

	if (mapper == 0) {
		char path[64], map[64];

		wait_for(&shared->done);
		snprintf(path, sizeof(path), "/proc/%d/uid_map", self);
		snprintf(map, sizeof(map), "0 %d 1\n1 %d 65536\n", NOBODY, SUB_USERS);
		write_file(path, map);
		_exit(0);
	}
	become(NOBODY);
	REQUIRE(unshare(CLONE_NEWUSER) == 0);
	sem_post(&shared->done);
	REQUIRE(reap(mapper) == 0);
	REQUIRE(setresuid(number + 1, number + 1, number + 1) == 0);
}

static const struct {
	const char *name;
	void (*become)(int number);
} ways[] = {
	{ "processes", as_processes },
	{ "namespaces", as_namespaces },
	{ "nested", as_nested },
	{ "sub_users", as_sub_users },
};

static void be(const char *way, int number)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, way))
			return ways[i].become(number);
	fail(__FILE__, __LINE__, "no way is called %s", way);
	stop();
}

/*
 * A user wants so much of a resource for each of several files of several processes. "made" is the number that they get in
 * all, of those that they have "tried", "error" the last error, "shown" the number that the user is shown to have then, and
 * "other" the number that another user gets who wants one. "left" is the number that is shown when all is closed.
 */
ACT(limit, "RESOURCE processes|namespaces|nested|sub_users NUMBER")
{
	const struct resource *r = resource(arguments[0]);
	int wanted = atoi(arguments[2]), made = 0, error = 0;
	pid_t pids[PROCESSES];

	share();
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = child();
		if (pids[i] == 0) {
			int total = 0, last = 0;

			be(arguments[1], i);
			for (int j = 0; j < FILES; j++)
				total += fill(r, wanted, &last).made;
			shared->made = total;
			shared->error = last;
			sem_post(&shared->ready);
			wait_for(&shared->go);
			_exit(0);
		}
		wait_for(&shared->ready);
		made += shared->made;
		error = shared->error;
	}
	printf("tried=%d made=%d error=%d ", PROCESSES * FILES * wanted, made, error);
	printf("other=%d ", gets_one(SOMEBODY, r));
	printf("shown=%d ", shown(NOBODY, r->name));
	for (int i = 0; i < PROCESSES; i++)
		sem_post(&shared->go);
	for (int i = 0; i < PROCESSES; i++)
		REQUIRE(reap(pids[i]) == 0);
	printf("left=%d\n", left(NOBODY, r->name));
}

/* Reads the users whose use a file shows. There may be two; -1 is none. */
static void shown_users(const char *path, int users[2])
{
	char line[128];
	int count = 0;
	FILE *f = fopen(path, "r");

	REQUIRE(f);
	users[0] = users[1] = -1;
	while (fgets(line, sizeof(line), f))
		if (count < 2 && sscanf(line, "user: %d", &users[count]) == 1)
			count++;
	fclose(f);
}

/* A file of a user of a namespace shows the user and the owner of the namespace, inside and outside of it. */
ACT(seen, "")
{
	char path[64];
	int users[2];
	pid_t pid;

	share();
	pid = child();
	if (pid == 0) {
		int fd;

		as_sub_users(0);
		fd = file();
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
		shown_users(path, users);
		printf("inside_user=%d inside_owner=%d ", users[0], users[1]);
		fflush(stdout);
		shared->made = fd;
		sem_post(&shared->ready);
		wait_for(&shared->go);
		_exit(0);
	}
	wait_for(&shared->ready);
	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, shared->made);
	shown_users(path, users);
	printf("outside_user=%d outside_owner=%d\n", users[0], users[1]);
	sem_post(&shared->go);
	REQUIRE(reap(pid) == 0);
}

/* --- descriptors --- */

static void send_descriptor(int to, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	REQUIRE(sendmsg(to, &msg, 0) == 1);
}

static int receive_descriptor(int from)
{
	char byte, control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };
	int fd;

	REQUIRE(recvmsg(from, &msg, 0) == 1 && CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/*
 * A user makes as many ids as it may, passes the file on and goes. Another one, who gets the file, moves the ids to a file of
 * its own. "write" is the error when the other writes to the file itself, "moved" the number of ids that it gets. "maker" and
 * "owner" are the numbers that the two users are shown to have then, "again" says whether the first one gets another, and
 * "left" is the number that it is shown to have when the other has destroyed the ids.
 */
ACT(passed, "NUMBER")
{
	const struct resource *ids = resource("ids");
	int wanted = atoi(arguments[0]), pair[2];
	pid_t maker, owner;

	share();
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	maker = child();
	if (maker == 0) {
		int made = 0;
		long id;

		become(NOBODY);
		int fd = file();

		/* The numbers of the ids go along. */
		while (made < wanted && (id = create_id(fd, PS_TCP, 1)) >= 0) {
			uint32_t number = id;

			REQUIRE(write(pair[0], &number, sizeof(number)) == sizeof(number));
			made++;
		}
		REQUIRE(made == wanted);
		send_descriptor(pair[0], fd);
		_exit(0);
	}
	REQUIRE(reap(maker) == 0);
	owner = child();
	if (owner == 0) {
		uint32_t numbers[wanted];
		int theirs, mine, moved = 0;

		become(SOMEBODY);
		REQUIRE(recv(pair[1], numbers, sizeof(numbers), MSG_WAITALL) == (ssize_t)sizeof(numbers));
		theirs = receive_descriptor(pair[1]);
		mine = file();
		printf("write=%ld ", -create_id(theirs, PS_TCP, 1));
		for (int i = 0; i < wanted; i++)
			moved += migrate_id(mine, numbers[i], theirs) >= 0;
		close(theirs);
		printf("moved=%d ", moved);
		fflush(stdout);
		sem_post(&shared->ready);
		wait_for(&shared->go);
		for (int i = 0; i < wanted; i++)
			REQUIRE_OK(destroy_id(mine, numbers[i]));
		sem_post(&shared->ready);
		wait_for(&shared->go);
		_exit(0);
	}
	wait_for(&shared->ready);
	printf("maker=%d owner=%d ", shown(NOBODY, "ids"), shown(SOMEBODY, "ids"));
	printf("again=%d ", gets_one(NOBODY, ids));
	sem_post(&shared->go);
	wait_for(&shared->ready);
	printf("left=%d\n", left(NOBODY, "ids"));
	sem_post(&shared->go);
	REQUIRE(reap(owner) == 0);
}
