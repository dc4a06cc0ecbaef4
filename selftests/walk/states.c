// SPDX-License-Identifier: GPL-2.0
/* The states that an id can be in, and how it gets there. */
#include "walk.h"

static const union addr *here(void)
{
	static union addr a;

	a = any_port4();
	return &a;
}

/* The subject is the client of its pair, or the server. */
static void is_client(struct subject *s)
{
	s->fd = s->p.cfd;
	s->id = s->p.client;
}

static void is_server(struct subject *s)
{
	s->fd = s->p.sfd;
	s->id = s->p.server;
}

static void make(struct subject *s, uint16_t ps, uint8_t qp_type)
{
	s->p.cfd = cm_open(O_RDWR | O_NONBLOCK);
	s->p.client = REQUIRE_ID(create_id_type(s->p.cfd, ps, qp_type, 0x3333));
	is_client(s);
}

static void idle(struct subject *s)
{
	make(s, s->p.ps ?: PS_TCP, s->p.qp_type ?: QPT_RC);
}

static void idle_uid0(struct subject *s)
{
	s->p.cfd = cm_open(O_RDWR | O_NONBLOCK);
	s->p.client = REQUIRE_ID(create_id(s->p.cfd, PS_TCP, 0));
	is_client(s);
}

static void bound(struct subject *s)
{
	idle(s);
	REQUIRE_OK(bind4(s->fd, s->id, ADDR4, 0));
}

static void bound6(struct subject *s)
{
	union addr a = global6(0);

	idle(s);
	REQUIRE_OK(bind_addr(s->fd, s->id, &a));
}

static void bound_any(struct subject *s)
{
	idle(s);
	REQUIRE_OK(bind4(s->fd, s->id, "0.0.0.0", 0));
}

/* Others may have the address, too. */
static void bound_shared(struct subject *s)
{
	int one = 1;

	idle(s);
	REQUIRE_OK(set_option(s->fd, s->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &one, 4));
	REQUIRE_OK(bind4(s->fd, s->id, ADDR4, 0));
}

static void listening(struct subject *s)
{
	bound(s);
	REQUIRE_OK(listen_id(s->fd, s->id, 2));
}

static void listening_any(struct subject *s)
{
	bound_any(s);
	REQUIRE_OK(listen_id(s->fd, s->id, 2));
}

/* A listener with a request that nobody has read. */
static void child_waiting(struct subject *s)
{
	struct pollfd p;

	pair_routed(&s->p, here());
	REQUIRE_OK(connect_id(s->p.cfd, s->p.client, &s->p.cparam));
	p = (struct pollfd){ .fd = s->p.sfd, .events = POLLIN };
	REQUIRE_EQ(1, poll(&p, 1, 10000));
	s->fd = s->p.sfd;
	s->id = s->p.listener;
}

static void addr_query(struct subject *s)
{
	union addr a = absent4(7471);

	idle(s);
	REQUIRE_OK(resolve_addr(s->fd, s->id, NULL, &a, 100000));
}

static void addr_error(struct subject *s)
{
	union addr a = absent4(7471);

	idle(s);
	REQUIRE_OK(resolve_addr(s->fd, s->id, NULL, &a, 10));
	NEED_EVENT(s->fd, EV_ADDR_ERROR, NULL);
}

static void addr_resolved(struct subject *s)
{
	pair_resolved_addr(&s->p, here());
	is_client(s);
}

static void addr_resolved6(struct subject *s)
{
	union addr a = global6(0);

	pair_resolved_addr(&s->p, &a);
	is_client(s);
}

static void route_resolved(struct subject *s)
{
	pair_routed(&s->p, here());
	is_client(s);
}

static void route_resolved6(struct subject *s)
{
	union addr a = global6(0);

	pair_routed(&s->p, &a);
	is_client(s);
}

static void req_sent(struct subject *s)
{
	pair_requested(&s->p, here());
	is_client(s);
}

static void req_received(struct subject *s)
{
	pair_requested(&s->p, here());
	is_server(s);
}

static void rep_received(struct subject *s)
{
	pair_accepted(&s->p, here());
	is_client(s);
}

static void rep_sent(struct subject *s)
{
	pair_accepted(&s->p, here());
	is_server(s);
}

static void established_active(struct subject *s)
{
	pair_established(&s->p, here());
	is_client(s);
}

