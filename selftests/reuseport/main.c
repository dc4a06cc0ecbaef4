// SPDX-License-Identifier: GPL-2.0
/*
 * Servers that share an address, for the suite "reuseport":
 *
 *	reuseport share WORKERS CONNECTIONS	the share of each worker
 *	reuseport count WORKERS REQUESTS	the share of each worker, of which each refuses all
 *	reuseport alone CONNECTIONS		one listener that shares nothing, as C has it
 *	reuseport full CONNECTIONS		a worker that reads nothing, and is killed, beside one that accepts all
 *	reuseport read CONNECTIONS		the same with one that reads all and answers nothing
 *	reuseport replace retire|kill ROUNDS	workers come and go while clients connect
 *
 * Words NAME=NUMBER say what has come of it.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "reuseport.h"

#define AT_A_TIME 64
#define PORT 7900

struct shared *shared;

static struct clients clients_of(const union addr *address)
{
	return (struct clients) { .fd = cm_open(O_RDWR | O_NONBLOCK), .address = *address };
}

static void print(const struct clients *c)
{
	printf("connected=%u refused=%u failed=%u lost=%u\n", c->connected, c->refused, c->failed, c->lost);
}

static void serve_all(unsigned int workers, unsigned int connections, const struct role *of_all)
{
	union addr address = addr4(FAR4, PORT);
	struct clients clients = clients_of(&address);
	unsigned int least = -1, most = 0, sum = 0;
	pid_t pids[MOST_WORKERS];
	uint64_t begun;

	for (unsigned int i = 0; i < workers; i++) {
		struct role role = *of_all;

		role.index = i;
		pids[i] = start_worker(&role, &address);
	}
	begun = now_ms();
	run_clients(&clients, connections, AT_A_TIME, begun + 400000 * patience());
	printf("ms=%lu\n", (unsigned long)(now_ms() - begun));
	print(&clients);
	for (unsigned int i = 0; i < workers; i++) {
		unsigned int requests = shared->worker[i].requests;

		sum += requests;
		least = requests < least ? requests : least;
		most = requests > most ? requests : most;
		kill_worker(pids[i]);
	}
	printf("requests=%u least=%u most=%u\n", sum, least, most);
}

/*
 * Beside a worker that accepts there is one that does not, which is killed when all clients but its own are connected. The time
 * is that from then on.
 */
static void serve_beside(struct role *other, unsigned int connections)
{
	union addr address = addr4(FAR4, PORT);
	struct clients clients = clients_of(&address);
	struct role worker = { .index = 1, .backlog = BACKLOG, .shares = true };
	pid_t pids[2] = { start_worker(other, &address), start_worker(&worker, &address) };
	uint64_t end = now_ms() + 60000 * patience(), killed;
	unsigned int before;

	/* Until nothing comes for a second, once the first have come. */
	do {
		before = clients.connected;
		run_clients(&clients, connections, connections, now_ms() + 1000);
	} while (now_ms() < end && (clients.connected > before || !before));
	printf("waited=%u\n", clients.begun - clients.connected);
	kill_worker(pids[0]);
	killed = now_ms();
	run_clients(&clients, connections, connections, killed + 60000 * patience());
	printf("took=%lu\n", (unsigned long)(now_ms() - killed));
	print(&clients);
	kill_worker(pids[1]);
}

/* At each moment there are two workers or three. */
static void replace(bool kills, unsigned int rounds)
{
	union addr address = addr4(FAR4, PORT);
	struct clients clients = clients_of(&address);
	struct role role = { .backlog = BACKLOG, .shares = true };
	pid_t pids[2];

	pids[0] = start_worker(&role, &address);
	role.index++;
	pids[1] = start_worker(&role, &address);
	for (unsigned int round = 0; round < rounds; round++) {
		pid_t *old = &pids[round % 2], before = *old;

		run_clients(&clients, -1, AT_A_TIME, now_ms() + 300 * patience());
		role.index = (role.index + 1) % MOST_WORKERS;
		*old = start_worker(&role, &address);
		run_clients(&clients, -1, AT_A_TIME, now_ms() + 100 * patience());
		if (kills)
			kill_worker(before);
		else
			retire_worker(before);
	}
	/* All that are under way have an end, too. */
	run_clients(&clients, clients.begun, AT_A_TIME, now_ms() + 60000 * patience());
	printf("waiting=%u\n", clients.begun - clients.connected - clients.failed - clients.lost);
	print(&clients);
	kill_worker(pids[0]);
	kill_worker(pids[1]);
	while (wait(NULL) > 0)
		;
}

int main(int argc, char **argv)
{
	const char *act = argc > 2 ? argv[1] : "";
	struct role role = { .backlog = BACKLOG, .shares = strcmp(act, "alone"), .refuses = !strcmp(act, "count") };
	struct role beside = { .backlog = BACKLOG, .shares = true, .sleeps = !strcmp(act, "full"), .dawdles = !strcmp(act, "read") };

	if (beside.sleeps)
		beside.backlog = 4;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	REQUIRE(shared != MAP_FAILED);
	if ((!strcmp(act, "share") || role.refuses) && argc == 4)
		serve_all(atoi(argv[2]), atoi(argv[3]), &role);
	else if (!strcmp(act, "alone") && argc == 3)
		serve_all(1, atoi(argv[2]), &role);
	else if ((beside.sleeps || beside.dawdles) && argc == 3)
		serve_beside(&beside, atoi(argv[2]));
	else if (!strcmp(act, "replace") && argc == 4)
		replace(!strcmp(argv[2], "kill"), atoi(argv[3]));
	else
		return 2;
	return 0;
}
