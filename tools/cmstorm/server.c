// SPDX-License-Identifier: GPL-2.0
/* The side that listens and accepts. */
#include "cmstorm.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Imagined QPs of the server, apart from those of any client. */
#define SERVER_QPN 0x800000u
#define QPN_MASK 0x7fffffu

struct server {
	const struct options *options;
	struct rdma_event_channel *channel;
	uint32_t accepted;
};

static struct server server;

static void accept_request(struct server *s, struct rdma_cm_id *id,
			   const struct rdma_conn_param *asked)
{
	struct rdma_conn_param param = {
		.responder_resources = asked->initiator_depth,
		.initiator_depth = asked->responder_resources,
		.rnr_retry_count = 7,
	};
	uint32_t number = s->accepted++;

	param.qp_num = number_of(number, SERVER_QPN | ((s->options->qpn + number) & QPN_MASK));
	if (s->options->accept_delay)
		usleep(s->options->accept_delay);
	next_step(s->options);
	if ((s->options->qp && make_qp(id)) || rdma_accept(id, &param))
		rdma_destroy_id(id);
}

static void *serve(void *arg)
{
	struct server *s = arg;
	struct rdma_cm_event *event;

	while (!rdma_get_cm_event(s->channel, &event)) {
		struct rdma_cm_id *id = event->id;
		enum rdma_cm_event_type type = event->event;
		struct rdma_conn_param asked = event->param.conn;

		rdma_ack_cm_event(event);
		switch (type) {
		case RDMA_CM_EVENT_CONNECT_REQUEST:
			accept_request(s, id, &asked);
			break;
		case RDMA_CM_EVENT_DISCONNECTED:
			next_step(s->options);
			rdma_disconnect(id);
			end_step(s->options);
			/* fall through */
		case RDMA_CM_EVENT_CONNECT_ERROR:
		case RDMA_CM_EVENT_UNREACHABLE:
		case RDMA_CM_EVENT_REJECTED:
			if (id->qp)
				rdma_destroy_qp(id);
			rdma_destroy_id(id);
			break;
		case RDMA_CM_EVENT_DEVICE_REMOVAL:
			die("the device went away");
		default:
			break;
		}
	}
	return NULL;
}

static void listen_on(struct server *s, const struct options *options)
{
	const char *where = options->address ? options->address : "::";

	s->options = options;
	s->channel = rdma_create_event_channel();
	if (!s->channel)
		die_errno("no event channel (is the connection manager loaded?)");
	for (int i = 0; i < options->ports; i++) {
		uint16_t port = (uint16_t)(options->port + i);
		struct sockaddr_storage address;
		struct rdma_cm_id *listener;

		if (rdma_create_id(s->channel, &listener, NULL, RDMA_PS_TCP))
			die_errno("rdma_create_id");
		socket_address(where, port, &address);
		if (rdma_bind_addr(listener, (struct sockaddr *)&address))
			die_errno("cannot bind to %s port %u", where, port);
		if (rdma_listen(listener, options->backlog))
			die_errno("cannot listen to port %u", port);
		if (i == 0 && options->numbers) {
			if (!listener->verbs)
				die("no device has the address %s, which --numbers needs", where);
			make_numbers(listener->verbs, options->numbers);
		}
	}
}

int run_server(const struct options *options)
{
	listen_on(&server, options);
	puts("listening");
	fflush(stdout);
	serve(&server);
	die_errno("rdma_get_cm_event");
}

void start_server(const struct options *options)
{
	pthread_t thread;

	listen_on(&server, options);
	if (pthread_create(&thread, NULL, serve, &server))
		die("no thread for the server");
}
