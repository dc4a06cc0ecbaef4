// SPDX-License-Identifier: GPL-2.0
/* Clients beside forged requests that fill the backlog of a listener faster than its owner reads them. */
#include <pthread.h>

#include "ends.h"
#include "server.h"
#include "wire.h"

#define BACKLOG 128
/* The owner reads a request in 10 ms, and a forged one comes each millisecond, from one source after the other. */
#define READ_US 10000
#define SOURCES 60000
/* A request that comes again does so after that time, as with C. */
#define AGAIN_MS 4600
/* The backlog and the parking are full that time after requests come, or come again. */
#define FILL_MS 4000
#define MOST_CLIENTS 300
#define ADDRESSES 100
/* Connections to the listener that is not flooded, one after the other. */
#define OTHERS 200

/* Listens at an address, which gets a port, and accepts each request after a pause. */
static struct server *serve(union addr *a, unsigned int pause_us)
{
	int fd = file();
	uint32_t id = REQUIRE_ID(create_id(fd, PS_TCP, 1));

	*a = addr4(ADDR4, 0);
	REQUIRE_OK(bind_addr(fd, id, a));
	REQUIRE_OK(listen_id(fd, id, BACKLOG));
	*a = addr4(ADDR4, bound_port(fd, id));
	return accept_from(fd, pause_us);
}

struct flood {
	struct hosts h;
	uint16_t port;
	pthread_t thread;
	unsigned int times;		/* that each request comes */
	_Atomic bool over;
	_Atomic unsigned int forged;	/* requests, without those that come again */
};

static void *forge_flood(void *argument)
{
	struct flood *flood = argument;
	const uint32_t delay = AGAIN_MS / flood->times;
	uint64_t start = now_ms();
	struct forger f;

	forger_init(&f, true);
	for (uint32_t n = 0; !flood->over; n++) {
		bool again = n % flood->times;
		uint32_t number = n / flood->times - (again ? delay : 0);
		struct forged_req req = {
			.dst = flood->h.gid[0], .comm_id = 0x55000000 + number, .qpn = 0x300000 + number,
			.guid = 0x0200000000000001 + number, .port = flood->port, .timeout = 20,
		};

		while (now_ms() < start + n)
			usleep(100);
		if (again && n / flood->times < delay)
			continue;
		forge_req(&f, &req, "10.9.0.1", number % SOURCES);
		flood->forged += !again;
	}
	return NULL;
}

/* The number of a queue pair that no connection has used. */
static uint32_t next_qpn(void)
{
	static uint32_t qpn = 0x400000;

	return qpn++;
}

struct client {
	int fd;
	uint32_t id;
	bool answered;
};

/*
 * That many clients connect, from addresses in turn. Waits for answers until "ms" have passed. Returns how many connect;
 * "rejected" are refused.
 */
static int connected(int number, const union addr *dst, const char *source, int ms, int *rejected)
{
	static struct client clients[MOST_CLIENTS];
	uint64_t end;
	int made = 0;

	for (int n = 0; n < number; n++) {
		char address[32];
		union addr src;

		snprintf(address, sizeof(address), source, n % ADDRESSES);
		src = addr4(address, 0);
		clients[n].fd = file();
		clients[n].id = client_from(clients[n].fd, &src, dst);
	}
	end = now_ms() + ms * patience();
	for (int n = 0; n < number; n++) {
		struct rdma_ucm_conn_param param = conn_param();

		param.qp_num = next_qpn();
		REQUIRE_OK(connect_id(clients[n].fd, clients[n].id, &param));
	}
	for (int n = 0; n < number; n++) {
		struct rdma_ucm_event_resp ev;
		int64_t left = end - now_ms();

		clients[n].answered = false;
		if (wait_event(clients[n].fd, &ev, left > 0 ? left : 0) < 0)
			continue;
		clients[n].answered = ev.event == EV_CONNECT_RESPONSE;
		*rejected += ev.event == EV_REJECTED;
	}
	/* Nobody is known by then because another client has connected from there. */
	for (int n = 0; n < number; n++) {
		made += clients[n].answered && accept_id(clients[n].fd, clients[n].id, 0, NULL) == 0;
		close(clients[n].fd);
	}
	return made;
}

/* Connects one after the other. Returns the 99th percentile of the time until there is an answer, in ns. */
static uint64_t p99(const union addr *dst)
{
	static uint64_t took[OTHERS];
	union addr src = addr4(FAR4, 0);
	int fd = file();

	for (int n = 0; n < OTHERS; n++) {
		struct rdma_ucm_conn_param param = conn_param();
		uint32_t id = client_from(fd, &src, dst);
		uint64_t start;

		param.qp_num = next_qpn();
		start = now_ns();
		REQUIRE_OK(connect_id(fd, id, &param));
		NEED_EVENT(fd, EV_CONNECT_RESPONSE, NULL);
		took[n] = now_ns() - start;
		REQUIRE_OK(accept_id(fd, id, 0, NULL));
	}
	close(fd);
	return percentile(took, OTHERS, 99);
}

/* Floods a listener, and waits until it is full. */
static void start_flood(struct flood *flood, const union addr *listener, unsigned int times)
{
	flood->h = hosts("4");
	flood->port = addr_port(listener);
	flood->times = times;
	REQUIRE(pthread_create(&flood->thread, NULL, forge_flood, flood) == 0);
	usleep((FILL_MS + (times > 1 ? AGAIN_MS : 0)) * 1000 * patience());
}

static void end_flood(struct flood *flood)
{
	flood->over = true;
	pthread_join(flood->thread, NULL);
}

/*
 * Clients connect to a listener beside a flood of forged requests, each of which comes that many times: ten "known" ones,
 * whose source has confirmed a request before, within 2 s, and "unknown" ones within 10 s. "rejected" clients are refused.
 * "before" is the number of clients that connect without the flood. While the unknown clients wait, that many forged
 * requests are "offered" and that many requests "accepted".
 */
ACT(flooded, "UNKNOWN-ADDRESSES CLIENTS TIMES")
{
	static struct flood flood;
	const int clients = atoi(arguments[1]);
	union addr a;
	struct server *server = serve(&a, READ_US);
	unsigned int offered, accepted;
	int rejected = 0;

	REQUIRE(clients <= MOST_CLIENTS);
	printf("before=%d ", connected(10, &a, FAR4, 10000, &rejected));
	start_flood(&flood, &a, atoi(arguments[2]));
	printf("known=%d ", connected(10, &a, FAR4, 2000, &rejected));
	offered = flood.forged;
	accepted = server->accepted;
	printf("unknown=%d ", connected(clients, &a, arguments[0], 10000, &rejected));
	printf("offered=%u accepted=%u rejected=%d\n", flood.forged - offered, server->accepted - accepted, rejected);
	end_flood(&flood);
}

/* Connections to another listener of the user whose listener is flooded, before the flood and beside it. */
ACT(beside_flood, "")
{
	static struct flood flood;
	union addr flooded, a;

	serve(&flooded, READ_US);
	serve(&a, 0);
	printf("connect_few=%lu ", p99(&a));
	start_flood(&flood, &flooded, 1);
	printf("connect_many=%lu\n", p99(&a));
	end_flood(&flood);
}
