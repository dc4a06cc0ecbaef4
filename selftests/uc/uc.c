// SPDX-License-Identifier: GPL-2.0
/*
 * An unreliable connection (UC) between two queue pairs, and a word in either direction.
 *
 *	uc ADDRESS PORT		serves one connection
 *	uc -c ADDRESS PORT	connects
 *
 * The id has the port space RDMA_PS_IB, in which the type of the queue pair is free.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define WORD_LEN 16

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void check(const char *what, int ret)
{
	if (ret)
		die(what);
}

static void complete(const char *what, int (*next)(struct rdma_cm_id *id, struct ibv_wc *wc),
		     struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	if (next(id, &wc) != 1)
		die(what);
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "%s: %s\n", what, ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static struct ibv_mr *word_memory(struct rdma_cm_id *id, char *word)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, word, WORD_LEN);

	if (!mr)
		die("rdma_reg_msgs");
	return mr;
}

static void say(struct rdma_cm_id *id, char *word, struct ibv_mr *mr)
{
	check("rdma_post_send", rdma_post_send(id, NULL, word, WORD_LEN, mr, IBV_SEND_SIGNALED));
	complete("send", rdma_get_send_comp, id);
}

static void hear(struct rdma_cm_id *id, const char *heard, const char *expected)
{
	complete("receive", rdma_get_recv_comp, id);
	if (strcmp(heard, expected)) {
		fprintf(stderr, "heard something else than %s\n", expected);
		exit(1);
	}
}

static void has_uc(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	check("ibv_query_qp", ibv_query_qp(id->qp, &attr, IBV_QP_STATE, &init));
	if (init.qp_type != IBV_QPT_UC || attr.qp_state != IBV_QPS_RTS) {
		fprintf(stderr, "queue pair of type %d in state %d\n", init.qp_type, attr.qp_state);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	int is_client = argc == 4 && !strcmp(argv[1], "-c");
	struct ibv_qp_init_attr init = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UC,
		.sq_sig_all = 1,
	};
	struct rdma_addrinfo hints = {
		.ai_flags = is_client ? 0 : RAI_PASSIVE,
		.ai_port_space = RDMA_PS_IB,
		.ai_qp_type = IBV_QPT_UC,
	};
	char mine[WORD_LEN] = "from the server", theirs[WORD_LEN] = "";
	const char *expected = "from the client";
	struct rdma_cm_id *listener = NULL, *id;
	struct ibv_mr *send_mr, *recv_mr;
	struct rdma_addrinfo *info;

	if (argc != 3 + is_client) {
		fprintf(stderr, "usage: uc [-c] ADDRESS PORT\n");
		return 2;
	}
	if (is_client) {
		strcpy(mine, "from the client");
		expected = "from the server";
	}
	check("rdma_getaddrinfo", rdma_getaddrinfo(argv[1 + is_client], argv[2 + is_client], &hints, &info));
	if (is_client) {
		check("rdma_create_ep", rdma_create_ep(&id, info, NULL, &init));
	} else {
		check("rdma_create_ep", rdma_create_ep(&listener, info, NULL, &init));
		check("rdma_listen", rdma_listen(listener, 0));
		check("rdma_get_request", rdma_get_request(listener, &id));
	}
	send_mr = word_memory(id, mine);
	recv_mr = word_memory(id, theirs);
	check("rdma_post_recv", rdma_post_recv(id, NULL, theirs, WORD_LEN, recv_mr));
	if (is_client)
		check("rdma_connect", rdma_connect(id, NULL));
	else
		check("rdma_accept", rdma_accept(id, NULL));
	has_uc(id);
	if (is_client) {
		say(id, mine, send_mr);
		hear(id, theirs, expected);
	} else {
		hear(id, theirs, expected);
		say(id, mine, send_mr);
	}
	/* The client disconnects, which the server hears of. */
	if (is_client) {
		check("rdma_disconnect", rdma_disconnect(id));
	} else {
		struct rdma_cm_event *event;

		check("rdma_get_cm_event", rdma_get_cm_event(id->channel, &event));
		if (event->event != RDMA_CM_EVENT_DISCONNECTED) {
			fprintf(stderr, "%s\n", rdma_event_str(event->event));
			return 1;
		}
		rdma_ack_cm_event(event);
		rdma_disconnect(id);
	}
	rdma_dereg_mr(send_mr);
	rdma_dereg_mr(recv_mr);
	rdma_destroy_ep(id);
	if (listener)
		rdma_destroy_ep(listener);
	rdma_freeaddrinfo(info);
	puts("done");
	return 0;
}
