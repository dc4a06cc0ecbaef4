// SPDX-License-Identifier: GPL-2.0
/*
 * A server with very many connections in one channel, and the time of its calls beside a few of them and beside all.
 *
 * The clients are in the namespace "peer", in one channel of another process. A call's time is the median, in nanoseconds.
 * Ids and buffers are prepared before, so that it is that of the system call.
 */
#include <signal.h>
#include <sys/prctl.h>

#include "hostile.h"

/* A client's address has one connection to a port from each ephemeral port. */
#define LISTENERS 8
#define FLIGHT 128
/* So many are asked, at equal distances, and so many are made, one after the other, beside the others. */
#define ASKED 100
#define FEW 100
/* The clients' queue pairs, and those of the server, which nobody has. */
#define CLIENT_QPN 0x100000
#define SERVER_QPN 0x900000

static uint32_t next_qpn;

/* --- commands, without the mappings of ../abi, which would cost more than what is measured --- */

/* Gives a command, which succeeds. Returns how long it took. */
static uint64_t timed(int fd, uint32_t command, const void *in, uint16_t in_size, uint16_t out_size)
{
	struct {
		struct rdma_ucm_cmd_hdr header;
		uint8_t in[400];
	} request = { .header = { .cmd = command, .in = in_size, .out = out_size } };
	ssize_t length = sizeof(request.header) + in_size;
	uint64_t start, end;
	ssize_t ret;

	REQUIRE(in_size <= sizeof(request.in));
	memcpy(request.in, in, in_size);
	start = now_ns();
	ret = write(fd, &request, length);
	end = now_ns();
	if (ret < 0) {
		fail(__FILE__, __LINE__, "command %u: %s", command, errno_name(errno));
		stop();
	}
	REQUIRE_EQ(length, ret);
	return end - start;
}

static uint32_t create(int fd)
{
	struct rdma_ucm_create_id_resp answer = { 0 };
	struct rdma_ucm_create_id request = { .uid = 1, .response = ptr(&answer), .ps = PS_TCP, .qp_type = QPT_RC };

	timed(fd, RDMA_USER_CM_CMD_CREATE_ID, &request, sizeof(request), sizeof(answer));
	return answer.id;
}

static void resolve(int fd, uint32_t id, const union addr *to)
{
	struct rdma_ucm_resolve_ip request = { .dst_addr = to->in6, .id = id, .timeout_ms = 10000 };

	timed(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &request, sizeof(request), 0);
}

static void find_route(int fd, uint32_t id)
{
	struct rdma_ucm_resolve_route request = { .id = id, .timeout_ms = 10000 };

	timed(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &request, sizeof(request), 0);
}

static struct rdma_ucm_conn_param imagined(void)
{
	struct rdma_ucm_conn_param param = conn_param();

	param.qp_num = next_qpn++;
	return param;
}

static void ask(int fd, uint32_t id)
{
	struct rdma_ucm_connect request = { .conn_param = imagined(), .id = id };

	timed(fd, RDMA_USER_CM_CMD_CONNECT, &request, sizeof(request), 0);
}

/* Accepts a request. */
static void accept_request(int fd, uint32_t id)
{
	struct rdma_ucm_accept request = { .uid = 1, .conn_param = imagined(), .id = id };

	timed(fd, RDMA_USER_CM_CMD_ACCEPT, &request, sizeof(request), 0);
}

/* Answers the answer. */
static void establish(int fd, uint32_t id)
{
	struct rdma_ucm_accept request = { .id = id };

	timed(fd, RDMA_USER_CM_CMD_ACCEPT, &request, sizeof(request), 0);
}

/* Waits for an event and reads it. Returns how long reading took. */
static uint64_t read_event(int fd, struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_get_event request = { .response = ptr(ev) };
	struct pollfd file = { .fd = fd, .events = POLLIN };

	REQUIRE_EQ(1, poll(&file, 1, 60000 * patience()));
	return timed(fd, RDMA_USER_CM_CMD_GET_EVENT, &request, sizeof(request), sizeof(*ev));
}

static uint64_t destroy(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp answer = { 0 };
	struct rdma_ucm_destroy_id request = { .response = ptr(&answer), .id = id };

	return timed(fd, RDMA_USER_CM_CMD_DESTROY_ID, &request, sizeof(request), sizeof(answer));
}

/* --- clients --- */

struct clients {
	int fd;
	const union addr *listeners;
	uint32_t *ids;
	unsigned int begun, established;
};

static void begin_client(struct clients *c)
{
	uint32_t id = create(c->fd);

	resolve(c->fd, id, &c->listeners[c->begun % LISTENERS]);
	c->ids[c->begun++] = id;
}

/* Connects until there are so many. */
static void connect_clients(struct clients *c, unsigned int count, unsigned int flight)
{
	struct rdma_ucm_event_resp ev;

	while (c->established < count) {
		while (c->begun < count && c->begun - c->established < flight)
			begin_client(c);
		read_event(c->fd, &ev);
		switch (ev.event) {
		case EV_ADDR_RESOLVED:
			find_route(c->fd, ev.id);
			break;
		case EV_ROUTE_RESOLVED:
			ask(c->fd, ev.id);
			break;
		case EV_CONNECT_RESPONSE:
			establish(c->fd, ev.id);
			c->established++;
			break;
		default:
			fail(__FILE__, __LINE__, "%s %d", event_name(ev.event), ev.status);
			stop();
		}
	}
}

