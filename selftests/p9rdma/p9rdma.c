// SPDX-License-Identifier: GPL-2.0
/*
 * 9P over RDMA in front of a server of 9P that has only TCP: what comes in one message is passed on,
 * and each answer goes back in one.
 *
 *   p9rdma ADDRESS PORT SERVER-PORT
 *
 * The server is at 127.0.0.1. Connections are served one after the other; each has its own of TCP.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

/* Requests that a client has under way at most (P9_RDMA_RQ_DEPTH of <net/9p/transport.h>). */
#define DEPTH 32
/* The longest message: the mount says msize=65536. */
#define MESSAGE 65536
/* Its length comes first, four bytes, least significant first, and counts itself. */
#define LENGTH 4

/* Requests, and the answer. */
static uint8_t messages[DEPTH + 1][MESSAGE];

static int connect_tcp(uint16_t port)
{
	struct sockaddr_in server = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (sock < 0 || connect(sock, (struct sockaddr *)&server, sizeof(server)))
		err(1, "the server at port %u", port);
	return sock;
}

static int send_all(int sock, const uint8_t *data, size_t length)
{
	while (length) {
		ssize_t sent = send(sock, data, length, MSG_NOSIGNAL);

		if (sent <= 0)
			return -1;
		data += sent;
		length -= sent;
	}
	return 0;
}

/* Passes on the requests that have come; fails when the connection is over. */
static int requests(struct rdma_cm_id *id, struct ibv_mr *mr, int sock)
{
	struct ibv_wc wc;

	/* Armed before it is looked, so that none is missed. */
	if (ibv_req_notify_cq(id->recv_cq, 0))
		return -1;
	while (ibv_poll_cq(id->recv_cq, 1, &wc) == 1) {
		uint8_t *message = (uint8_t *)(uintptr_t)wc.wr_id;

		if (wc.status != IBV_WC_SUCCESS || send_all(sock, message, wc.byte_len) ||
		    rdma_post_recv(id, message, message, MESSAGE, mr))
			return -1;
	}
	return 0;
}

/* Sends an answer back; fails when the connection is over. */
static int answer(struct rdma_cm_id *id, struct ibv_mr *mr, int sock)
{
	uint8_t *message = messages[DEPTH];
	struct ibv_wc wc;
	uint32_t length;

	if (recv(sock, message, LENGTH, MSG_WAITALL) != LENGTH)
		return -1;
	memcpy(&length, message, LENGTH);
	length = le32toh(length);
	if (length < LENGTH || length > MESSAGE)
		errx(1, "an answer of %u bytes", length);
	if (recv(sock, message + LENGTH, length - LENGTH, MSG_WAITALL) !=
	    (ssize_t)(length - LENGTH))
		return -1;
	if (rdma_post_send(id, NULL, message, length, mr, IBV_SEND_SIGNALED))
		return -1;
	return rdma_get_send_comp(id, &wc) == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -1;
}

static void serve(struct rdma_cm_id *id, uint16_t port)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, messages, sizeof(messages));
	int sock = connect_tcp(port);
	struct pollfd fds[] = {
		{ .fd = id->channel->fd, .events = POLLIN },
		{ .fd = id->recv_cq_channel->fd, .events = POLLIN },
		{ .fd = sock, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;
	int i;

	if (!mr)
		err(1, "rdma_reg_msgs");
	for (i = 0; i < DEPTH; i++)
		if (rdma_post_recv(id, messages[i], messages[i], MESSAGE, mr))
			err(1, "rdma_post_recv");
	if (rdma_accept(id, NULL)) {
		warn("rdma_accept");
		goto out;
	}
	while (!requests(id, mr, sock)) {
		if (poll(fds, 3, -1) < 0)
			err(1, "poll");
		/* Any event of the connection is its end. */
		if (fds[0].revents)
			break;
		if (fds[1].revents) {
			if (ibv_get_cq_event(id->recv_cq_channel, &cq, &context))
				break;
			ibv_ack_cq_events(cq, 1);
		}
		if (fds[2].revents && answer(id, mr, sock))
			break;
	}
	rdma_disconnect(id);
out:
	close(sock);
	rdma_dereg_mr(mr);
	rdma_destroy_ep(id);
}

int main(int argc, char **argv)
{
	struct rdma_addrinfo hints = { .ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP };
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 1, .max_recv_wr = DEPTH, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *listener, *id;
	struct rdma_addrinfo *at;

	if (argc != 4) {
		fprintf(stderr, "usage: p9rdma ADDRESS PORT SERVER-PORT\n");
		return 2;
	}
	if (rdma_getaddrinfo(argv[1], argv[2], &hints, &at))
		err(1, "%s port %s", argv[1], argv[2]);
	if (rdma_create_ep(&listener, at, NULL, &attr))
		err(1, "rdma_create_ep");
	if (rdma_listen(listener, 0))
		err(1, "rdma_listen");
	while (!rdma_get_request(listener, &id))
		serve(id, atoi(argv[3]));
	err(1, "rdma_get_request");
}
