// SPDX-License-Identifier: GPL-2.0
/* WRITE_CM_EVENT: the events of programs; RESOLVE_IB_SERVICE. */
#include "abi.h"

#define EV_USER 18
#define EV_INTERNAL 19

struct write_cm_event {
	uint32_t id, reserved, event, status;
	uint64_t arg;
	uint8_t rest[296];
};

struct resolve_ib_service {
	uint32_t id, reserved;
	uint64_t service_id;
	char name[64];
	uint32_t flags, reserved2;
};

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static long write_event(int f, uint32_t id, uint32_t event, int status, uint64_t arg)
{
	struct write_cm_event req = {
		.id = id, .reserved = 0xffffffff, .event = event, .status = status, .arg = arg,
	};

	memset(req.rest, 0xee, sizeof(req.rest));
	CHECK_EQ(320, sizeof(req));
	return cm_cmd(f, CMD_WRITE_CM_EVENT, &req, sizeof(req), 0);
}

static void check_written(int f, uint32_t id, uint64_t uid, uint32_t event, int status,
			  uint64_t arg)
{
	struct rdma_ucm_event_resp ev, want = {
		.uid = uid, .id = id, .event = event, .status = status,
	};

	memcpy(&want.param, &arg, sizeof(arg));
	NEED_EVENT(f, event, &ev);
	CHECK_MEM(&want, &ev, sizeof(ev));
}

TEST(written, comes_as_it_was_written)
{
	static const int statuses[] = { 0, 1, -1, -4096, 4711, INT32_MAX, INT32_MIN };
	static const uint64_t args[] = { 0, 1, UINT64_MAX, 0x0123456789abcdef };
	int f = fd();

	for (int type = 0; type < 2; type++) {
		uint16_t ps = type ? PS_UDP : PS_TCP;
		uint32_t id = REQUIRE_ID(create_id(f, ps, 0x1234567890 + type));

		for (size_t i = 0; i < 7; i++) {
			for (size_t j = 0; j < 4; j++) {
				uint32_t event = EV_USER + (i + j) % 2;

				CHECK_OK(write_event(f, id, event, statuses[i], args[j]));
				check_written(f, id, 0x1234567890 + type, event, statuses[i],
					      args[j]);
			}
		}
		CHECK_EQ(28, destroy_id(f, id));
	}
}

TEST(written, no_other_event)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	for (uint32_t event = 0; event < 40; event++)
		if (event != EV_USER && event != EV_INTERNAL)
			CHECK_ERR(EINVAL, write_event(f, id, event, 0, 0));
	CHECK_ERR(EINVAL, write_event(f, id, 0x12 | 1 << 31, 0, 0));
	CHECK_ERR(EINVAL, write_event(f, id, 0xffffffff, 0, 0));
	/* The event comes before the id. */
	CHECK_ERR(EINVAL, write_event(f, 0xffffffff, 17, 0, 0));
	CHECK_ERR(ENOENT, write_event(f, 0xffffffff, EV_USER, 0, 0));
	CHECK_ERR(differs("foreign_id"), write_event(fd(), id, EV_USER, 0, 0));
	CHECK(no_event(f, 50));
}

TEST(written, no_uid)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0));

	CHECK_ERR(EINVAL, write_event(f, id, EV_USER, 0, 0));
	CHECK_ERR(EINVAL, write_event(f, id, EV_INTERNAL, 0, 0));
	CHECK(no_event(f, 50));
}

TEST(written, child_without_uid)
{
	struct pair p = { 0 };
	union addr a = any_port4();

	/* Not before it is accepted. */
	pair_requested(&p, &a);
	CHECK_ERR(EINVAL, write_event(p.sfd, p.server, EV_USER, 0, 0));
	REQUIRE_OK(accept_id(p.sfd, p.server, 0x99, &p.sparam));
	CHECK_OK(write_event(p.sfd, p.server, EV_USER, 5, 6));
	check_written(p.sfd, p.server, 0x99, EV_USER, 5, 6);
}

TEST(written, among_other_events)
{
	union addr dst = addr4(ADDR4, 7471);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 7));
	uint32_t other = REQUIRE_ID(create_id(f, PS_TCP, 8));

	CHECK_OK(write_event(f, id, EV_USER, 1, 1));
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	usleep(200000);
	CHECK_OK(write_event(f, other, EV_INTERNAL, 2, 2));
	CHECK_OK(write_event(f, id, EV_USER, 3, 3));
	check_written(f, id, 7, EV_USER, 1, 1);
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);
	check_written(f, other, 8, EV_INTERNAL, 2, 2);
	check_written(f, id, 7, EV_USER, 3, 3);
	CHECK(no_event(f, 0));
	CHECK_EQ(3, destroy_id(f, id));
	CHECK_EQ(1, destroy_id(f, other));
}

TEST(written, goes_with_the_id)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 7));

	for (int i = 0; i < 10; i++)
		CHECK_OK(write_event(f, id, EV_USER, i, i));
	check_written(f, id, 7, EV_USER, 0, 0);
	CHECK_EQ(1, destroy_id(f, id));
	CHECK(no_event(f, 50));
}

