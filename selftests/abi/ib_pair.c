// SPDX-License-Identifier: GPL-2.0
/* Two ends of a connection over InfiniBand. */
#include "ib.h"

void ib_listen(struct pair *p, const union addr *a)
{
	/* Requests to native addresses are of the first namespace. */
	if (a->sa.sa_family != AF_IB)
		in_peer();
	pair_listen(p, a);
	if (a->sa.sa_family != AF_IB)
		at_home();
}

void ib_resolved(struct pair *p, const union addr *src)
{
	p->cfd = fd();
	p->client = REQUIRE_ID(create_id_type(p->cfd, p->ps, p->qp_type, p->client_uid));
	NEED_ADDR(p->cfd, p->client, src, &p->addr);
}

void ib_routed(struct pair *p, const union addr *src)
{
	ib_resolved(p, src);
	NEED_ROUTE(p->cfd, p->client);
}

void ib_requested(struct pair *p)
{
	REQUIRE_OK(connect_id(p->cfd, p->client, &p->cparam));
	NEED_EVENT(p->sfd, EV_CONNECT_REQUEST, &p->request);
	p->server = p->request.id;
}

void ib_accepted(struct pair *p)
{
	REQUIRE_OK(accept_id(p->sfd, p->server, p->server_uid, &p->sparam));
	NEED_EVENT(p->cfd, EV_CONNECT_RESPONSE, &p->response);
}

void ib_established(struct pair *p)
{
	REQUIRE_OK(accept_id(p->cfd, p->client, 0, NULL));
	NEED_EVENT(p->sfd, EV_ESTABLISHED, NULL);
}

void ib_pair_routed(struct pair *p, const union addr *a, const union addr *src)
{
	need_ib();
	ib_listen(p, a);
	ib_routed(p, src);
}

void ib_pair_established(struct pair *p, const union addr *a, const union addr *src)
{
	ib_pair_routed(p, a, src);
	ib_requested(p);
	ib_accepted(p);
	ib_established(p);
}

struct ib_uverbs_qp_attr qp_attr(int f, uint32_t id, uint32_t state)
{
	struct ib_uverbs_qp_attr attr;

	REQUIRE_OK(init_qp_attr(f, id, state, &attr));
	CHECK_EQ(state, attr.qp_state);
	return attr;
}

struct ib_uverbs_ah_attr way_to(const char *device)
{
	return (struct ib_uverbs_ah_attr){
		.dlid = port_of(device).lid, .static_rate = 16, .port_num = 1,
	};
}

void fill_data(struct rdma_ucm_conn_param *param, uint8_t len)
{
	/* Data that begin with anything else could be a header of addresses. */
	for (int i = 0; i < 256; i++)
		param->private_data[i] = i >= len ? 0xdd : i < 2 ? 0 : 0x40 + i;
	param->private_data_len = len;
}

void check_request(const char *file, int line, const struct pair *p, uint8_t len)
{
	struct rdma_ucm_event_resp want = {
		.uid = p->listener_uid, .id = p->request.id, .event = EV_CONNECT_REQUEST,
	};
	struct rdma_ucm_conn_param *param = &want.param.conn;

	param->qp_num = p->cparam.qp_num;
	memcpy(param->private_data, p->cparam.private_data, p->cparam.private_data_len);
	param->private_data_len = len;
	param->responder_resources = p->cparam.initiator_depth;
	param->initiator_depth = p->cparam.responder_resources;
	param->flow_control = p->cparam.flow_control;
	param->retry_count = p->cparam.retry_count;
	param->rnr_retry_count = p->cparam.rnr_retry_count;
	param->srq = p->cparam.srq;
	check_mem(file, line, "request", &want, &p->request, sizeof(want));
}

int ib_listener(uint16_t ps, const union addr *a)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, ps, 1));

	REQUIRE_OK(bind_addr(f, id, a));
	REQUIRE_OK(listen_id(f, id, 0));
	return f;
}

void check_rejected(const char *file, int line, const union addr *dst, const union addr *src, uint16_t ps,
		    int reason)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, ps, 0x55));

	NEED_ADDR(f, id, src, dst);
	NEED_ROUTE(f, id);
	REQUIRE_OK(connect_id(f, id, &param));
	need_event(file, line, f, ps == PS_UDP ? EV_UNREACHABLE : EV_REJECTED, &ev);
	check_eq(file, line, "reason", reason, ev.status);
	close(f);
}