/* Connects "count" clients. Then each "go" asks for one more, ASKED times, and after that for the end of one of these. */
static pid_t start_clients(const union addr *listeners, unsigned int count)
{
	struct clients c = { .listeners = listeners };
	pid_t pid = child();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	in_peer();
	next_qpn = CLIENT_QPN;
	c.fd = file();
	REQUIRE((c.ids = calloc(count + ASKED, sizeof(*c.ids))));
	connect_clients(&c, count, FLIGHT);
	for (unsigned int i = 1; i <= ASKED; i++) {
		sem_wait(&shared->go);
		connect_clients(&c, count + i, 1);
	}
	for (unsigned int i = 0; i < ASKED; i++) {
		sem_wait(&shared->go);
		REQUIRE_OK(disconnect_id(c.fd, c.ids[count + i]));
	}
	pause();
	return 0;
}

/* --- the server --- */

struct owner {
	int fd;
	union addr listeners[LISTENERS];
	uint32_t *ids;
	unsigned int established;
};

static uint64_t next_event(struct owner *s, struct rdma_ucm_event_resp *ev, enum event want)
{
	uint64_t took = read_event(s->fd, ev);

	REQUIRE_EQ(want, ev->event);
	return took;
}

static void serve(struct owner *s, unsigned int count)
{
	struct rdma_ucm_event_resp ev;

	while (s->established < count) {
		read_event(s->fd, &ev);
		if (ev.event == EV_CONNECT_REQUEST) {
			accept_request(s->fd, ev.id);
		} else {
			REQUIRE_EQ(EV_ESTABLISHED, ev.event);
			s->ids[s->established++] = ev.id;
		}
	}
}

static void listen_for_many(struct owner *s)
{
	for (int i = 0; i < LISTENERS; i++) {
		uint32_t id = REQUIRE_ID(create_id(s->fd, PS_TCP, 1));

		REQUIRE_OK(bind4(s->fd, id, ADDR4, 0));
		REQUIRE_OK(listen_id(s->fd, id, 1024));
		s->listeners[i] = addr4(ADDR4, bound_port(s->fd, id));
	}
}

static void print_median(const char *call, const char *how, uint64_t *took)
{
	printf("%s_%s=%llu\n", call, how, (unsigned long long)percentile(took, ASKED, 50));
}

/* The clients connect or disconnect once more; the event says so. */
static void ask_clients(void)
{
	sem_post(&shared->go);
}

static void time_connects(struct owner *s, const char *how)
{
	uint64_t request[ASKED], established[ASKED];
	struct rdma_ucm_event_resp ev;

	for (int i = 0; i < ASKED; i++) {
		ask_clients();
		request[i] = next_event(s, &ev, EV_CONNECT_REQUEST);
		accept_request(s->fd, ev.id);
		established[i] = next_event(s, &ev, EV_ESTABLISHED);
	}
	print_median("get_request", how, request);
	print_median("get_established", how, established);
}

static void time_queries(struct owner *s, const char *how, unsigned int count)
{
	static const struct {
		const char *name;
		uint32_t option;
	} options[] = {
		{ "query_addr", RDMA_USER_CM_QUERY_ADDR },
		{ "query_path", RDMA_USER_CM_QUERY_PATH },
		{ "query_gid", RDMA_USER_CM_QUERY_GID },
	};
	static uint8_t answer[1024];

	for (size_t option = 0; option < sizeof(options) / sizeof(options[0]); option++) {
		uint64_t took[ASKED];

		for (unsigned int i = 0; i < ASKED; i++) {
			struct rdma_ucm_query request = {
				.response = ptr(answer), .option = options[option].option,
				.id = s->ids[(uint64_t)i * count / ASKED],
			};

			took[i] = timed(s->fd, RDMA_USER_CM_CMD_QUERY, &request, sizeof(request), sizeof(answer));
		}
		print_median(options[option].name, how, took);
	}
}

/* The ends of connections that the clients have disconnected, and then of established ones. */
static void time_ends(struct owner *s, const char *how, unsigned int count)
{
	uint64_t disconnected[ASKED], told[ASKED], established[ASKED];
	struct rdma_ucm_event_resp ev;

	for (unsigned int i = 0; i < ASKED; i++) {
		ask_clients();
		told[i] = next_event(s, &ev, EV_DISCONNECTED);
		/* The client, too, is told. On one processor its time would be counted as that of the call. */
		usleep(2000);
		disconnected[i] = destroy(s->fd, ev.id);
	}
	for (unsigned int i = 0; i < ASKED; i++)
		established[i] = destroy(s->fd, s->ids[(uint64_t)i * count / ASKED]);
	print_median("get_disconnected", how, told);
	print_median("destroy_disconnected", how, disconnected);
	print_median("destroy_established", how, established);
}

static void measure(unsigned int count, const char *how)
{
	struct owner s = { .fd = file() };
	pid_t clients;

	next_qpn = SERVER_QPN;
	REQUIRE((s.ids = calloc(count, sizeof(*s.ids))));
	listen_for_many(&s);
	clients = start_clients(s.listeners, count);
	serve(&s, count);
	time_queries(&s, how, count);
	time_connects(&s, how);
	time_ends(&s, how, count);
	kill_child(clients);
	close(s.fd);
	free(s.ids);
}

/* Calls of a server beside FEW connections, and beside "COUNT". */
ACT(connections, "COUNT")
{
	share();
	measure(FEW, "few");
	measure(strtoul(arguments[0], NULL, 0), "many");
}
