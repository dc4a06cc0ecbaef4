// SPDX-License-Identifier: GPL-2.0
/* SET_OPTION. */
#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 1));
}

static long option(int f, uint32_t id, uint32_t name, uint32_t len, int value)
{
	return set_option(f, id, RDMA_OPTION_ID, name, edge_copy(&value, len <= 4 ? len : 4), len);
}

static long with_zeros(int f, uint32_t id, uint32_t level, uint32_t name, uint32_t len)
{
	return set_option(f, id, level, name, edge_fill(len, 0), len);
}

TEST(option, unknown_levels)
{
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_ERR(ENOSYS, with_zeros(f, id, 2, 0, 1));
	CHECK_ERR(ENOSYS, with_zeros(f, id, 0xffff, 1, 4));
	CHECK_ERR(ENOSYS, with_zeros(f, id, 0xffffffff, 1, 4));
	CHECK_ERR(ENOSYS, with_zeros(f, id, 2, 0, 0));
}

TEST(option, unknown_names)
{
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_ERR(ENOSYS, with_zeros(f, id, RDMA_OPTION_ID, 4, 1));
	CHECK_ERR(ENOSYS, with_zeros(f, id, RDMA_OPTION_ID, 0xffffffff, 4));
	CHECK_ERR(ENOSYS, with_zeros(f, id, RDMA_OPTION_IB, 0, 72));
	CHECK_ERR(ENOSYS, with_zeros(f, id, RDMA_OPTION_IB, 2, 72));
}

TEST(option, exact_lengths)
{
	static const int sizes[] = { 1, 4, 4, 1 };
	int f = fd();
	uint32_t id = new_id(f);

	for (int name = 0; name < 4; name++) {
		for (int len = 0; len < 16; len++) {
			if (len == sizes[name])
				CHECK_OK(with_zeros(f, id, RDMA_OPTION_ID, name, len));
			else
				CHECK_ERR(EINVAL, with_zeros(f, id, RDMA_OPTION_ID, name, len));
		}
		CHECK_ERR(EINVAL, with_zeros(f, id, RDMA_OPTION_ID, name, 4096));
	}
}

TEST(option, huge_length)
{
	int f = fd();
	uint32_t id = new_id(f);

	/* Above what the kernel allocates at once, and just any length. */
	CHECK_ERR(EINVAL, set_option(f, id, 0, 0, unmapped(), 0xffffffff));
	CHECK_ERR(EINVAL, set_option(f, id, 0, 0, unmapped(), 0x7fffffff));
	CHECK_ERR(EINVAL, set_option(f, id, 0, 0, unmapped(), 4194305));
	CHECK_ERR(EFAULT, set_option(f, id, 0, 0, unmapped(), 65536));
}

TEST(option, value_not_mapped)
{
	int f = fd();
	uint32_t id = new_id(f);

	for (int name = 0; name < 5; name++) {
		CHECK_ERR(EFAULT, set_option(f, id, 0, name, unmapped(), 1));
		CHECK_ERR(EFAULT, set_option(f, id, 0, name, NULL, 4));
		CHECK_ERR(EFAULT, set_option(f, id, 0, name, edge_fill(3, 0), 4));
	}
	/* No byte of it is looked at. */
	CHECK_ERR(EINVAL, set_option(f, id, 0, 0, NULL, 0));
}

TEST(option, id_before_value)
{
	int f = fd();

	CHECK_ERR(ENOENT, set_option(f, 0xffffffff, 0, 0, NULL, 1));
	CHECK_ERR(ENOENT, set_option(f, 0xffffffff, 9, 9, NULL, 4));
	/* But not before a length that is out of the question. */
	CHECK_ERR(EINVAL, set_option(f, 0xffffffff, 9, 9, NULL, 0xffffffff));
}

TEST(option, tos)
{
	int f = fd();
	uint32_t id = new_id(f);

	for (int tos = 0; tos < 256; tos++)
		CHECK_OK(option(f, id, RDMA_OPTION_ID_TOS, 1, tos));
}

TEST(option, tos_in_any_state)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	CHECK_OK(option(p.sfd, p.listener, RDMA_OPTION_ID_TOS, 1, 8));
	CHECK_OK(option(p.sfd, p.server, RDMA_OPTION_ID_TOS, 1, 8));
	CHECK_OK(option(p.cfd, p.client, RDMA_OPTION_ID_TOS, 1, 8));
}

TEST(option, tos_is_the_traffic_class)
{
	union addr dst = addr4(ADDR4, 7471);
	struct rdma_ucm_query_route_resp r;
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(option(f, id, RDMA_OPTION_ID_TOS, 1, 0x68));
	route_id(f, id, &dst);
	REQUIRE_OK(query_route(f, id, &r));
	CHECK_EQ(0x68, r.ib_route[0].traffic_class);
}

