// SPDX-License-Identifier: GPL-2.0
/* The cgroup that pays for requests that their listener does not read, and what nobody pays for. */
#include <sys/stat.h>
#include <sys/wait.h>

#include <rust_rdma_cm.h>
#include "ends.h"
#include "wire.h"

/* Not more than a listener holds by default. */
#define REQUESTS 512
#define GROUPS "/sys/fs/cgroup/"
#define RECEIVED "/sys/class/infiniband/rxe0/ports/1/cm_rx_msgs/req"

/* The number after a word that begins a line. */
static long number_in(const char *path, const char *word)
{
	char line[256], name[64];
	long value = -1, found;
	FILE *f = fopen(path, "r");

	REQUIRE(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%63s %ld", name, &found) == 2 && strcmp(name, word) == 0)
			value = found;
	fclose(f);
	REQUIRE(value >= 0);
	return value;
}

/* From here on this process, as this user, belongs to a group of its own. */
static void join(const char *group)
{
	char path[64];

	snprintf(path, sizeof(path), GROUPS "%s", group);
	REQUIRE(mkdir(path, 0755) == 0 || errno == EEXIST);
	snprintf(path, sizeof(path), GROUPS "%s/cgroup.procs", group);
	write_file(path, "0");
	become(NOBODY);
}

/* The kernel's objects that a group pays for, in kB. */
static long paid(const char *group)
{
	char path[64];

	snprintf(path, sizeof(path), GROUPS "%s/memory.stat", group);
	return number_in(path, "slab") / 1024;
}

/* The same once all is counted: the kernel adds up what each processor has counted every 2 s, or when it is much. */
static long paid_in_all(const char *group)
{
	usleep(2500000);
	return paid(group);
}

static long all(void)
{
	return number_in("/proc/meminfo", "Slab:");
}

/* A process that has done what it is for, and holds what it has until it is killed. */
static pid_t start(void (*run)(void))
{
	pid_t pid = child();

	if (pid == 0) {
		run();
		sem_post(&shared->ready);
		for (;;)
			pause();
	}
	wait_for(&shared->ready);
	return pid;
}

#define PORT 7700
static union addr port;
static int listeners;
static bool shares;	/* they share their addresses */

/* Listens at that many ports from PORT on. */
static void listen_from_port(uint16_t ps, int number, int backlog)
{
	unsigned int one = 1;
	int fd = file();

	for (int n = 0; n < number; n++) {
		union addr a = addr4(ADDR4, PORT + n);
		uint32_t id = REQUIRE_ID(create_id(fd, ps, 1));

		if (shares)
			REQUIRE_OK(set_option(fd, id, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_REUSEPORT, &one, sizeof(one)));
		REQUIRE_OK(bind_addr(fd, id, &a));
		REQUIRE_OK(listen_id(fd, id, backlog));
	}
}

/* Reads nothing. */
static void listener(void)
{
	join("listener");
	listen_from_port(PS_TCP, listeners, REQUESTS);
}

static void clients(void)
{
	struct rdma_ucm_conn_param param = conn_param();
	int fd;

	join("client");
	fd = file();
	for (int n = 0; n < REQUESTS; n++) {
		uint32_t id = routed_client(fd, n + 1, &port);

		param.qp_num = fake_qpn();
		REQUIRE_OK(connect_id(fd, id, &param));
	}
}

/* All that was sent has arrived, or some time has passed. */
static void await_requests(long received)
{
	int tries = 100 * patience();

	while (read_number(RECEIVED) - received < REQUESTS && tries--)
		usleep(100000);
}

/*
 * A listener gets requests from users of another group. "own" is what its group pays for each of them, in bytes, and
 * "none" what no group pays for, of both ends. C takes 128 of a burst, and the others much later.
 */
ACT(unread, "")
{
	long before, received, arrived;
	pid_t pids[2];

	share();
	listeners = 1;
	port = addr4(ADDR4, PORT);
	write_file(GROUPS "cgroup.subtree_control", "+memory");
	pids[0] = start(listener);
	received = read_number(RECEIVED);
	before = all() - paid_in_all("listener");
	pids[1] = start(clients);
	await_requests(received);
	usleep(300000);
	arrived = read_number(RECEIVED) - received;
	/* On a slow machine some are repeated. */
	if (arrived > REQUESTS)
		arrived = REQUESTS;
	REQUIRE(arrived >= 128);
	printf("arrived=%ld own=%ld ", arrived, paid_in_all("listener") * 1024 / arrived);
	printf("none=%ld\n", (all() - paid("listener") - paid("client") - before) * 1024 / arrived);
	for (int i = 1; i >= 0; i--)
		kill_child(pids[i]);
	/* The ids end in the background, and groups stay as long as somebody pays. */
	REQUIRE(rmdir(GROUPS "client") == 0 && rmdir(GROUPS "listener") == 0);
	write_file(GROUPS "cgroup.subtree_control", "-memory");
}

/* A listener that shares its address, in another group, and reads nothing, either. */
static void heir(void)
{
	join("heir");
	listeners = 1;
	listen_from_port(PS_TCP, listeners, REQUESTS);
}

/*
 * A listener with unread requests is killed, and a listener of another group gets them. "own" is what that group pays for each
 * of them, in bytes, and "left" what the other group still does.
 */
ACT(inherited, "")
{
	long before, received;
	pid_t pids[3];

	share();
	listeners = shares = 1;
	port = addr4(ADDR4, PORT);
	write_file(GROUPS "cgroup.subtree_control", "+memory");
	pids[0] = start(listener);
	received = read_number(RECEIVED);
	pids[1] = start(clients);
	await_requests(received);
	pids[2] = start(heir);
	before = paid_in_all("heir");
	kill_child(pids[0]);
	printf("own=%ld left=%ld\n", (paid_in_all("heir") - before) * 1024 / REQUESTS, paid("listener") * 1024 / REQUESTS);
	kill_child(pids[1]);
	kill_child(pids[2]);
	REQUIRE(rmdir(GROUPS "client") == 0 && rmdir(GROUPS "listener") == 0 && rmdir(GROUPS "heir") == 0);
	write_file(GROUPS "cgroup.subtree_control", "-memory");
}

#define GROUP_MB 64
/* Each way to fill a group makes more than one of GROUP_MB holds, if the group pays for it. */
#define IDS 60000
#define FULL_LISTENERS 40
#define UNREAD 12000

static void fill_with_ids(uint16_t ps)
{
	int fd = file();

	for (shared->made = 0; shared->made < IDS && create_id(fd, ps, 1) >= 0; shared->made++)
		unmap_all();
}

/* Its listeners do not read the requests that it makes itself. */
static void fill_with_requests(uint16_t ps)
{
	struct rdma_ucm_conn_param param = conn_param();
	int fd = file();

	listen_from_port(ps, FULL_LISTENERS, UNREAD / FULL_LISTENERS);
	for (shared->made = 0; shared->made < UNREAD; shared->made++) {
		union addr a = addr4(ADDR4, PORT + shared->made % FULL_LISTENERS);
		struct rdma_ucm_event_resp ev;
		long id = create_id(fd, ps, 1);

		if (id < 0 || resolve_addr(fd, id, NULL, &a, 2000) < 0 || wait_event(fd, &ev, 5000) < 0 ||
		    resolve_route(fd, id, 2000) < 0 || wait_event(fd, &ev, 5000) < 0)
			break;
		param.qp_num = fake_qpn();
		if (connect_id(fd, id, &param) < 0)
			break;
		unmap_all();
	}
}

static const struct filling {
	const char *name;
	void (*fill)(uint16_t ps);
	uint16_t ps;
} fillings[] = {
	{ "ids", fill_with_ids, PS_TCP },
	{ "connects", fill_with_requests, PS_TCP },
	{ "datagrams", fill_with_requests, PS_UDP },
	{ 0 },
};

/*
 * A user fills a group of GROUP_MB. "most" is what is allocated beyond what its group pays for, in kB, and "paid" what
 * the group pays for at most.
 */
ACT(contained, "ids|connects|datagrams")
{
	const struct filling *f = fillings;
	long before, now, most = 0, pays = 0, own;
	bool killed = false;
	int status;
	pid_t pid;

	while (f->name && strcmp(f->name, arguments[0]))
		f++;
	REQUIRE(f->name);
	share();
	write_file(GROUPS "cgroup.subtree_control", "+memory");
	REQUIRE(mkdir(GROUPS "filled", 0755) == 0);
	write_file(GROUPS "filled/memory.max", "64M");
	before = all();
	pid = child();
	if (pid == 0) {
		join("filled");
		f->fill(f->ps);
		sem_post(&shared->done);
		for (;;)
			pause();
	}
	while (!(killed = waitpid(pid, &status, WNOHANG) == pid)) {
		own = paid("filled");
		now = all() - own - before;
		/* When the user has been killed its objects go, and the pages that they were in go later. */
		if (own >= pays) {
			most = now > most ? now : most;
			pays = own;
		}
		if (sem_trywait(&shared->done) == 0)
			break;
		usleep(20000);
	}
	REQUIRE(!killed || WIFSIGNALED(status));
	if (!killed)
		kill_child(pid);
	printf("made=%d killed=%d most=%ld paid=%ld\n", shared->made, killed, most, pays);
	REQUIRE(rmdir(GROUPS "filled") == 0);
	write_file(GROUPS "cgroup.subtree_control", "-memory");
}

#define SOURCES 60000
#define FLOOD_MS 10000
#define REST_MS 5000

/* Sends a request to one of the listeners, or to a port of nobody, from the address of one of many hosts. */
static void forge_next(struct forger *f, const struct hosts *h, uint32_t n)
{
	struct forged_req req = {
		.dst = h->gid[0], .comm_id = 0x56000000 + n, .qpn = 0x600000 + (n & 0xfffff),
		.guid = 0x0200000000000008, .port = listeners ? PORT + n % listeners : PORT - 1,
		.timeout = 20,
	};

	forge_req(f, &req, "10.9.0.0", n % SOURCES);
}

/*
 * A flood to that many listeners, which read nothing. "most" is the memory beyond what the group of the listeners pays
 * for, above that before, in kB, and "left" the same 5 s after the end of the flood.
 */
ACT(memory, "LISTENERS")
{
	struct hosts h = hosts("4");
	long before, received, now, most = 0;
	uint64_t end;
	pid_t owner, flood;

	share();
	listeners = atoi(arguments[0]);
	write_file(GROUPS "cgroup.subtree_control", "+memory");
	owner = start(listener);
	received = read_number(RECEIVED);
	before = all() - paid("listener");
	flood = flooder(true, forge_next, &h, 1);
	for (end = now_ms() + FLOOD_MS; now_ms() < end; usleep(50000)) {
		now = all() - paid("listener") - before;
		most = now > most ? now : most;
	}
	kill_child(flood);
	received = read_number(RECEIVED) - received;
	usleep(1000 * REST_MS);
	printf("received=%ld most=%ld left=%ld own=%ld\n", received, most, all() - paid("listener") - before,
	       paid("listener"));
	kill_child(owner);
	REQUIRE(rmdir(GROUPS "listener") == 0);
	write_file(GROUPS "cgroup.subtree_control", "-memory");
}
