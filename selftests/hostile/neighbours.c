// SPDX-License-Identifier: GPL-2.0
/* Clients whose neighbours are unknown, beside a flood of requests from neighbours that are not there. */
#include "ends.h"
#include "server.h"
#include "wire.h"

#define CLIENTS 8
#define PATIENCE_MS 10000
/* Addresses on the link: those of the forger, of which nobody has one, and the first one of the clients. */
#define SOURCES 20000
#define FORGED4 "10.7.0.0"
#define FORGED6 "fd00::7:0"
#define CLIENT4 "10.0.0.101"
#define CLIENT6 "fd00::101"

static uint16_t port;

static void forge_next(struct forger *f, const struct hosts *h, uint32_t n)
{
	struct forged_req req = {
		.dst = h->gid[0], .comm_id = 0x55000000 + n, .qpn = 0x600000 + (n & 0xfffff),
		.guid = 0x0200000000000007, .port = port, .timeout = 20,
	};

	forge_req(f, &req, is_v4(h->gid[0]) ? FORGED4 : FORGED6, n % SOURCES);
}

/* The number of neighbours of all namespaces, which share a table. */
static int neighbours(bool v4)
{
	FILE *f = fopen(v4 ? "/proc/net/stat/arp_cache" : "/proc/net/stat/ndisc_cache", "r");
	unsigned int number;

	REQUIRE(f && fscanf(f, "%*[^\n] %x", &number) == 1);
	fclose(f);
	return number;
}

struct client {
	int fd;
	uint32_t id;
	bool served;
};

static void start_client(struct client *c, const union addr *server, int number)
{
	struct rdma_ucm_conn_param param = conn_param();
	bool v4 = server->sa.sa_family == AF_INET;
	union addr own = v4 ? addr4(CLIENT4, 0) : addr6(CLIENT6, 0);

	if (v4)
		own.in.sin_addr.s_addr += htonl(number);
	else
		own.in6.sin6_addr.s6_addr[15] += number;
	c->fd = file();
	c->id = client_from(c->fd, &own, server);
	param.qp_num = fake_qpn();
	REQUIRE_OK(connect_id(c->fd, c->id, &param));
}

/*
 * "served" is the number of clients that are served within 10 s, "ms" the time that the last of them takes, and
 * "entries" the largest number of neighbours beside those before.
 */
ACT(neighbours, "4|6 quiet|flooded")
{
	struct hosts h = hosts(arguments[0]);
	bool v4 = is_v4(h.gid[0]);
	struct client clients[CLIENTS] = { 0 };
	int fd = file();
	union addr a = listen_at(fd, &h, false);
	int before = neighbours(v4), most = before, served = 0;
	pid_t flood = 0;
	uint64_t begun, last = 0;

	accept_from(fd, 0);
	if (!strcmp(arguments[1], "flooded")) {
		share();
		port = addr_port(&a);
		flood = flooder(true, forge_next, &h, 2000);
	}
	begun = now_ms();
	for (int i = 0; i < CLIENTS; i++)
		start_client(&clients[i], &a, i);
	while (served < CLIENTS && now_ms() - begun < (uint64_t)PATIENCE_MS * patience()) {
		for (int i = 0; i < CLIENTS; i++) {
			struct rdma_ucm_event_resp ev;

			if (clients[i].served || wait_event(clients[i].fd, &ev, 5) < 0)
				continue;
			REQUIRE_EQ(EV_CONNECT_RESPONSE, ev.event);
			REQUIRE_OK(accept_id(clients[i].fd, clients[i].id, 0, NULL));
			clients[i].served = true;
			served++;
			last = now_ms() - begun;
		}
		most = larger(most, neighbours(v4));
	}
	/* The flood goes on, so that there are as many neighbours as it brings about. */
	for (int i = 0; flood && i < 3000 * patience(); i += 10) {
		usleep(10000);
		most = larger(most, neighbours(v4));
	}
	printf("served=%d ms=%d entries=%d\n", served, (int)last, most - before);
	if (flood)
		kill_child(flood);
}