static void established_passive(struct subject *s)
{
	pair_established(&s->p, here());
	is_server(s);
}

/* A connection whose end is there to be read. */
static void event_waiting(struct subject *s)
{
	struct pollfd p;

	established_passive(s);
	REQUIRE_OK(disconnect_id(s->p.cfd, s->p.client));
	p = (struct pollfd){ .fd = s->fd, .events = POLLIN };
	REQUIRE_EQ(1, poll(&p, 1, 10000));
}

static void disconnecting(struct subject *s)
{
	pair_established(&s->p, here());
	REQUIRE_OK(disconnect_id(s->p.cfd, s->p.client));
	NEED_EVENT(s->p.sfd, EV_DISCONNECTED, NULL);
}

static void dreq_sent(struct subject *s)
{
	disconnecting(s);
	is_client(s);
}

static void dreq_received(struct subject *s)
{
	disconnecting(s);
	is_server(s);
}

static void timewait(struct subject *s)
{
	disconnecting(s);
	REQUIRE_OK(disconnect_id(s->p.sfd, s->p.server));
	NEED_EVENT(s->p.cfd, EV_DISCONNECTED, NULL);
	NEED_EVENT(s->p.cfd, EV_TIMEWAIT_EXIT, NULL);
	NEED_EVENT(s->p.sfd, EV_TIMEWAIT_EXIT, NULL);
}

static void disconnected_active(struct subject *s)
{
	timewait(s);
	is_client(s);
}

static void disconnected_passive(struct subject *s)
{
	timewait(s);
	is_server(s);
}

static void rejected(struct subject *s)
{
	pair_requested(&s->p, here());
	REQUIRE_OK(reject_id(s->p.sfd, s->p.server, NULL, 0, 0));
	NEED_EVENT(s->p.cfd, EV_REJECTED, NULL);
}

static void rejected_active(struct subject *s)
{
	rejected(s);
	is_client(s);
}

static void rejected_passive(struct subject *s)
{
	rejected(s);
	is_server(s);
}

/* The listener is one that no connection of this type is for. */
static void misfit(struct subject *s)
{
	s->p.listener_type = s->p.qp_type == QPT_XRC_INI ? QPT_XRC_INI : QPT_XRC_TGT;
	route_resolved(s);
}

/* Nobody listens there. */
static void refused(struct subject *s)
{
	union addr a = addr4(ADDR4, 9);
	struct rdma_ucm_conn_param param = conn_param();

	idle(s);
	REQUIRE_OK(resolve_addr(s->fd, s->id, NULL, &a, 2000));
	NEED_EVENT(s->fd, EV_ADDR_RESOLVED, NULL);
	REQUIRE_OK(resolve_route(s->fd, s->id, 2000));
	NEED_EVENT(s->fd, EV_ROUTE_RESOLVED, NULL);
	REQUIRE_OK(connect_id(s->fd, s->id, &param));
	NEED_EVENT(s->fd, EV_REJECTED, NULL);
}

/* Moved to another file: that is the one it belongs to from then on. */
static void migrated(struct subject *s)
{
	int from;

	route_resolved(s);
	from = s->fd;
	s->fd = cm_open(O_RDWR | O_NONBLOCK);
	REQUIRE_OK(migrate_id(s->fd, s->id, from));
	s->p.cfd = s->fd;
	close(from);
}

/* --- datagrams --- */

static void ud_idle(struct subject *s)
{
	make(s, PS_UDP, QPT_UD);
}

static void ud_bound(struct subject *s)
{
	ud_idle(s);
	REQUIRE_OK(bind4(s->fd, s->id, ADDR4, 0));
}

static void ud_listening(struct subject *s)
{
	ud_bound(s);
	REQUIRE_OK(listen_id(s->fd, s->id, 2));
}

static void ud_pair(struct subject *s)
{
	struct rdma_ucm_query_addr_resp resp;

	s->p.sfd = cm_open(O_RDWR | O_NONBLOCK);
	s->p.cparam = conn_param();
	s->p.sparam = conn_param();
	s->p.listener = REQUIRE_ID(create_id_type(s->p.sfd, PS_UDP, QPT_UD, 0x1111));
	REQUIRE_OK(bind4(s->p.sfd, s->p.listener, ADDR4, 0));
	REQUIRE_OK(listen_id(s->p.sfd, s->p.listener, 2));
	REQUIRE_OK(query_addr(s->p.sfd, s->p.listener, &resp));
	memcpy(&s->p.addr, &resp.src_addr, sizeof(s->p.addr));
	ud_idle(s);
	REQUIRE_OK(resolve_addr(s->fd, s->id, NULL, &s->p.addr, 2000));
	NEED_EVENT(s->fd, EV_ADDR_RESOLVED, NULL);
}

