// SPDX-License-Identifier: GPL-2.0
/* Connections of real queue pairs between the namespaces. */
#include "ends.h"
#include "wire.h"

/* libibverbs has this function, and installs no header for it. */
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);

struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **device = list;
	struct ibv_context *context = NULL;

	REQUIRE(list);
	while (*device && strcmp(ibv_get_device_name(*device), name))
		device++;
	REQUIRE(*device && (context = ibv_open_device(*device)));
	ibv_free_device_list(list);
	return context;
}

/* --- hosts --- */

struct hosts hosts(const char *family)
{
	struct hosts h;

	for (int far = 0; far < 2; far++) {
		struct ibv_context *context = open_device(DEVICE_AT(far));

		h.guid[far] = be64toh(ibv_get_device_guid(context->device));
		ibv_close_device(context);
		if (family[0] == '4')
			gid_of(h.gid[far], far ? FAR4 : ADDR4);
		else
			gid_of(h.gid[far], far ? FAR6 : ADDR6);
	}
	return h;
}

/* Moves this thread to the namespace of a host. */
static void go_to(bool far)
{
	in_peer();
	if (!far)
		at_home();
}

union addr listen_at(int fd, const struct hosts *h, bool far)
{
	const char *v4 = far ? FAR4 : ADDR4, *v6 = far ? FAR6 : ADDR6;
	union addr a = is_v4(h->gid[far]) ? addr4(v4, 0) : addr6(v6, 0);
	uint32_t id;
	uint16_t port;

	go_to(far);
	id = REQUIRE_ID(create_id(fd, PS_TCP, 1));
	REQUIRE_OK(bind_addr(fd, id, &a));
	REQUIRE_OK(listen_id(fd, id, 1024));
	go_to(false);
	port = bound_port(fd, id);
	return is_v4(h->gid[far]) ? addr4(v4, port) : addr6(v6, port);
}

uint32_t client_at(int fd, const union addr *dst, bool far)
{
	uint32_t id;

	go_to(far);
	id = routed_client(fd, 1, dst);
	go_to(false);
	return id;
}

uint32_t client_from(int fd, const union addr *src, const union addr *dst)
{
	uint32_t id;

	go_to(true);
	id = REQUIRE_ID(create_id(fd, PS_TCP, 1));
	NEED_ADDR(fd, id, src, dst);
	REQUIRE_OK(resolve_route(fd, id, 2000));
	NEED_EVENT(fd, EV_ROUTE_RESOLVED, NULL);
	go_to(false);
	return id;
}

void settle(const struct hosts *h, bool far)
{
	struct rdma_ucm_conn_param param = conn_param();
	int server = file(), client = file();
	union addr a = listen_at(server, h, far);
	struct rdma_ucm_event_resp ev;

	REQUIRE_OK(connect_id(client, client_at(client, &a, !far), &param));
	REQUIRE(wait_event(server, &ev, 60000 * patience()) >= 0);
	close(client);
	close(server);
}

/* --- ends --- */

static void make_end(struct end *e, const char *device)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_context *context = open_device(device);
	struct ibv_pd *pd = ibv_alloc_pd(context);

	REQUIRE(pd);
	e->fd = file();
	REQUIRE((e->cq = ibv_create_cq(context, 8, NULL, NULL, 0)));
	attr.send_cq = attr.recv_cq = e->cq;
	REQUIRE((e->qp = ibv_create_qp(pd, &attr)));
	REQUIRE((e->mr = ibv_reg_mr(pd, e->buffer, sizeof(e->buffer), IBV_ACCESS_LOCAL_WRITE)));
}

static void make_ready(struct end *e)
{
	for (int state = IBV_QPS_INIT; state <= IBV_QPS_RTS; state++) {
		struct ib_uverbs_qp_attr from = { 0 };
		struct ibv_qp_attr attr = { .qp_state = state };

		REQUIRE_OK(init_qp_attr(e->fd, e->id, state, &from));
		ibv_copy_qp_attr_from_kern(&attr, &from);
		REQUIRE(ibv_modify_qp(e->qp, &attr, from.qp_attr_mask) == 0);
	}
}

union addr connect_ends(struct end ends[2], const struct hosts *h)
{
	struct end *here = &ends[0], *there = &ends[1];
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	union addr a;

	make_end(here, DEVICE_AT(false));
	make_end(there, DEVICE_AT(true));
	a = listen_at(here->fd, h, false);
	there->id = client_at(there->fd, &a, true);
	param.qp_num = there->qp->qp_num;
	REQUIRE_OK(connect_id(there->fd, there->id, &param));
	NEED_EVENT(here->fd, EV_CONNECT_REQUEST, &ev);
	here->id = ev.id;
	make_ready(here);
	param.qp_num = here->qp->qp_num;
	REQUIRE_OK(accept_id(here->fd, here->id, 2, &param));
	NEED_EVENT(there->fd, EV_CONNECT_RESPONSE, NULL);
	make_ready(there);
	REQUIRE_OK(accept_id(there->fd, there->id, 0, NULL));
	NEED_EVENT(here->fd, EV_ESTABLISHED, NULL);
	return a;
}

static bool completed(struct end *e)
{
	struct ibv_wc wc;
	int got = 0;

	for (int i = 0; i < 5000 * patience() && (got = ibv_poll_cq(e->cq, 1, &wc)) == 0; i++)
		usleep(1000);
	return got == 1 && wc.status == IBV_WC_SUCCESS;
}

bool exchange_data(struct end ends[2])
{
	bool done = true;

	for (int from = 0; from < 2 && done; from++) {
		struct end *source = &ends[from], *sink = &ends[!from];
		struct ibv_sge out = { (uintptr_t)source->buffer, 1, source->mr->lkey };
		struct ibv_sge in = { (uintptr_t)(sink->buffer + 1), 1, sink->mr->lkey };
		struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
		struct ibv_send_wr send = {
			.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		}, *bad_send;

		source->buffer[0]++;
		done = ibv_post_recv(sink->qp, &recv, &bad_recv) == 0 &&
		       ibv_post_send(source->qp, &send, &bad_send) == 0 &&
		       completed(source) && completed(sink) && sink->buffer[1] == source->buffer[0];
	}
	return done;
}

int ended(struct end ends[2])
{
	struct pollfd files[2] = { { ends[0].fd, POLLIN }, { ends[1].fd, POLLIN } };
	struct rdma_ucm_event_resp ev;
	int number = 0;

	/* C does not handle messages in turn. */
	poll(files, 2, (is_rust() ? 300 : 10000) * patience());
	for (int i = 0; i < 2; i++)
		if (wait_event(ends[i].fd, &ev, 300 * patience()) >= 0) {
			fprintf(stderr, "%s: %s %d\n", i ? "there" : "here", event_name(ev.event), ev.status);
			number++;
		}
	return number;
}

bool close_ends(struct end ends[2])
{
	struct rdma_ucm_event_resp ev;
	bool told = true;

	for (int i = 0; i < 2; i++) {
		disconnect_id(ends[!i].fd, ends[!i].id);
		told = told && wait_event(ends[i].fd, &ev, 5000 * patience()) >= 0 && ev.event == EV_DISCONNECTED;
	}
	return told;
}
