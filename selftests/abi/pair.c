// SPDX-License-Identifier: GPL-2.0
/*
 * A connection on the loopback path, step by step, without queue pairs: the CM
 * does not look whether a number is one of a real queue pair.
 */
#include "abi.h"

uint32_t fake_qpn(void)
{
	static uint32_t n;

	/*
	 * Far away from the device's own numbers, and never the same twice: two
	 * connections with one (peer, number) are taken for a stale one.
	 */
	return 0x400000 + (((uint32_t)getpid() & 0x7ff) << 11) + (n++ & 0x7ff);
}

struct rdma_ucm_conn_param conn_param(void)
{
	return (struct rdma_ucm_conn_param){
		.qp_num = fake_qpn(),
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7,
		.valid = 1,
	};
}

union addr any_port4(void)
{
	return addr4(ADDR4, 0);
}

void pair_listen(struct pair *p, const union addr *a)
{
	struct rdma_ucm_query_addr_resp resp;

	p->sfd = cm_open(O_RDWR | O_NONBLOCK);
	p->listener_uid = p->listener_uid ?: 0x1111;
	p->server_uid = p->server_uid ?: 0x2222;
	p->client_uid = p->client_uid ?: 0x3333;
	p->cparam = conn_param();
	p->sparam = conn_param();
	p->ps = p->ps ?: PS_TCP;
	/* XRC has a type of its own at either end. */
	if (!p->listener_type)
		p->listener_type = p->qp_type == QPT_XRC_INI ? QPT_XRC_TGT : p->qp_type;
	p->listener = REQUIRE_ID(create_id_type(p->sfd, p->ps, p->listener_type,
						p->listener_uid));
	REQUIRE_OK(bind_addr(p->sfd, p->listener, a));
	REQUIRE_OK(listen_id(p->sfd, p->listener, 0));
	REQUIRE_OK(query_addr(p->sfd, p->listener, &resp));
	memcpy(&p->addr, &resp.src_addr, sizeof(p->addr));
}

void pair_resolved_addr(struct pair *p, const union addr *a)
{
	pair_listen(p, a);
	p->cfd = cm_open(O_RDWR | O_NONBLOCK);
	p->client = REQUIRE_ID(create_id_type(p->cfd, p->ps, p->qp_type, p->client_uid));
	NEED_ADDR(p->cfd, p->client, NULL, &p->addr);
}

void pair_routed(struct pair *p, const union addr *a)
{
	pair_resolved_addr(p, a);
	NEED_ROUTE(p->cfd, p->client);
}

void pair_requested(struct pair *p, const union addr *a)
{
	pair_routed(p, a);
	REQUIRE_OK(connect_id(p->cfd, p->client, &p->cparam));
	NEED_EVENT(p->sfd, EV_CONNECT_REQUEST, &p->request);
	p->server = p->request.id;
}

void pair_accepted(struct pair *p, const union addr *a)
{
	pair_requested(p, a);
	REQUIRE_OK(accept_id(p->sfd, p->server, p->server_uid, &p->sparam));
	NEED_EVENT(p->cfd, EV_CONNECT_RESPONSE, &p->response);
}

void pair_established(struct pair *p, const union addr *a)
{
	pair_accepted(p, a);
	REQUIRE_OK(accept_id(p->cfd, p->client, 0, NULL));
	NEED_EVENT(p->sfd, EV_ESTABLISHED, NULL);
}

void route_id(int fd, uint32_t id, const union addr *dst)
{
	NEED_ADDR(fd, id, NULL, dst);
	NEED_ROUTE(fd, id);
}

uint32_t routed_client(int fd, uint64_t uid, const union addr *dst)
{
	uint32_t id = REQUIRE_ID(create_id(fd, PS_TCP, uid));

	route_id(fd, id, dst);
	return id;
}
