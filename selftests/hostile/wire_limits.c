// SPDX-License-Identifier: GPL-2.0
/* The limits of a user who has requests from the wire, and of one who sends requests. */
#include "ends.h"
#include "limits.h"
#include "wire.h"

/* --- requests --- */

#define LISTENERS 4

/*
 * Clients ask for more connections than the owner of their listeners, in several files, may have requests. "requests" is the
 * number of those "tried" that the owner gets, "refused" the number of clients that are refused, for "reason", "shown" the
 * number that the owner is shown to have, and "other" says whether another user gets a request meanwhile. "again" says
 * whether there is room for one when one was answered, and "left" is the number that is shown when all is closed.
 */
ACT(requests, "tcp|udp NUMBER")
{
	bool is_udp = !strcmp(arguments[0], "udp");
	int wanted = atoi(arguments[1]);
	pid_t pid, other;

	share();
	pid = child();
	if (pid == 0) {
		union addr a = any_port4();
		struct pair p[LISTENERS];
		int cfd, requests = 0, refused;
		uint32_t clients[LISTENERS * wanted + 1];
		struct rdma_ucm_conn_param param;
		struct rdma_ucm_event_resp request, response;

		become(NOBODY);
		cfd = file();
		for (int i = 0; i < LISTENERS; i++) {
			p[i] = (struct pair){ .ps = is_udp ? PS_UDP : PS_TCP };
			pair_listen(&p[i], &a);
		}
		for (int i = 0; i <= LISTENERS * wanted; i++) {
			clients[i] = REQUIRE_ID(create_id(cfd, is_udp ? PS_UDP : PS_TCP, i + 1));
			route_id(cfd, clients[i], &p[i % LISTENERS].addr);
		}
		for (int i = 0; i < LISTENERS * wanted; i++) {
			param = conn_param();
			REQUIRE_OK(connect_id(cfd, clients[i], &param));
		}
		for (int i = 0; i < LISTENERS; i++)
			requests += count_events(p[i].sfd, EV_CONNECT_REQUEST, LISTENERS * wanted, 1000,
						 i == 0 ? &request : NULL);
		/* An answer may be one to a repeated request only. */
		refused = count_events(cfd, is_udp ? EV_UNREACHABLE : EV_REJECTED, LISTENERS * wanted - requests,
				       15000, &response);
		printf("tried=%d requests=%d refused=%d reason=%d ", LISTENERS * wanted, requests, refused,
		       refused ? response.status : 0);
		fflush(stdout);
		sem_post(&shared->done);
		wait_for(&shared->go);
		/* One is answered. */
		param = conn_param();
		REQUIRE_OK(accept_id(p[0].sfd, request.id, 1, &param));
		NEED_EVENT(cfd, is_udp ? EV_ESTABLISHED : EV_CONNECT_RESPONSE, &response);
		if (!is_udp) {
			REQUIRE_OK(accept_id(cfd, response.id, 0, NULL));
			NEED_EVENT(p[0].sfd, EV_ESTABLISHED, NULL);
		}
		param = conn_param();
		REQUIRE_OK(connect_id(cfd, clients[LISTENERS * wanted], &param));
		printf("again=%d ", count_events(p[0].sfd, EV_CONNECT_REQUEST, 1, 15000, NULL));
		finished();
	}
	wait_for(&shared->done);
	printf("shown=%d ", shown(NOBODY, "requests"));
	other = child();
	if (other == 0) {
		union addr a = any_port4();
		struct pair p = { .ps = is_udp ? PS_UDP : PS_TCP };

		become(SOMEBODY);
		pair_requested(&p, &a);
		_exit(1);
	}
	printf("other=%d ", reap(other));
	fflush(stdout);
	sem_post(&shared->go);
	REQUIRE(reap(pid) == 0);
	printf("left=%d\n", left(NOBODY, "requests"));
}
/* --- address handles --- */

#define ROUTED "10.99.%d.%d" /* of nobody; the suite has a route to them */

