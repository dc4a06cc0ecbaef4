// SPDX-License-Identifier: GPL-2.0
/* The visible effects of an id on others, beside its own answers. */
#include "abi.h"

static uint64_t mix(uint64_t h, uint64_t value)
{
	return (h ^ value) * 0x100000001b3;
}

/* A file for the ids that are bound beside: not one that the process before a fork has, too. */
static int beside(void)
{
	static pid_t whose;
	static int fd;

	if (whose != getpid()) {
		fd = cm_open(O_RDWR | O_NONBLOCK);
		whose = getpid();
	}
	return fd;
}

/* Returns the result for another id that wants this address, with these options. */
static long try_bind(uint16_t ps, const union addr *a, int reuseaddr, int afonly)
{
	int fd = beside();
	long id = create_id_type(fd, ps, QPT_RC, 0), ret;

	if (id < 0)
		return id;
	ret = set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuseaddr, 4);
	if (ret >= 0)
		ret = set_option(fd, id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY, &afonly, 4);
	if (ret >= 0)
		ret = bind_addr(fd, id, a);
	destroy_id(fd, id);
	return ret;
}

/* Returns the addresses that can be bound beside an address of one of the port spaces. */
static uint64_t bound_beside(const union addr *own)
{
	static const uint16_t spaces[] = { PS_TCP, PS_UDP, PS_IB };
	const union addr others[] = {
		addr4("0.0.0.0", addr_port(own)), addr6("::", addr_port(own)),
		addr4("127.0.0.1", addr_port(own)),
	};
	uint64_t h = 0;

	for (size_t s = 0; s < sizeof(spaces) / sizeof(spaces[0]); s++) {
		long ret = try_bind(spaces[s], own, 0, 0);

		h = mix(h, ret);
		/* Not the space of the id. */
		if (ret >= 0)
			continue;
		h = mix(h, try_bind(spaces[s], own, 1, 0));
		for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
			for (int options = 0; options < 4; options++)
				h = mix(h, try_bind(spaces[s], &others[i], options & 1,
						    options >> 1));
	}
	return h;
}

void footprint(struct footprint *f, int fd, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	union addr own;

	memset(f, 0, sizeof(*f));
	if (query_addr(fd, id, &resp) >= 0) {
		memcpy(&own, &resp.src_addr, sizeof(own));
		if (own.sa.sa_family && addr_port(&own))
			f->bind = bound_beside(&own);
	}
	f->shown = shown_cm_ids();
	f->events = poll(&p, 1, 0);
}

const char *footprint_differs(const struct footprint *a, const struct footprint *b)
{
	if (a->bind != b->bind)
		return "what can be bound beside it";
	if (a->shown != b->shown)
		return "how it is shown";
	if (a->events != b->events)
		return "whether there is an event";
	return NULL;
}
