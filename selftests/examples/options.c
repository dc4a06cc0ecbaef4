/* SPDX-License-Identifier: GPL-2.0 */
/*
 * options ADDRESS PORT: connects, with options of rust_rdma_cm where they are to be had.
 *
 *	cc -o options options.c -lrdmacm
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <rdma/rdma_cma.h>
#include <rdma/rust_rdma_cm.h>

static const struct {
	int option;
	unsigned int value;
} options[] = {
	/* A time code: the peer may take 1 << (18 - 8) ms, about a second, to answer. */
	{ RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, 18 },
	/* A number: the request is sent again three times if it is not answered. */
	{ RDMA_OPTION_TUNING_MAX_RETRIES, 3 },
	/* Milliseconds: half a second after rdma_connect() there is an event, whatever happens. */
	{ RDMA_OPTION_TUNING_DEADLINE, 500 },
	/* A time code: RDMA_CM_EVENT_TIMEWAIT_EXIT comes a second after the end at the latest. */
	{ RDMA_OPTION_TUNING_TIMEWAIT, 18 },
	/* Milliseconds: a request is sent again after 50 ms at the soonest. */
	{ RDMA_OPTION_TUNING_EARLY_RETRY, 50 },
	/* A number: if this id listens, 64 requests wait beside a full backlog. */
	{ RDMA_OPTION_TUNING_PARKING, 64 },
	/* Milliseconds: a connection ends when its own interface was down for 200 ms. */
	{ RDMA_OPTION_TUNING_DEAD_LINK, 200 },
	/* Seconds: the peer is asked once a minute whether it still has the connection. */
	{ RDMA_OPTION_TUNING_KEEPALIVE, 60 },
};

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* The C modules, and a rust_rdma_cm that is too old for an option, answer ENOSYS. */
static int tune(struct rdma_cm_id *id)
{
	unsigned int i, value;

	for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		value = options[i].value;
		if (!rdma_set_option(id, RDMA_OPTION_TUNING, options[i].option, &value, sizeof(value)))
			continue;
		if (errno == ENOSYS)
			return 0;
		die("rdma_set_option");
	}
	return 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The next event. The id can be destroyed only when the event is acknowledged. */
static enum rdma_cm_event_type next(struct rdma_event_channel *channel, int *status)
{
	struct rdma_cm_event *event;
	enum rdma_cm_event_type type;

	if (rdma_get_cm_event(channel, &event))
		die("rdma_get_cm_event");
	type = event->event;
	*status = event->status;
	rdma_ack_cm_event(event);
	return type;
}

static void expect(struct rdma_event_channel *channel, enum rdma_cm_event_type wanted)
{
	int status;
	enum rdma_cm_event_type type = next(channel, &status);

	if (type != wanted) {
		printf("%s, status %d\n", rdma_event_str(type), status);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct rdma_conn_param param = { .qp_num = 0x123456 };
	struct rdma_event_channel *channel;
	enum rdma_cm_event_type type;
	struct rdma_cm_id *id;
	double start;
	int status;

	if (argc != 3 || inet_pton(AF_INET, argv[1], &to.sin_addr) != 1) {
		fprintf(stderr, "usage: options ADDRESS PORT\n");
		return 2;
	}
	to.sin_port = htons(atoi(argv[2]));
	channel = rdma_create_event_channel();
	if (!channel || rdma_create_id(channel, &id, NULL, RDMA_PS_TCP))
		die("rdma_create_id");
	printf("%s\n", tune(id) ? "rust_rdma_cm: six options are set" : "no options: the C modules");

	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000))
		die("rdma_resolve_addr");
	expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (rdma_resolve_route(id, 2000))
		die("rdma_resolve_route");
	expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
	start = now();
	if (rdma_connect(id, &param))
		die("rdma_connect");
	type = next(channel, &status);
	printf("%s, status %d, after %.1f s\n", rdma_event_str(type), status, now() - start);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	return 0;
}
