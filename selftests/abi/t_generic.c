// SPDX-License-Identifier: GPL-2.0
/*
 * The common properties of all commands: the size of the answer buffer, requests at the edge of
 * what is mapped, ids that are unknown or of another file.
 */
#include "abi.h"

enum {
	DEV = 1,	/* needs an id with a device, else EINVAL */
	ANSWER = 2,	/* writes to the pointer at offset 0 or 8 */
	VALID = 4,	/* has a valid byte in its conn_param */
};

static const struct command {
	const char *name;
	uint32_t cmd;
	uint16_t size;		/* of the request */
	uint16_t min_in;	/* shortest request that is taken */
	uint16_t min_out;
	int16_t id;		/* its offset, or -1 */
	int16_t response;	/* its offset, or -1 */
	int16_t valid;		/* offset of conn_param.valid, or -1 */
	int flags;
} commands[] = {
	{ "create_id", 0, 24, 24, 4, -1, 8, -1, 0 },
	{ "destroy_id", 1, 16, 16, 4, 8, 0, -1, 0 },
	{ "bind_ip", 2, 40, 40, 0, 36, -1, -1, 0 },
	{ "resolve_ip", 3, 64, 64, 0, 56, -1, -1, 0 },
	{ "resolve_route", 4, 8, 8, 0, 0, -1, -1, DEV },
	{ "query_route", 5, 16, 16, 200, 8, 0, -1, 0 },
	{ "connect", 6, 288, 280, 0, 272, -1, 271, DEV },
	{ "listen", 7, 8, 8, 0, 0, -1, -1, 0 },
	{ "accept", 8, 296, 288, 0, 280, -1, 279, DEV },
	{ "reject", 9, 264, 264, 0, 0, -1, -1, DEV },
	{ "disconnect", 10, 4, 4, 0, 0, -1, -1, DEV },
	{ "init_qp_attr", 11, 16, 16, 144, 8, 0, -1, DEV },
	{ "get_event", 12, 8, 8, 324, -1, 0, -1, 0 },
	{ "set_option", 14, 24, 24, 0, 8, -1, -1, 0 },
	{ "notify", 15, 8, 8, 0, 0, -1, -1, 0 },
	{ "query_addr", 19, 16, 16, 272, 8, 0, -1, 0 },
	{ "bind", 20, 136, 136, 0, 0, -1, -1, 0 },
	{ "resolve_addr", 21, 272, 272, 0, 0, -1, -1, 0 },
	{ "join_ip_mcast", 16, 48, 48, 4, 44, 0, -1, DEV },
	{ "leave_mcast", 17, 16, 16, 4, 8, 0, -1, 0 },
	{ "migrate_id", 18, 16, 16, 0, 8, 0, -1, 0 },
	{ "join_mcast", 22, 152, 152, 4, 16, 0, -1, DEV },
	{ "resolve_ib_service", 23, 88, 88, 0, 0, -1, -1, 0 },
	{ "write_cm_event", 24, 320, 320, 0, 0, -1, -1, 0 },
};

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

/* A request that is right up to the look-up of its id. */
static void fill(const struct command *c, uint8_t *req, uint32_t id)
{
	union addr a = addr4(ADDR4, 0);
	uint64_t resp = ptr(edge_fill(1024, 0));

	memset(req, 0, c->size);
	if (c->id >= 0)
		memcpy(req + c->id, &id, 4);
	if (c->response >= 0)
		memcpy(req + c->response, &resp, 8);
	if (c->valid >= 0)
		req[c->valid] = 1;
	switch (c->cmd) {
	case RDMA_USER_CM_CMD_CREATE_ID:
		((struct rdma_ucm_create_id *)req)->ps = PS_TCP;
		break;
	case RDMA_USER_CM_CMD_BIND_IP:
		((struct rdma_ucm_bind_ip *)req)->addr = a.in6;
		break;
	case RDMA_USER_CM_CMD_BIND:
		((struct rdma_ucm_bind *)req)->addr_size = 16;
		memcpy(req + 8, &a, 16);
		break;
	case RDMA_USER_CM_CMD_RESOLVE_IP:
		((struct rdma_ucm_resolve_ip *)req)->dst_addr = a.in6;
		((struct rdma_ucm_resolve_ip *)req)->timeout_ms = 1000;
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
		((struct rdma_ucm_resolve_addr *)req)->dst_size = 16;
		((struct rdma_ucm_resolve_addr *)req)->timeout_ms = 1000;
		memcpy(req + 144, &a, 16);
		break;
	case RDMA_USER_CM_CMD_RESOLVE_ROUTE:
		((struct rdma_ucm_resolve_route *)req)->timeout_ms = 1000;
		break;
	case RDMA_USER_CM_CMD_NOTIFY:
		((struct rdma_ucm_notify *)req)->event = 4;
		break;
	case RDMA_USER_CM_CMD_SET_OPTION:
		((struct rdma_ucm_set_option *)req)->optval = resp;
		((struct rdma_ucm_set_option *)req)->optlen = 1;
		break;
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
		a = addr4("239.1.2.3", 0);
		((struct rdma_ucm_join_ip_mcast *)req)->addr = a.in6;
		break;
	case RDMA_USER_CM_CMD_JOIN_MCAST:
		a = addr4("239.1.2.3", 0);
		((struct rdma_ucm_join_mcast *)req)->addr_size = 16;
		memcpy(req + 24, &a, 16);
		break;
	case RDMA_USER_CM_CMD_MIGRATE_ID:
		((struct rdma_ucm_migrate_id *)req)->fd = fd();
		break;
	case CMD_WRITE_CM_EVENT:
		req[8] = 18;	/* a user's event */
		break;
	}
}

