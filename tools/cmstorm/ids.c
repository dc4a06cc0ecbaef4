// SPDX-License-Identifier: GPL-2.0
/* Ids that connect to nobody: they are made, bound and destroyed, one kind of call after the other. */
#include "cmstorm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct ids {
	struct rdma_event_channel *channel;
	struct rdma_cm_id **all;
	struct sockaddr_storage address;	/* with port 0 */
	int count;
};

static void create(struct ids *ids)
{
	for (int i = 0; i < ids->count; i++)
		if (rdma_create_id(ids->channel, &ids->all[i], NULL, RDMA_PS_TCP))
			die_errno("rdma_create_id");
}

static void bind_all(struct ids *ids)
{
	for (int i = 0; i < ids->count; i++)
		if (rdma_bind_addr(ids->all[i], (struct sockaddr *)&ids->address))
			die_errno("rdma_bind_addr");
}

static void destroy(struct ids *ids)
{
	for (int i = 0; i < ids->count; i++)
		if (rdma_destroy_id(ids->all[i]))
			die_errno("rdma_destroy_id");
}

int run_ids(const struct options *o)
{
	static const struct {
		const char *name;
		void (*step)(struct ids *ids);
	} steps[] = { { "create", create }, { "bind", bind_all }, { "destroy", destroy } };
	struct ids ids = { .count = o->connections };
	uint64_t ns[sizeof(steps) / sizeof(*steps)];

	socket_address(o->address, 0, &ids.address);
	ids.channel = rdma_create_event_channel();
	if (!ids.channel)
		die_errno("no event channel (is the connection manager loaded?)");
	ids.all = calloc((size_t)ids.count + 1, sizeof(*ids.all));
	if (!ids.all)
		die("no memory for %d ids", ids.count);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		mark_begin();
		ns[i] = now_ns();
		steps[i].step(&ids);
		ns[i] = now_ns() - ns[i];
		mark_end();
	}
	printf("{\"ids\": %d", ids.count);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		printf(", \"%s_seconds\": %.6f", steps[i].name, ns[i] / 1e9);
	puts("}");
	return 0;
}