/* cm_cmd() maps memory each time. */
static long write_again(int f, uint32_t id)
{
	struct {
		struct rdma_ucm_cmd_hdr h;
		struct write_cm_event req;
	} buf = {
		.h = { .cmd = CMD_WRITE_CM_EVENT, .in = sizeof(buf.req) },
		.req = { .id = id, .event = EV_USER },
	};

	return cm_raw(f, &buf, sizeof(buf));
}

TEST(written, limit)
{
	int f = fd(), g = fd();
	uint32_t a = REQUIRE_ID(create_id(f, PS_TCP, 1)), b = REQUIRE_ID(create_id(f, PS_TCP, 1));
	uint32_t c = REQUIRE_ID(create_id(g, PS_TCP, 1));

	for (int i = 0; i < 4096; i++)
		REQUIRE(write_again(f, i & 1 ? a : b) > 0);
	/* The bound is that of the file. */
	CHECK_ERR(differs("written_events"), write_again(f, a));
	CHECK_ERR(differs("written_events"), write_again(f, b));
	CHECK(write_again(g, c) > 0);
	/* One is read, and there is room for one. */
	NEED_EVENT(f, EV_USER, NULL);
	CHECK(write_again(f, a) > 0);
	CHECK_ERR(differs("written_events"), write_again(f, a));
	/* And for half of them when an id goes. */
	CHECK_OK(destroy_id(f, b));
	for (int i = 0; i < 2000; i++)
		REQUIRE(write_again(f, a) > 0);
}

TEST(written, moves_with_the_id)
{
	int f = fd(), g = fd();
	uint32_t a = REQUIRE_ID(create_id(f, PS_TCP, 1)), b = REQUIRE_ID(create_id(g, PS_TCP, 2));

	for (int i = 0; i < 5; i++) {
		CHECK_OK(write_event(f, a, EV_USER, i, i));
		CHECK_OK(write_event(g, b, EV_USER, i, i));
	}
	CHECK_EQ(0, migrate_id(g, a, f));
	CHECK(no_event(f, 0));
	CHECK_ERR(differs("foreign_id"), write_event(f, a, EV_USER, 0, 0));
	CHECK_OK(write_event(g, a, EV_USER, 9, 9));
	for (int i = 0; i < 5; i++)
		check_written(g, b, 2, EV_USER, i, i);
	for (int i = 0; i < 5; i++)
		check_written(g, a, 1, EV_USER, i, i);
	check_written(g, a, 1, EV_USER, 9, 9);
	CHECK(no_event(g, 0));
	/* There is room for as many as if it had always been there. */
	if (is_rust()) {
		for (int i = 0; i < 4096; i++)
			REQUIRE(write_again(g, a) > 0);
		CHECK_ERR(EAGAIN, write_again(g, b));
		CHECK_OK(destroy_id(g, a));
		CHECK_OK(write_event(g, b, EV_USER, 0, 0));
	}
}

TEST(written, answer_that_cannot_be_written)
{
	struct rdma_ucm_get_event req = { .response = ptr(unmapped()) };
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	CHECK_OK(write_event(f, id, EV_USER, 1, 2));
	for (int i = 0; i < 10; i++)
		CHECK_ERR(EFAULT, cm_cmd(f, RDMA_USER_CM_CMD_GET_EVENT, &req, sizeof(req),
					 sizeof(struct rdma_ucm_event_resp)));
	check_written(f, id, 1, EV_USER, 1, 2);
	CHECK(no_event(f, 0));
}

/* --- services --- */

static long resolve_service(int f, uint32_t id, uint32_t flags)
{
	struct resolve_ib_service req = {
		.id = id, .service_id = htobe64(0x1234), .name = "name", .flags = flags,
	};

	CHECK_EQ(88, sizeof(req));
	return cm_cmd(f, CMD_RESOLVE_IB_SERVICE, &req, sizeof(req), 0);
}

TEST(service, nobody_to_ask)
{
	union addr dst = addr4(ADDR4, 7471);
	uint8_t resp[512];
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	for (uint32_t flags = 0; flags < 8; flags++)
		CHECK_ERR(EINVAL, resolve_service(f, id, flags));
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	for (uint32_t flags = 0; flags < 8; flags++)
		CHECK_ERR(EOPNOTSUPP, resolve_service(f, id, flags));
	CHECK_ERR(EOPNOTSUPP, resolve_service(f, id, 0xffffffff));
	CHECK_ERR(ENODATA, query(f, id, 3, resp, sizeof(resp)));
	/* The id is as it was. */
	NEED_ADDR(f, id, NULL, &dst);
	CHECK_ERR(EINVAL, resolve_service(f, id, 1));
	NEED_ROUTE(f, id);
	CHECK_ERR(EINVAL, resolve_service(f, id, 1));
	CHECK(no_event(f, 50));
}

TEST(service, states)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	REQUIRE_OK(bind4(f, id, "0.0.0.0", 0));
	CHECK_ERR(EINVAL, resolve_service(f, id, 1));
	REQUIRE_OK(listen_id(f, id, 1));
	CHECK_ERR(EINVAL, resolve_service(f, id, 1));
	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_ERR(EOPNOTSUPP, resolve_service(f, id, 1));
	CHECK_ERR(ENOENT, resolve_service(f, 0xffffffff, 1));
	CHECK_ERR(differs("foreign_id"), resolve_service(fd(), id, 1));
}
