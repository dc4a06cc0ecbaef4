// SPDX-License-Identifier: GPL-2.0
/* Listeners that share their address, and clients that ask these. */
#include <rust_rdma_cm.h>
#include "members.h"

/* 68 s: nobody repeats a request before. */
#define LATE 24

long share(int f, uint32_t id, unsigned int on)
{
	return set_option(f, id, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_REUSEPORT, edge_copy(&on, 4), 4);
}

uint32_t sharer(int f, uint16_t ps, uint8_t qp_type)
{
	uint32_t id = REQUIRE_ID(create_id_type(f, ps, qp_type, 1));

	REQUIRE_OK(share(f, id, 1));
	return id;
}

void members_listen(struct members *m)
{
	if (!is_rust())
		skip("C has no REUSEPORT");
	for (int i = 0; i < MEMBERS; i++) {
		m->sfd[i] = cm_open(O_RDWR | O_NONBLOCK);
		/* By its number the first comes after its requests, where the module looks for what a closed file has. */
		do
			m->listener[i] = sharer(m->sfd[i], m->ps, 0);
		while (i == 0 && m->listener[i] % 64 != 63);
		REQUIRE_OK(bind_addr(m->sfd[i], m->listener[i], &m->addr));
		REQUIRE_OK(listen_id(m->sfd[i], m->listener[i], i ? REQUESTS : m->backlog));
	}
}

/* The second member accepts what it is told of within that time. */
static void accept_all(struct members *m, int ms)
{
	struct rdma_ucm_event_resp ev;

	while (m->told < REQUESTS && wait_event(m->sfd[1], &ev, ms) == 0) {
		struct rdma_ucm_conn_param param = conn_param();

		REQUIRE_EQ(EV_CONNECT_REQUEST, ev.event);
		CHECK_EQ(1, ev.uid);
		REQUIRE_OK(accept_id(m->sfd[1], ev.id, 2, &param));
		m->told++;
	}
}

void members_asked(struct members *m, const union addr *src)
{
	uint32_t late = LATE, ids[REQUESTS];
	long before = read_number(m->received);

	m->cfd = cm_open(O_RDWR | O_NONBLOCK);
	for (int i = 0; i < REQUESTS; i++) {
		ids[i] = REQUIRE_ID(create_id(m->cfd, m->ps, 3));
		as_c(m->cfd, ids[i]);
		REQUIRE_OK(set_option(m->cfd, ids[i], RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_RESPONSE_TIMEOUT, &late, 4));
		NEED_ADDR(m->cfd, ids[i], src, &m->addr);
		NEED_ROUTE(m->cfd, ids[i]);
	}
	for (int i = 0; i < REQUESTS; i++) {
		struct rdma_ucm_conn_param param = conn_param();

		REQUIRE_OK(connect_id(m->cfd, ids[i], &param));
	}
	for (int tries = 0; read_number(m->received) < before + REQUESTS; tries++) {
		REQUIRE(tries < 1000 * patience());
		usleep(5000);
	}
	accept_all(m, 50 * patience());
	CHECK_EQ(1, poll(&(struct pollfd){ .fd = m->sfd[0], .events = POLLIN }, 1, 0));
	CHECK(m->told > 0 && m->told < REQUESTS);
}

void members_move(struct members *m, bool closes)
{
	struct rdma_ucm_event_resp ev;

	if (closes)
		close(m->sfd[0]);
	else
		REQUIRE_ID(destroy_id(m->sfd[0], m->listener[0]));
	note("%d of %d move", REQUESTS - m->told, REQUESTS);
	accept_all(m, 4000 * patience());
	CHECK_EQ(REQUESTS, m->told);
	for (int i = 0; i < REQUESTS; i++) {
		if (m->ps == PS_UDP) {
			NEED_EVENT(m->cfd, EV_ESTABLISHED, &ev);
			CHECK_EQ(0, ev.status);
			continue;
		}
		NEED_EVENT(m->cfd, EV_CONNECT_RESPONSE, &ev);
		REQUIRE_OK(accept_id(m->cfd, ev.id, 0, NULL));
		NEED_EVENT(m->sfd[1], EV_ESTABLISHED, &ev);
		CHECK_EQ(2, ev.uid);
	}
	CHECK(no_event(m->cfd, 20));
	CHECK(no_event(m->sfd[1], 20));
	CHECK(closes || no_event(m->sfd[0], 20));
}