static void ud_route_resolved(struct subject *s)
{
	ud_pair(s);
	REQUIRE_OK(resolve_route(s->fd, s->id, 2000));
	NEED_EVENT(s->fd, EV_ROUTE_RESOLVED, NULL);
}

static void ud_exchange(struct subject *s)
{
	ud_route_resolved(s);
	REQUIRE_OK(connect_id(s->fd, s->id, &s->p.cparam));
	NEED_EVENT(s->p.sfd, EV_CONNECT_REQUEST, &s->p.request);
	s->p.server = s->p.request.id;
}

static void ud_req_sent(struct subject *s)
{
	ud_exchange(s);
	is_client(s);
}

static void ud_req_received(struct subject *s)
{
	ud_exchange(s);
	is_server(s);
}

static void ud_connected_passive(struct subject *s)
{
	ud_exchange(s);
	REQUIRE_OK(accept_id(s->p.sfd, s->p.server, 0x2222, &s->p.sparam));
	NEED_EVENT(s->p.cfd, EV_ESTABLISHED, NULL);
	is_server(s);
}

static void ud_connected_active(struct subject *s)
{
	ud_connected_passive(s);
	is_client(s);
}

static uint32_t join_group(int fd, uint32_t id)
{
	union addr group = addr4("239.1.2.3", 0);
	uint8_t req[152] = { 0 };
	uint32_t *answer = edge(4);

	put64(req, 0, ptr(answer));
	put64(req, 8, 0x4444);
	put32(req, 16, id);
	put16(req, 20, sizeof(group.in));
	memcpy(req + 24, &group, sizeof(group));
	REQUIRE_OK(cm_cmd(fd, RDMA_USER_CM_CMD_JOIN_MCAST, req, sizeof(req), 4));
	return *answer;
}

static void ud_joined(struct subject *s)
{
	ud_pair(s);
	s->group = join_group(s->fd, s->id);
	NEED_EVENT(s->fd, EV_MULTICAST_JOIN, NULL);
}

void take_zero(void)
{
	struct subject s = { 0 };

	ud_bound(&s);
	join_group(s.fd, s.id);
}

/* --- other port spaces --- */

static void ib_idle(struct subject *s)
{
	make(s, PS_IB, QPT_RC);
}

static void ib_bound(struct subject *s)
{
	union addr a = addr_ib(0x01060000, 0xffffffffffff0000);

	ib_idle(s);
	REQUIRE_OK(bind_addr(s->fd, s->id, &a));
}

/* There is a port with the loopback address, but no route to it. */
static void ib_resolved(struct subject *s)
{
	union addr a = addr_ib(0x01060000 | 7471, ~0ull);

	ib_idle(s);
	REQUIRE_OK(resolve_addr(s->fd, s->id, NULL, &a, 2000));
	NEED_EVENT(s->fd, EV_ADDR_RESOLVED, NULL);
}

static void ipoib_idle(struct subject *s)
{
	make(s, PS_IPOIB, QPT_UD);
}

/* Without a loopback address it takes InfiniBand. */
static void ipoib_resolved(struct subject *s)
{
	union addr a = addr4("127.0.0.1", 7471);

	ipoib_idle(s);
	REQUIRE_OK(resolve_addr(s->fd, s->id, NULL, &a, 2000));
	NEED_EVENT(s->fd, EV_ADDR_RESOLVED, NULL);
}

#define STATE(name) { #name, name }
#define WIDE(name) { #name, name, .wide = true }
/* These states are for an id of another type, of which there are connections. */
#define OF(prefix, type, name) { #prefix "_" #name, name, .qp_type = type }
#define RARE(prefix, type, name) { #prefix "_" #name, name, .rare = true, .qp_type = type }
#define CONNECTION_STATES(prefix, type)						\
	OF(prefix, type, route_resolved), OF(prefix, type, misfit),		\
	OF(prefix, type, req_received), OF(prefix, type, rep_received),		\
	OF(prefix, type, rep_sent), OF(prefix, type, established_active),	\
	OF(prefix, type, established_passive), OF(prefix, type, dreq_received),	\
	RARE(prefix, type, idle), RARE(prefix, type, bound), RARE(prefix, type, listening),	\
	RARE(prefix, type, child_waiting), RARE(prefix, type, addr_resolved),	\
	RARE(prefix, type, req_sent), RARE(prefix, type, event_waiting),	\
	RARE(prefix, type, dreq_sent), RARE(prefix, type, disconnected_active),	\
	RARE(prefix, type, disconnected_passive), RARE(prefix, type, rejected_active),	\
	RARE(prefix, type, rejected_passive), RARE(prefix, type, refused)

