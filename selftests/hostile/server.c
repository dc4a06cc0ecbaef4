// SPDX-License-Identifier: GPL-2.0
/* A server that accepts all requests. */
#include <pthread.h>

#include "server.h"

static void *accept_all(void *argument)
{
	struct server *server = argument;
	struct rdma_ucm_event_resp ev;

	while (true) {
		struct rdma_ucm_conn_param param = conn_param();

		if (wait_event(server->fd, &ev, -1) < 0 || ev.event != EV_CONNECT_REQUEST)
			continue;
		if (server->pause_us)
			usleep(server->pause_us);
		server->accepted += accept_id(server->fd, ev.id, 2, &param) >= 0;
	}
	return NULL;
}

struct server *accept_from(int fd, unsigned int pause_us)
{
	struct server *server = calloc(1, sizeof(*server));
	pthread_t thread;

	REQUIRE(server);
	server->fd = fd;
	server->pause_us = pause_us;
	REQUIRE(pthread_create(&thread, NULL, accept_all, server) == 0);
	return server;
}
