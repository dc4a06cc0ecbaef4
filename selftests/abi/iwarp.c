// SPDX-License-Identifier: GPL-2.0
#include "iwarp.h"

struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qps[8];
static int n_qps;

void need_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (strcmp(ibv_get_device_name(list[i]), "siw0") == 0)
			device = ibv_open_device(list[i]);
	if (!device)
		skip("no iWARP device siw0: the suite iwarp makes it");
	pd = ibv_alloc_pd(device);
	cq = ibv_create_cq(device, 10, NULL, NULL, 0);
	REQUIRE(pd && cq);
}

struct ibv_qp *new_qp(void)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	REQUIRE(qp && n_qps < 8);
	qps[n_qps++] = qp;
	return qp;
}

void release_device(void)
{
	while (n_qps > 0)
		CHECK_EQ(0, ibv_destroy_qp(qps[--n_qps]));
	CHECK_EQ(0, ibv_destroy_cq(cq));
	CHECK_EQ(0, ibv_dealloc_pd(pd));
	CHECK_EQ(0, ibv_close_device(device));
	device = NULL;
}

struct rdma_ucm_conn_param with_qp(void)
{
	struct rdma_ucm_conn_param param = conn_param();

	param.qp_num = new_qp()->qp_num;
	return param;
}

void set_data(struct rdma_ucm_conn_param *param, uint8_t len)
{
	param->private_data_len = len;
	for (int i = 0; i < len; i++)
		param->private_data[i] = i ^ 0x5a;
}

void check_data(const struct rdma_ucm_event_resp *ev, uint8_t len)
{
	struct rdma_ucm_conn_param want = { 0 };

	set_data(&want, len);
	CHECK_EQ(len, ev->param.conn.private_data_len);
	CHECK_MEM(want.private_data, ev->param.conn.private_data, sizeof(want.private_data));
}

void mac_gid(const char *name, uint8_t gid[16])
{
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/address", name);
	f = fopen(path, "r");
	REQUIRE(f);
	memset(gid, 0, 16);
	REQUIRE_EQ(6, fscanf(f, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &gid[0], &gid[1], &gid[2],
			     &gid[3], &gid[4], &gid[5]));
	fclose(f);
}

uint32_t bound(int f, uint16_t ps, uint16_t port)
{
	uint32_t id = REQUIRE_ID(create_id(f, ps, 0x77));

	REQUIRE_OK(bind4(f, id, IWARP4, port));
	return id;
}

uint32_t listening(int f, uint16_t port, int backlog)
{
	uint32_t id = bound(f, PS_TCP, port);

	REQUIRE_OK(listen_id(f, id, backlog));
	return id;
}

uint32_t listening_anywhere(int f, uint16_t port)
{
	union addr any = addr4("0.0.0.0", port);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0x99));

	REQUIRE_OK(bind_addr(f, id, &any));
	REQUIRE_OK(listen_id(f, id, 0));
	return id;
}

uint32_t asking(int f, uint16_t port)
{
	struct rdma_ucm_conn_param param = with_qp();
	union addr dst = addr4(IWARP4, port);
	uint32_t id = routed_client(f, port, &dst);

	REQUIRE_OK(connect_id(f, id, &param));
	return id;
}

void asked(struct ends *e, uint16_t port)
{
	union addr dst = addr4(IWARP4, port);

	e->s = fd();
	e->c = fd();
	if (!e->cparam.valid)
		e->cparam = with_qp();
	e->sparam = with_qp();
	e->listener = listening(e->s, port, 0);
	e->client = routed_client(e->c, 0x33, &dst);
	REQUIRE_OK(connect_id(e->c, e->client, &e->cparam));
	NEED_EVENT(e->s, EV_CONNECT_REQUEST, &e->request);
	e->server = e->request.id;
}

void established(struct ends *e, uint16_t port)
{
	asked(e, port);
	REQUIRE_OK(accept_id(e->s, e->server, 0x22, &e->sparam));
	NEED_EVENT(e->s, EV_ESTABLISHED, &e->sev);
	NEED_EVENT(e->c, EV_ESTABLISHED, &e->cev);
}