TEST(option, reuseaddr_states)
{
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_OK(option(f, id, RDMA_OPTION_ID_REUSEADDR, 4, 1));
	CHECK_OK(option(f, id, RDMA_OPTION_ID_REUSEADDR, 4, 0));
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_OK(option(f, id, RDMA_OPTION_ID_REUSEADDR, 4, 1));
	CHECK_OK(option(f, id, RDMA_OPTION_ID_REUSEADDR, 4, 1));
	CHECK_ERR(EINVAL, option(f, id, RDMA_OPTION_ID_REUSEADDR, 4, 0));
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_ERR(EINVAL, option(f, id, RDMA_OPTION_ID_REUSEADDR, 4, 1));
	CHECK_ERR(EINVAL, option(f, id, RDMA_OPTION_ID_REUSEADDR, 4, 0));
}

TEST(option, reuseaddr_later_states)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	pair_established(&p, &a);
	CHECK_OK(option(p.cfd, p.client, RDMA_OPTION_ID_REUSEADDR, 4, 1));
	CHECK_ERR(EINVAL, option(p.cfd, p.client, RDMA_OPTION_ID_REUSEADDR, 4, 0));
	CHECK_OK(option(p.sfd, p.server, RDMA_OPTION_ID_REUSEADDR, 4, 1));
	CHECK_ERR(EINVAL, option(p.sfd, p.server, RDMA_OPTION_ID_REUSEADDR, 4, 0));
}

TEST(option, afonly_states)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = new_id(f);

	CHECK_OK(option(f, id, RDMA_OPTION_ID_AFONLY, 4, 1));
	CHECK_OK(option(f, id, RDMA_OPTION_ID_AFONLY, 4, 0));
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_OK(option(f, id, RDMA_OPTION_ID_AFONLY, 4, 1));
	CHECK_OK(option(f, id, RDMA_OPTION_ID_AFONLY, 4, 0));
	NEED_ADDR(f, id, NULL, &dst);
	CHECK_ERR(EINVAL, option(f, id, RDMA_OPTION_ID_AFONLY, 4, 1));
	id = new_id(f);
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_ERR(EINVAL, option(f, id, RDMA_OPTION_ID_AFONLY, 4, 1));
}

TEST(option, ack_timeout)
{
	int f = fd();
	uint32_t id = new_id(f);

	for (int t = 0; t < 256; t++)
		CHECK_OK(option(f, id, RDMA_OPTION_ID_ACK_TIMEOUT, 1, t));
	id = REQUIRE_ID(create_id_type(f, PS_IB, QPT_RC, 1));
	CHECK_OK(option(f, id, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 14));
}

TEST(option, ack_timeout_needs_reliable_connection)
{
	int f = fd();

	for (int type = 0; type < 20; type++) {
		uint32_t id = REQUIRE_ID(create_id_type(f, PS_IB, type, 1));

		/* Reliable, or the initiator of an extended one. */
		CHECK_ERR(type == QPT_RC || type == 9 ? 0 : EINVAL,
			  option(f, id, RDMA_OPTION_ID_ACK_TIMEOUT, 1, 14));
	}
	CHECK_ERR(EINVAL, option(f, REQUIRE_ID(create_id(f, PS_UDP, 1)),
				 RDMA_OPTION_ID_ACK_TIMEOUT, 1, 14));
}

static uint8_t life_time(int timeout)
{
	union addr dst = addr4(ADDR4, 7471);
	struct rdma_ucm_query_route_resp r;
	int f = fd();
	uint32_t id = new_id(f);

	if (timeout >= 0)
		REQUIRE_OK(option(f, id, RDMA_OPTION_ID_ACK_TIMEOUT, 1, timeout));
	route_id(f, id, &dst);
	REQUIRE_OK(query_route(f, id, &r));
	return r.ib_route[0].packet_life_time;
}

TEST(option, ack_timeout_is_the_life_time)
{
	CHECK_EQ(16, life_time(-1));
	CHECK_EQ(16, life_time(0));
	CHECK_EQ(0, life_time(1));
	CHECK_EQ(13, life_time(14));
}

TEST(option, ack_timeout_beyond_five_bits)
{
	/* Codes have five bits; larger ones must not make a connection fail. */
	static const int codes[] = { 31, 32, 63, 128, 255 };
	union addr a = any_port4();

	if (!is_rust())
		skip("C shifts by the code (UBSAN: shift-out-of-bounds in ib_send_cm_req)");
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct pair p = { 0 };
		uint8_t code = codes[i];

		pair_listen(&p, &a);
		p.cfd = fd();
		p.client = new_id(p.cfd);
		REQUIRE_OK(set_option(p.cfd, p.client, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &code, 1));
		route_id(p.cfd, p.client, &p.addr);
		REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
		NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
		REQUIRE_OK(destroy_id(p.sfd, p.request.id));
		NEED_EVENT(p.cfd, EV_REJECTED, NULL);
		close(p.cfd);
		close(p.sfd);
	}
}