/* Returns the error of this request for an id that does not exist. */
static int unknown_id(const struct command *c)
{
	if (c->cmd == RDMA_USER_CM_CMD_GET_EVENT)
		return EAGAIN;
	if (c->cmd == RDMA_USER_CM_CMD_CREATE_ID)
		return 0;
	return ENOENT;
}

#define FOR_ALL(c) \
	for (const struct command *c = commands; \
	     c < commands + sizeof(commands) / sizeof(commands[0]); c++)

static void check(int line, const struct command *c, const char *what, int want, long got)
{
	char text[100];

	snprintf(text, sizeof(text), "%s: %s", c->name, what);
	check_err(__FILE__, line, text, want, got);
}
#define CHECK_CMD(c, what, want, got) check(__LINE__, c, what, want, got)

TEST(generic, unknown_ids)
{
	static const uint32_t ids[] = { 1000, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff };
	uint8_t req[400];
	int f = fd();

	FOR_ALL(c) {
		for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
			fill(c, req, ids[i]);
			CHECK_CMD(c, "unknown id", unknown_id(c),
				  cm_cmd(f, c->cmd, req, c->size, c->min_out));
		}
	}
}

TEST(generic, destroyed_id)
{
	uint8_t req[400];
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	REQUIRE_OK(destroy_id(f, id));
	FOR_ALL(c) {
		if (c->id < 0)
			continue;
		fill(c, req, id);
		CHECK_CMD(c, "destroyed id", unknown_id(c),
			  cm_cmd(f, c->cmd, req, c->size, c->min_out));
	}
}

TEST(generic, id_of_another_file)
{
	uint8_t req[400];
	int f = fd(), other = fd();
	uint32_t id = REQUIRE_ID(create_id(other, PS_TCP, 1));

	FOR_ALL(c) {
		int want = differs("foreign_id");

		if (c->id < 0)
			continue;
		/* Ids of groups are counted apart; a move names the other file. */
		if (c->cmd == RDMA_USER_CM_CMD_LEAVE_MCAST)
			want = unknown_id(c);
		fill(c, req, id);
		CHECK_CMD(c, "id of another file", want,
			  cm_cmd(f, c->cmd, req, c->size, c->min_out));
	}
	/* It is still there, unbound. */
	CHECK_OK(bind4(other, id, ADDR4, 0));
	CHECK_OK(destroy_id(other, id));
}

TEST(generic, no_device)
{
	uint8_t req[400];
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	FOR_ALL(c) {
		if (!(c->flags & DEV) && c->cmd != RDMA_USER_CM_CMD_NOTIFY)
			continue;
		fill(c, req, id);
		CHECK_CMD(c, "id without device", EINVAL,
			  cm_cmd(f, c->cmd, req, c->size, c->min_out));
	}
}

TEST(generic, answer_buffer_too_small)
{
	uint8_t req[400];
	int f = fd();

	FOR_ALL(c) {
		if (c->min_out == 0)
			continue;
		/* Said before the id is looked up... */
		fill(c, req, 0xffffffff);
		if (c->cmd != RDMA_USER_CM_CMD_QUERY) {
			CHECK_CMD(c, "out 0", ENOSPC, cm_cmd(f, c->cmd, req, c->size, 0));
			CHECK_CMD(c, "out - 1", ENOSPC,
				  cm_cmd(f, c->cmd, req, c->size, c->min_out - 1));
		}
	}
	CHECK_EQ(0, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}

/* A header at the end of what is mapped, and a request that is not there. */
static long not_mapped(int f, const struct command *c, uint16_t mapped, uint16_t out)
{
	struct rdma_ucm_cmd_hdr h = { c->cmd, c->size, out };
	uint8_t req[400], *buf;

	fill(c, req, 0xffffffff);
	buf = edge(sizeof(h) + mapped);
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), req, mapped);
	return cm_raw(f, buf, sizeof(h) + c->size);
}

TEST(generic, request_not_mapped)
{
	int f = fd();

	FOR_ALL(c) {
		CHECK_CMD(c, "no request", EFAULT, not_mapped(f, c, 0, c->min_out));
		CHECK_CMD(c, "half a request", EFAULT,
			  not_mapped(f, c, c->size / 2, c->min_out));
		CHECK_CMD(c, "all but a byte", EFAULT,
			  not_mapped(f, c, c->size - 1, c->min_out));
	}
	CHECK_EQ(0, REQUIRE_ID(create_id(f, PS_TCP, 1)));
}