/*
 * A user asks many hosts that do not answer for connections. "asked" is the number of those "tried" that are asked, "shown"
 * the number of handles that the user is shown to have, and "beyond" says whether it can connect to another host meanwhile.
 * "left" is the number that is shown when all is closed.
 */
ACT(handles, "NUMBER")
{
	int tried = 4 * atoi(arguments[0]);
	pid_t pid;

	share();
	pid = child();
	if (pid == 0) {
		struct rdma_ucm_conn_param param;
		union addr a = any_port4();
		struct pair p = { 0 };
		int fd, asked = 0;

		become(NOBODY);
		fd = file();
		for (int i = 0; i < tried; i++) {
			char ip[32];
			union addr to;

			snprintf(ip, sizeof(ip), ROUTED, i / 250, 1 + i % 250);
			to = addr4(ip, 7);
			param = conn_param();
			asked += connect_id(fd, routed_client(fd, 1, &to), &param) >= 0;
		}
		printf("tried=%d asked=%d ", tried, asked);
		fflush(stdout);
		sem_post(&shared->done);
		wait_for(&shared->go);
		pair_established(&p, &a);
		printf("beyond=1 ");
		finished();
	}
	wait_for(&shared->done);
	printf("shown=%d ", shown(NOBODY, "address_handles"));
	fflush(stdout);
	sem_post(&shared->go);
	REQUIRE(reap(pid) == 0);
	printf("left=%d\n", left(NOBODY, "address_handles"));
}

#define FORGED_ID 0x57000000
#define FORGED_QP 0x610000
#define FORGED "10.9.1.1"	/* of nobody, behind the other end of the wire, as those after it */

/*
 * Requests come to a user's listener from many addresses, and nobody answers them. "requests" is the number of those
 * "tried" that the user gets, "shown" the number of handles that it is shown to have, and "again" says whether it
 * gets one of another user meanwhile. "left" is the number that is shown when all is closed.
 */
ACT(forged_handles, "NUMBER")
{
	int tried = 4 * atoi(arguments[0]);
	struct hosts h = hosts("4");
	struct forger f;
	pid_t pid, other;

	share();
	pid = child();
	if (pid == 0) {
		int fd;
		uint32_t id;

		become(NOBODY);
		fd = file();
		id = REQUIRE_ID(create_id(fd, PS_TCP, 1));
		REQUIRE_OK(bind4(fd, id, ADDR4, 0));
		REQUIRE_OK(listen_id(fd, id, 1024));
		shared->number = bound_port(fd, id);
		sem_post(&shared->ready);
		printf("tried=%d requests=%d ", tried, count_events(fd, EV_CONNECT_REQUEST, tried, 15000, NULL));
		fflush(stdout);
		sem_post(&shared->done);
		wait_for(&shared->go);
		printf("again=%d ", count_events(fd, EV_CONNECT_REQUEST, 1, 15000, NULL));
		finished();
	}
	wait_for(&shared->ready);
	forger_init(&f, true);
	for (int n = 0; n < tried; n++) {
		struct forged_req req = {
			.dst = h.gid[0], .comm_id = FORGED_ID + n, .qpn = FORGED_QP + n,
			.guid = 0x0200000000570000 + n, .port = shared->number, .timeout = 20,
		};

		forge_req(&f, &req, FORGED, n);
	}
	wait_for(&shared->done);
	printf("shown=%d ", shown(NOBODY, "address_handles"));
	fflush(stdout);
	sem_post(&shared->go);
	other = child();
	if (other == 0) {
		union addr a = addr4(ADDR4, shared->number);
		struct rdma_ucm_conn_param param = conn_param();
		int fd;

		become(SOMEBODY);
		fd = file();
		REQUIRE_OK(connect_id(fd, routed_client(fd, 1, &a), &param));
		wait_event(fd, &(struct rdma_ucm_event_resp){ 0 }, 1000 * patience());
		_exit(0);
	}
	REQUIRE(reap(other) == 0 && reap(pid) == 0);
	printf("left=%d\n", left(NOBODY, "address_handles"));
}
