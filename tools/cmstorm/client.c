// SPDX-License-Identifier: GPL-2.0
/*
 * The side that connects. One thread keeps a number of connections under way:
 * each event of one of them starts its next step, and each end a new one.
 */
#include "cmstorm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct connection {
	struct rdma_cm_id *id;
	uint64_t began;
	bool dead;		/* to the host that does not answer */
	bool up;
	bool over;
};

#define SECOND UINT64_C(1000000000)

/* Kinds of failure that are told apart; the last counts all others. */
#define FAILURES 32

/* A reason for a failure, and how often it was seen. */
struct failure {
	enum rdma_cm_event_type type;
	int status;
	unsigned int count;
};

struct client {
	const struct options *options;
	struct rdma_event_channel *channel;
	struct sockaddr_storage address, source, dead;
	struct connection *connections;
	uint64_t *times;	/* ns, of the ones that are timed and up */
	struct failure failures[FAILURES];
	uint32_t next_qpn;
	unsigned int next_port;
	int started, up, failed;	/* of the round that runs */
	int dead_sent;			/* requests to the dead host under way */
	int dead_failed;
};

/* So many at once are made before the round that is timed. */
#define OPEN_FLIGHT 128

static void count_failure(struct client *c, enum rdma_cm_event_type type, int status)
{
	struct failure *f = c->failures, *last = f + FAILURES - 1;

	while (f < last && f->count && (f->type != type || f->status != status))
		f++;
	f->type = type;
	f->status = status;
	f->count++;
	c->failed++;
}

static void start(struct client *c, struct connection *n, bool dead)
{
	struct sockaddr *source = c->options->source ? (struct sockaddr *)&c->source : NULL;
	struct sockaddr_storage to = dead ? c->dead : c->address;
	uint16_t port = (uint16_t)(c->options->port + c->next_port++ % c->options->ports);

	/* At the same place for IPv4 and IPv6. */
	((struct sockaddr_in *)&to)->sin_port = htons(port);
	n->dead = dead;
	n->began = now_ns();
	if (rdma_create_id(c->channel, &n->id, n, RDMA_PS_TCP))
		die_errno("rdma_create_id");
	if (rdma_resolve_addr(n->id, source, (struct sockaddr *)&to,
			      c->options->resolve_timeout))
		die_errno("rdma_resolve_addr");
}

static int send_request(struct client *c, struct connection *n)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.qp_num = number_of(c->next_qpn - c->options->qpn, c->next_qpn),
	};

	c->next_qpn = c->next_qpn == 0x7fffff ? 1 : c->next_qpn + 1;
	if (c->options->qp && make_qp(n->id))
		return -1;
	next_step(c->options);
	return rdma_connect(n->id, &param);
}

/* The connection is over; its id goes unless it is up. */
static void fail(struct client *c, struct connection *n, enum rdma_cm_event_type type, int status)
{
	n->over = true;
	if (n->id->qp)
		rdma_destroy_qp(n->id);
	rdma_destroy_id(n->id);
	n->id = NULL;
	if (n->dead)
		c->dead_failed++;
	else
		count_failure(c, type, status);
}

static void established(struct client *c, struct connection *n)
{
	c->times[c->up] = now_ns() - n->began;
	n->up = true;
	c->up++;
}

static void handle(struct client *c, struct rdma_cm_event *event)
{
	struct connection *n = event->id->context;
	enum rdma_cm_event_type type = event->event;
	int status = event->status;

	rdma_ack_cm_event(event);
	switch (type) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(n->id, c->options->resolve_timeout))
			fail(c, n, type, -errno);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		if (send_request(c, n))
			fail(c, n, type, -errno);
		else if (n->dead)
			c->dead_sent++;
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		next_step(c->options);
		if (rdma_establish(n->id))
			fail(c, n, type, -errno);
		else
			established(c, n);
		end_step(c->options);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		established(c, n);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(n->id);
		n->over = true;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		die("the device went away");
	default:
		if (!n->up)
			fail(c, n, type, status);
		break;
	}
}

/* Take one event; false if there is none until then (ns; 0: for ever). */
static bool take_event(struct client *c, uint64_t until)
{
	struct rdma_cm_event *event;

	if (until) {
		struct pollfd poll_fd = { .fd = c->channel->fd, .events = POLLIN };
		uint64_t now = now_ns(), rest = until > now ? until - now : 0;
		struct timespec wait = {
			.tv_sec = (time_t)(rest / SECOND),
			.tv_nsec = (long)(rest % SECOND),
		};

		if (ppoll(&poll_fd, 1, &wait, NULL) <= 0)
			return false;
	}
	if (rdma_get_cm_event(c->channel, &event))
		die_errno("rdma_get_cm_event");
	handle(c, event);
	return true;
}

/* Make "count" connections from "first" on, and return the time that it took. */
static uint64_t run_round(struct client *c, struct connection *first, int count, int flight,
			  uint64_t pace)
{
	const struct options *o = c->options;
	uint64_t began = now_ns();
	uint64_t end = o->seconds ? began + (uint64_t)o->seconds * SECOND : 0;

	c->started = c->up = c->failed = 0;
	while (c->up + c->failed < count) {
		uint64_t until = end, next = 0;

		while (c->started < count && c->started - c->up - c->failed < flight) {
			next = pace ? began + (uint64_t)c->started * pace : 0;
			if (next > now_ns())
				break;
			next = 0;
			start(c, first + c->started++, false);
		}
		if (next && (!end || next < end))
			until = next;
		if (!take_event(c, until) && until == end)
			break;
	}
	return now_ns() - began;
}

