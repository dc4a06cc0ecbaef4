// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of a server that clients write and read by librpma.
 *
 *	rpma ADDRESS PORT			serves, one connection after the other
 *	rpma -c [-w] ADDRESS PORT [ROUNDS]	writes, flushes, has the server look, and reads
 *
 * The client ends with "done"; with -w it waits before that until the connection ends, and says how. The server says
 * how each connection ended.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <librpma.h>

/* All of it fits into the queue of an interface, which is 1,000 packets. */
#define SIZE (1 << 18)
/* The part of a write and of a read. */
#define PART (SIZE / 8)
/* A message is at the end of the memory. */
#define MESSAGE 64

static struct rpma_peer *peer;
static struct rpma_conn_cfg *separate;
static struct rpma_mr_local *memory;
static uint8_t *data;
static const char *address, *port;

static void check(const char *what, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, rpma_err_2str(ret));
	exit(1);
}

static void wrong(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static uint32_t sum(const uint8_t *bytes, size_t size)
{
	uint32_t all = 1;

	for (size_t i = 0; i < size; i++)
		all = all * 31 + bytes[i];
	return all;
}

/* The memory that all connections share, and after it the message. */
static void set_up(enum rpma_util_ibv_context_type where, int usage)
{
	struct ibv_context *device;

	check("rpma_utils_get_ibv_context", rpma_utils_get_ibv_context(address, where, &device));
	check("rpma_peer_new", rpma_peer_new(device, &peer));
	data = aligned_alloc(4096, SIZE + 4096);
	memset(data, 0, SIZE + 4096);
	check("rpma_mr_reg", rpma_mr_reg(peer, data, SIZE + 4096, usage, &memory));
	/* A completion queue for what is received. */
	check("rpma_conn_cfg_new", rpma_conn_cfg_new(&separate));
	check("rpma_conn_cfg_set_rcq_size", rpma_conn_cfg_set_rcq_size(separate, 4));
}

static enum rpma_conn_event event(struct rpma_conn *conn)
{
	enum rpma_conn_event event;

	check("rpma_conn_next_event", rpma_conn_next_event(conn, &event));
	return event;
}

static struct rpma_cq *sent(struct rpma_conn *conn)
{
	struct rpma_cq *cq;

	check("rpma_conn_get_cq", rpma_conn_get_cq(conn, &cq));
	return cq;
}

static struct rpma_cq *received(struct rpma_conn *conn)
{
	struct rpma_cq *cq;

	check("rpma_conn_get_rcq", rpma_conn_get_rcq(conn, &cq));
	return cq;
}

/* There is never more than one request that has a completion. */
static void complete(struct rpma_cq *cq)
{
	struct ibv_wc wc;
	int ret;

	while ((ret = rpma_cq_get_wc(cq, 1, &wc, NULL)) == RPMA_E_NO_COMPLETION)
		check("rpma_cq_wait", rpma_cq_wait(cq));
	check("rpma_cq_get_wc", ret);
	if (wc.status != IBV_WC_SUCCESS)
		wrong("a request failed");
}

static void post_receive(struct rpma_conn *conn)
{
	check("rpma_recv", rpma_recv(conn, memory, SIZE, MESSAGE, NULL));
}

static void say(struct rpma_conn *conn, const char *text)
{
	snprintf((char *)data + SIZE + MESSAGE, MESSAGE, "%s", text);
	check("rpma_send", rpma_send(conn, memory, SIZE + MESSAGE, MESSAGE, RPMA_F_COMPLETION_ALWAYS, NULL));
	complete(sent(conn));
}

/* The client has said what the memory must be; the server says what it is. */
static void answer(struct rpma_conn *conn)
{
	char text[MESSAGE];

	snprintf(text, sizeof(text), "%u", sum(data, SIZE));
	if (strcmp(text, (char *)data + SIZE))
		wrong("the client wrote something else");
	post_receive(conn);
	say(conn, text);
}

static void serve(struct rpma_conn_req *request, struct rpma_conn_private_data *descriptor)
{
	struct rpma_conn *conn;
	enum rpma_conn_event how;
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };

	check("rpma_conn_req_recv", rpma_conn_req_recv(request, memory, SIZE, MESSAGE, NULL));
	check("rpma_conn_req_connect", rpma_conn_req_connect(&request, descriptor, &conn));
	how = event(conn);
	if (how != RPMA_CONN_ESTABLISHED) {
		printf("%s\n", rpma_utils_conn_event_2str(how));
		check("rpma_conn_delete", rpma_conn_delete(&conn));
		return;
	}
	check("rpma_cq_get_fd", rpma_cq_get_fd(received(conn), &fds[0].fd));
	check("rpma_conn_get_event_fd", rpma_conn_get_event_fd(conn, &fds[1].fd));
	while (poll(fds, 2, -1) > 0 && !fds[1].revents) {
		struct ibv_wc wc;

		check("rpma_cq_wait", rpma_cq_wait(received(conn)));
		while (!rpma_cq_get_wc(received(conn), 1, &wc, NULL)) {
			/* The queue pair is told before the connection is, whose end is awaited then. */
			if (wc.status == IBV_WC_SUCCESS)
				answer(conn);
			else
				fds[0].fd = -1;
		}
	}
	how = event(conn);
	printf("%s\n", rpma_utils_conn_event_2str(how));
	check("rpma_conn_disconnect", rpma_conn_disconnect(conn));
	check("rpma_conn_delete", rpma_conn_delete(&conn));
}

