// SPDX-License-Identifier: GPL-2.0
/* Ids and memberships of others. */
#include "../abi/mcast.h"
#include "hostile.h"

#define IDS 16
/* Numbers that are asked about: fewer where each command takes several times as long. */
#define ASKED (patience() > 1 ? 32u : 4096u)

/* Commands of all kinds, with the place of the number in their requests. */
static const struct {
	uint32_t number;
	uint16_t in, out, id_at;
} asked[] = {
	{ RDMA_USER_CM_CMD_DESTROY_ID, 16, 4, 8 },
	{ RDMA_USER_CM_CMD_QUERY_ROUTE, 16, 216, 8 },
	{ RDMA_USER_CM_CMD_LISTEN, 8, 0, 0 },
	{ RDMA_USER_CM_CMD_DISCONNECT, 8, 0, 0 },
	{ RDMA_USER_CM_CMD_LEAVE_MCAST, 16, 4, 8 },
};

/* Returns the answers that this user gets for a number: the errno of each command, of a file that has no ids. */
static uint64_t answers(int fd, int empty, uint32_t id)
{
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		uint8_t req[400] = { 0 }, answer[400];
		uint64_t to = ptr(answer);

		if (asked[i].out)
			memcpy(req, &to, sizeof(to));
		memcpy(req + asked[i].id_at, &id, sizeof(id));
		all = all * 256 + (uint8_t)-cm_cmd(fd, asked[i].number, req, asked[i].in, asked[i].out);
	}
	return all * 256 + (uint8_t)-migrate_id(fd, id, empty);
}

/*
 * Another user asks about many numbers. "told" are those of which it is told anything else than of one that nobody has,
 * "others" those that somebody has.
 */
ACT(oracle, "")
{
	int mine = file();
	uint32_t ids[IDS], groups[IDS], last = 0;
	pid_t pid;

	for (int i = 0; i < IDS; i++) {
		char group[32];

		snprintf(group, sizeof(group), "239.7.7.%d", i);
		ids[i] = REQUIRE_ID(create_id(mine, PS_UDP, 1));
		REQUIRE_OK(bind4(mine, ids[i], ADDR4, 0));
		groups[i] = REQUIRE_ID(join4(mine, ids[i], 2, group, FULL));
		last = ids[i] > last ? ids[i] : last;
	}
	REQUIRE(last < ASKED);
	pid = child();
	if (pid == 0) {
		int told = 0, fd, empty;
		uint64_t none;

		become(NOBODY);
		fd = file();
		empty = file();
		none = answers(fd, empty, 0x7fffffff);
		for (uint32_t id = 0; id < ASKED; id++)
			told += answers(fd, empty, id) != none;
		printf("told=%d ", told);
		finished();
	}
	REQUIRE(reap(pid) == 0);
	printf("others=%d\n", IDS);
	/* Nothing became of them. */
	for (int i = 0; i < IDS; i++) {
		REQUIRE_OK(leave(mine, groups[i]));
		REQUIRE_OK(destroy_id(mine, ids[i]));
	}
}