static void disconnect(struct client *c, struct connection *n)
{
	if (!c->options->steps) {
		rdma_disconnect(n->id);
		return;
	}
	mark_begin();
	rdma_disconnect(n->id);
	while (!n->over)
		take_event(c, 0);
	/* The server ends the step. */
	sleep(1);
}

static uint64_t finish(struct client *c, int count)
{
	uint64_t began = now_ns();

	if (c->options->finish == FINISH_CLOSE) {
		close(c->channel->fd);
		return now_ns() - began;
	}
	for (int i = 0; i < count; i++) {
		struct connection *n = c->connections + i;

		if (!n->up)
			continue;
		if (c->options->finish == FINISH_DISCONNECT && !n->over)
			disconnect(c, n);
		if (n->id->qp)
			rdma_destroy_qp(n->id);
		/* It waits for events that nobody acknowledged: there are none. */
		rdma_destroy_id(n->id);
	}
	return now_ns() - began;
}

/* For qsort(). */
static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double percentile(const struct client *c, double part)
{
	int i = (int)(part * c->up);

	if (!c->up)
		return 0;
	return c->times[i < c->up ? i : c->up - 1] / 1e3;
}

static void report(const struct client *c, int count, uint64_t ns)
{
	const char *separator = "";

	printf("{\"connections\": %d, \"up\": %d, \"failed\": %d, \"unfinished\": %d, "
	       "\"seconds\": %.6f, \"rate\": %.1f, "
	       "\"us\": {\"p50\": %.1f, \"p90\": %.1f, \"p99\": %.1f, \"max\": %.1f}, \"failures\": {",
	       count, c->up, c->failed, count - c->up - c->failed, ns / 1e9,
	       ns ? c->up * 1e9 / ns : 0.0, percentile(c, 0.5), percentile(c, 0.9),
	       percentile(c, 0.99), percentile(c, 1));
	for (unsigned int i = 0; i < FAILURES && c->failures[i].count; i++) {
		const struct failure *f = c->failures + i;

		printf("%s\"%s %d\": %u", separator, rdma_event_str(f->type), f->status, f->count);
		separator = ", ";
	}
	printf("}");
	if (c->options->quantiles) {
		printf(", \"quantiles\": [");
		for (int i = 0; i <= 100; i++)
			printf("%s%.1f", i ? ", " : "", percentile(c, i / 100.0));
		printf("]");
	}
}

/* For a person. */
static void complain(const struct client *c, int count)
{
	const struct failure *f = c->failures;

	if (c->failed)
		fprintf(stderr, "cmstorm: %d of %d connections failed, the first with %s, status %d (%s)\n",
			c->failed, count, rdma_event_str(f->type), f->status,
			f->status < 0 ? strerror(-f->status) : "a reason of the protocol");
	if (c->up + c->failed < count)
		fprintf(stderr, "cmstorm: %d of %d connections were not finished in %d s\n",
			count - c->up - c->failed, count, c->options->seconds);
}

int run_client(const struct options *o)
{
	struct client client = { .options = o, .next_qpn = o->qpn }, *c = &client;
	int dead = o->dead ? o->dead_count : 0;
	int all = o->open + dead + o->connections;
	int timed = o->open > o->connections ? o->open : o->connections;
	uint64_t ns;

	socket_address(o->address, o->port, &c->address);
	if (o->source)
		socket_address(o->source, 0, &c->source);
	if (o->dead)
		socket_address(o->dead, o->port, &c->dead);
	/* The first step is all that is before the request. */
	if (o->steps)
		mark_begin();
	c->channel = rdma_create_event_channel();
	if (!c->channel)
		die_errno("no event channel (is the connection manager loaded?)");
	c->connections = calloc((size_t)all + 1, sizeof(*c->connections));
	c->times = calloc((size_t)timed + 1, sizeof(*c->times));
	if (!c->connections || !c->times)
		die("no memory for %d connections", all);

	if (o->numbers) {
		struct rdma_cm_id *id;

		/* It finds the device. */
		if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
		    rdma_resolve_addr(id, o->source ? (struct sockaddr *)&c->source : NULL,
				      (struct sockaddr *)&c->address, o->resolve_timeout))
			die_errno("cannot resolve %s", o->address);
		make_numbers(id->verbs, o->numbers);
		rdma_destroy_id(id);
	}
	if (o->open) {
		run_round(c, c->connections, o->open, OPEN_FLIGHT, 0);
		if (c->up < o->open) {
			complain(c, o->open);
			return 1;
		}
	}
	for (int i = 0; i < dead; i++)
		start(c, c->connections + o->open + i, true);
	while (c->dead_sent + c->dead_failed < dead)
		take_event(c, 0);
	if (c->dead_failed)
		die("%d requests to %s could not be sent", c->dead_failed, o->dead);

	if (!o->steps)
		mark_begin();
	ns = run_round(c, c->connections + o->open + dead, o->connections, o->flight,
		       (uint64_t)o->pace * 1000);
	if (!o->steps)
		mark_end();
	qsort(c->times, c->up, sizeof(*c->times), by_value);
	report(c, o->connections, ns);
	fflush(stdout);
	if (o->hold)
		getchar();
	if (o->finish != FINISH_NONE) {
		if (!o->steps)
			mark_begin();
		ns = finish(c, all);
		if (!o->steps)
			mark_end();
		printf(", \"finish_seconds\": %.6f", ns / 1e9);
	}
	puts("}");
	complain(c, o->connections);
	return c->up == o->connections ? 0 : 1;
}
