// SPDX-License-Identifier: GPL-2.0
/*
 * Types of queue pairs other than RC and UD: whose number each end is told, in events and for its
 * queue pair. In the messages of XRC it stands elsewhere. None of the types needs a queue pair of
 * the device here.
 */
#include "abi.h"

/* The number of the peer's queue pair, as an end is told it for its own. */
static uint32_t destination(int fd, uint32_t id)
{
	struct ib_uverbs_qp_attr attr;

	REQUIRE_OK(init_qp_attr(fd, id, 2, &attr));
	return attr.dest_qp_num;
}

static void connection(uint8_t type)
{
	struct pair p = { .ps = PS_IB, .qp_type = type };
	union addr a = any_port4();

	pair_accepted(&p, &a);
	CHECK_EQ(p.cparam.qp_num, p.request.param.conn.qp_num);
	CHECK_EQ(p.sparam.qp_num, p.response.param.conn.qp_num);
	CHECK_EQ(p.sparam.qp_num, destination(p.cfd, p.client));
	CHECK_EQ(p.cparam.qp_num, destination(p.sfd, p.server));
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
}

TEST(types, rc_is_told_the_peers_number)
{
	connection(QPT_RC);
}

TEST(types, uc_is_told_the_peers_number)
{
	connection(QPT_UC);
}

TEST(types, xrc_is_told_the_peers_number)
{
	connection(QPT_XRC_INI);
}

TEST(types, connection_to_a_listener_of_another)
{
	static const uint8_t types[] = { QPT_RC, QPT_UC, QPT_UD, QPT_XRC_INI, QPT_XRC_TGT };
	static const uint8_t askers[] = { QPT_RC, QPT_UC, QPT_XRC_INI };

	for (size_t i = 0; i < sizeof(types); i++) {
		for (size_t j = 0; j < sizeof(askers); j++) {
			struct pair p = { .ps = PS_IB, .qp_type = askers[j],
					  .listener_type = types[i] };
			struct rdma_ucm_event_resp ev;
			union addr a = any_port4();
			bool fits = askers[j] == QPT_XRC_INI ? types[i] == QPT_XRC_TGT :
							       types[i] == askers[j];

			pair_routed(&p, &a);
			REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
			if (fits) {
				NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
				CHECK_EQ(p.cparam.qp_num, ev.param.conn.qp_num);
			} else {
				NEED_EVENT(p.cfd, EV_REJECTED, &ev);
				CHECK_EQ(28, ev.status);
			}
			close(p.cfd);
			close(p.sfd);
		}
	}
}

TEST(types, nothing_connects_but_rc_uc_and_xrc)
{
	struct pair p = { .ps = PS_IB, .qp_type = QPT_XRC_TGT };
	union addr a = any_port4();

	pair_routed(&p, &a);
	CHECK_ERR(EINVAL, connect_id(p.cfd, p.client, &p.cparam));
	CHECK(no_event(p.sfd, 50));
}