const struct state states[] = {
	WIDE(idle),
	STATE(idle_uid0),
	WIDE(bound),
	STATE(bound6),
	STATE(bound_any),
	STATE(bound_shared),
	WIDE(listening),
	STATE(listening_any),
	STATE(child_waiting),
	STATE(addr_query),
	STATE(addr_error),
	WIDE(addr_resolved),
	STATE(addr_resolved6),
	WIDE(route_resolved),
	STATE(route_resolved6),
	STATE(req_sent),
	WIDE(req_received),
	STATE(rep_received),
	STATE(rep_sent),
	WIDE(established_active),
	STATE(established_passive),
	STATE(event_waiting),
	STATE(dreq_sent),
	STATE(dreq_received),
	STATE(disconnected_active),
	STATE(disconnected_passive),
	STATE(rejected_active),
	STATE(rejected_passive),
	STATE(refused),
	STATE(migrated),
	STATE(ud_idle),
	STATE(ud_bound),
	STATE(ud_listening),
	STATE(ud_route_resolved),
	STATE(ud_req_sent),
	STATE(ud_req_received),
	STATE(ud_connected_active),
	STATE(ud_connected_passive),
	WIDE(ud_joined),
	STATE(ib_idle),
	STATE(ib_bound),
	STATE(ib_resolved),
	STATE(ipoib_idle),
	STATE(ipoib_resolved),
	CONNECTION_STATES(uc, QPT_UC),
	CONNECTION_STATES(xrc, QPT_XRC_INI),
	/* The type is that of the passive end: nothing can be asked for with it. */
	OF(xrc_tgt, QPT_XRC_TGT, route_resolved),
};
const size_t nr_states = sizeof(states) / sizeof(states[0]);

const struct state *state_named(const char *name)
{
	for (size_t i = 0; i < nr_states; i++)
		if (strcmp(states[i].name, name) == 0)
			return &states[i];
	return NULL;
}

void enter(const struct state *state, struct subject *s)
{
	memset(s, 0, sizeof(*s));
	s->group = ~0u;
	if (state->qp_type) {
		s->p.ps = PS_IB;
		s->p.qp_type = state->qp_type;
	}
	state->enter(s);
	s->other = cm_open(O_RDWR | O_NONBLOCK);
	s->foreign = REQUIRE_ID(create_id(s->other, PS_TCP, 0x9999));
}

/*
 * C then rejects and goes on repeating its own message, and a close of the file waits for that, a
 * minute.
 */
bool hangs_on_c(const struct state *state, const struct command *c)
{
	bool open = state->enter == req_sent || state->enter == rep_sent;

	return open && (c->number == RDMA_USER_CM_CMD_ACCEPT ||
			c->number == RDMA_USER_CM_CMD_REJECT);
}

/*
 * A link-local destination changes the interface of an id also where it is refused. By that
 * C finds the id again in a table of those that have a route: it is freed, and stays there.
 */
bool breaks_c(const struct state *state, const struct tcase *t)
{
	static void (*const unrouted[])(struct subject *s) = {
		idle, idle_uid0, bound, bound6, bound_any, bound_shared,
	};
	const struct command *c = t->command;

	if (c->number != RDMA_USER_CM_CMD_RESOLVE_IP && c->number != RDMA_USER_CM_CMD_RESOLVE_ADDR)
		return false;
	for (size_t i = 0; i < sizeof(unrouted) / sizeof(unrouted[0]); i++)
		if (state->enter == unrouted[i])
			return false;
	return strcmp(t->name, "LINKLOCAL6") == 0;
}

void leave(struct subject *s)
{
	int fds[] = { s->p.cfd, s->p.sfd, s->other };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] > 0)
			close(fds[i]);
	memset(s, 0, sizeof(*s));
}
