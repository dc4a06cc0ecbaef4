// SPDX-License-Identifier: GPL-2.0
/* Clients that connect, disconnect at once, and count. */
#include "reuseport.h"

/* The uid of an id tells whether a server has accepted. */
#define ASKS 1
#define ACCEPTED 2

/* The connections that are under way: the ids of those that a server has accepted have a bit each. */
static uint8_t accepted[1 << 14];

static void note_accepted(uint32_t id, bool is_so)
{
	uint8_t *byte = &accepted[(id >> 3) % sizeof(accepted)], bit = 1 << (id & 7);

	*byte = is_so ? *byte | bit : *byte & ~bit;
}

static bool is_accepted(uint32_t id)
{
	return accepted[(id >> 3) % sizeof(accepted)] >> (id & 7) & 1;
}

static void begin(struct clients *c)
{
	uint32_t id = REQUIRE_ID(create_id(c->fd, PS_TCP, ASKS));

	note_accepted(id, false);
	REQUIRE_OK(resolve_addr(c->fd, id, NULL, &c->address, 2000));
	c->begun++;
}

static void ask(struct clients *c, uint32_t id)
{
	struct rdma_ucm_conn_param param = conn_param();
	static uint32_t n;

	/* Not one that a connection had that is still in its time wait. */
	param.qp_num = 0x200000 | (n++ & 0x1fffff);
	REQUIRE_OK(connect_id(c->fd, id, &param));
}

static void end(struct clients *c, uint32_t id, unsigned int *what)
{
	if (what)
		++*what;
	else if (is_accepted(id))
		c->lost++;
	else
		c->failed++;
	REQUIRE(destroy_id(c->fd, id) >= 0);
}

bool run_clients(struct clients *c, unsigned int total, unsigned int at_a_time, uint64_t until)
{
	struct rdma_ucm_event_resp event;

	while (now_ms() < until) {
		unsigned int ended = c->connected + c->refused + c->failed + c->lost;

		if (ended >= total)
			return true;
		while (c->begun < total && c->begun - ended < at_a_time)
			begin(c);
		if (wait_event(c->fd, &event, 50) < 0)
			continue;
		switch (event.event) {
		case EV_ADDR_RESOLVED:
			REQUIRE_OK(resolve_route(c->fd, event.id, 2000));
			break;
		case EV_ROUTE_RESOLVED:
			ask(c, event.id);
			break;
		case EV_CONNECT_RESPONSE:
			note_accepted(event.id, true);
			/* It fails if the server has ended the connection again. */
			if (accept_id(c->fd, event.id, 0, NULL) >= 0)
				end(c, event.id, &c->connected);
			break;
		case EV_REJECTED:
			if (event.status == REFUSED) {
				end(c, event.id, &c->refused);
				break;
			}
			/* fallthrough */
		default:
			fprintf(stderr, "%s, status %d\n", event_name(event.event), (int)event.status);
			end(c, event.id, NULL);
		}
	}
	return false;
}