TEST(generic, answer_size_before_request)
{
	int f = fd();

	FOR_ALL(c) {
		int want;

		if (c->min_out == 0 || c->cmd == RDMA_USER_CM_CMD_QUERY)
			continue;
		/* The two that join read the request first. */
		want = c->cmd == RDMA_USER_CM_CMD_JOIN_IP_MCAST ||
		       c->cmd == RDMA_USER_CM_CMD_JOIN_MCAST ? EFAULT : ENOSPC;
		CHECK_CMD(c, "out 0 and no request", want, not_mapped(f, c, 0, 0));
	}
}

TEST(generic, unaligned_requests)
{
	uint8_t req[400];
	int f = fd();

	FOR_ALL(c) {
		for (int offset = 1; offset < 8; offset += 3) {
			struct rdma_ucm_cmd_hdr h = { c->cmd, c->size, c->min_out };
			uint8_t *buf = edge(sizeof(h) + c->size + offset);
			long ret;

			fill(c, req, 0xffffffff);
			memcpy(buf, &h, sizeof(h));
			memcpy(buf + sizeof(h), req, c->size);
			ret = cm_raw(f, buf, sizeof(h) + c->size);
			CHECK_CMD(c, "unaligned", unknown_id(c), ret);
		}
	}
}

TEST(generic, longer_requests)
{
	uint8_t req[600];
	int f = fd();

	FOR_ALL(c) {
		fill(c, req, 0xffffffff);
		memset(req + c->size, 0xff, sizeof(req) - c->size);
		CHECK_CMD(c, "one byte more", unknown_id(c),
			  cm_cmd(f, c->cmd, req, c->size + 1, c->min_out));
		CHECK_CMD(c, "much more", unknown_id(c),
			  cm_cmd(f, c->cmd, req, sizeof(req), c->min_out));
	}
}

/* A request with all its bytes in memory, said to be shorter. */
static long said_shorter(int f, const struct command *c, uint16_t in, uint32_t id)
{
	struct rdma_ucm_cmd_hdr h = { c->cmd, in, c->min_out };
	uint8_t req[400], *buf = edge(sizeof(h) + c->size);

	fill(c, req, id);
	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), req, c->size);
	return cm_raw(f, buf, sizeof(h) + in);
}

/* Returns the error of an empty request, if all missing bytes count as zero. */
static int all_zero(const struct command *c)
{
	switch (c->cmd) {
	case RDMA_USER_CM_CMD_GET_EVENT:
		return EAGAIN;
	case RDMA_USER_CM_CMD_CREATE_ID:	/* port space */
	case RDMA_USER_CM_CMD_BIND:		/* length of the address */
	case RDMA_USER_CM_CMD_BIND_IP:		/* its family */
	case RDMA_USER_CM_CMD_RESOLVE_ADDR:
	case RDMA_USER_CM_CMD_RESOLVE_IP:
	case RDMA_USER_CM_CMD_JOIN_IP_MCAST:
	case RDMA_USER_CM_CMD_JOIN_MCAST:
	case RDMA_USER_CM_CMD_MIGRATE_ID:	/* descriptor 0 */
	case CMD_WRITE_CM_EVENT:		/* the event */
		return EINVAL;
	default:
		return ENOENT;			/* the id */
	}
}

TEST(generic, shorter_requests)
{
	bool zeros = differs("short_request");

	FOR_ALL(c) {
		int want = unknown_id(c);
		int f = fd();

		if (c->min_in < c->size) {
			CHECK_CMD(c, "shortest", want, said_shorter(f, c, c->min_in, ~0u));
			CHECK_CMD(c, "shortest - 1", EINVAL,
				  said_shorter(f, c, c->min_in - 1, ~0u));
			CHECK_CMD(c, "nothing", EINVAL, said_shorter(f, c, 0, ~0u));
			close(f);
			continue;
		}
		CHECK_CMD(c, "one byte less", want, said_shorter(f, c, c->size - 1, ~0u));
		close(f);
		f = fd();
		if (zeros)
			want = all_zero(c);
		CHECK_CMD(c, "nothing", want, said_shorter(f, c, 0, ~0u));
		close(f);
	}
}

/* The answer has nowhere to go. */
TEST(generic, answer_not_writable)
{
	static const struct { uint16_t cmd, out; } queries[] = {
		{ RDMA_USER_CM_CMD_QUERY_ROUTE, 208 },
		{ RDMA_USER_CM_CMD_QUERY, 280 },
	};
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	void *const bad[] = {
		NULL, unmapped(), edge(199), readonly(400), (void *)0xffff800000000000ull,
		(void *)~0ull,
	};

	for (size_t q = 0; q < 2; q++) {
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			struct rdma_ucm_query req = { .response = ptr(bad[i]), .id = id };

			CHECK_ERR(EFAULT, cm_cmd(f, queries[q].cmd, &req, sizeof(req),
						 queries[q].out));
		}
	}
}