static void server(void)
{
	struct rpma_conn_private_data descriptor;
	struct rpma_ep *endpoint;
	size_t size;

	set_up(RPMA_UTIL_IBV_CONTEXT_LOCAL, RPMA_MR_USAGE_READ_SRC | RPMA_MR_USAGE_WRITE_DST | RPMA_MR_USAGE_SEND |
	       RPMA_MR_USAGE_RECV | RPMA_MR_USAGE_FLUSH_TYPE_VISIBILITY);
	check("rpma_mr_get_descriptor_size", rpma_mr_get_descriptor_size(memory, &size));
	descriptor.ptr = malloc(size);
	descriptor.len = size;
	check("rpma_mr_get_descriptor", rpma_mr_get_descriptor(memory, descriptor.ptr));
	check("rpma_ep_listen", rpma_ep_listen(peer, address, port, &endpoint));
	for (;;) {
		struct rpma_conn_req *request;

		check("rpma_ep_next_conn_req", rpma_ep_next_conn_req(endpoint, separate, &request));
		serve(request, &descriptor);
	}
}

static void round_trip(struct rpma_conn *conn, struct rpma_mr_remote *remote)
{
	uint8_t *wanted = malloc(SIZE);
	char text[MESSAGE];

	for (size_t i = 0; i < SIZE; i++)
		data[i] = wanted[i] = random();
	for (size_t at = 0; at < SIZE; at += PART)
		check("rpma_write", rpma_write(conn, remote, at, memory, at, PART, RPMA_F_COMPLETION_ON_ERROR, NULL));
	check("rpma_flush", rpma_flush(conn, remote, 0, SIZE, RPMA_FLUSH_TYPE_VISIBILITY, RPMA_F_COMPLETION_ALWAYS, NULL));
	complete(sent(conn));

	snprintf(text, sizeof(text), "%u", sum(wanted, SIZE));
	say(conn, text);
	complete(received(conn));
	if (strcmp(text, (char *)data + SIZE))
		wrong("the server has something else");
	post_receive(conn);

	memset(data, 0, SIZE);
	for (size_t at = 0; at < SIZE; at += PART) {
		check("rpma_read", rpma_read(conn, memory, at, remote, at, PART, RPMA_F_COMPLETION_ALWAYS, NULL));
		complete(sent(conn));
	}
	if (memcmp(data, wanted, SIZE))
		wrong("read something else");
	free(wanted);
}

static void client(int rounds, bool waits)
{
	struct rpma_conn_private_data descriptor;
	struct rpma_conn_req *request;
	struct rpma_mr_remote *remote;
	enum rpma_conn_event how;
	struct rpma_conn *conn;

	set_up(RPMA_UTIL_IBV_CONTEXT_REMOTE, RPMA_MR_USAGE_READ_DST | RPMA_MR_USAGE_WRITE_SRC | RPMA_MR_USAGE_SEND |
	       RPMA_MR_USAGE_RECV);
	check("rpma_conn_req_new", rpma_conn_req_new(peer, address, port, separate, &request));
	check("rpma_conn_req_recv", rpma_conn_req_recv(request, memory, SIZE, MESSAGE, NULL));
	check("rpma_conn_req_connect", rpma_conn_req_connect(&request, NULL, &conn));
	how = event(conn);
	if (how != RPMA_CONN_ESTABLISHED)
		wrong(rpma_utils_conn_event_2str(how));
	check("rpma_conn_get_private_data", rpma_conn_get_private_data(conn, &descriptor));
	check("rpma_mr_remote_from_descriptor", rpma_mr_remote_from_descriptor(descriptor.ptr, descriptor.len, &remote));
	for (int i = 0; i < rounds; i++)
		round_trip(conn, remote);
	if (waits) {
		printf("waits\n");
		printf("%s\n", rpma_utils_conn_event_2str(event(conn)));
	} else {
		check("rpma_conn_disconnect", rpma_conn_disconnect(conn));
		if (event(conn) != RPMA_CONN_CLOSED)
			wrong("not closed");
	}
	check("rpma_mr_remote_delete", rpma_mr_remote_delete(&remote));
	check("rpma_conn_delete", rpma_conn_delete(&conn));
	check("rpma_mr_dereg", rpma_mr_dereg(&memory));
	check("rpma_peer_delete", rpma_peer_delete(&peer));
	printf("done\n");
}

int main(int argc, char **argv)
{
	bool is_client = false, waits = false;
	int option;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((option = getopt(argc, argv, "cw")) != -1) {
		if (option == 'c')
			is_client = true;
		else if (option == 'w')
			waits = true;
		else
			return 2;
	}
	if (argc - optind < 2)
		return 2;
	address = argv[optind];
	port = argv[optind + 1];
	srandom(getpid());
	if (is_client)
		client(argc - optind > 2 ? atoi(argv[optind + 2]) : 3, waits);
	else
		server();
	return 0;
}
