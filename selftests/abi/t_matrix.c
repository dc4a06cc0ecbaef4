// SPDX-License-Identifier: GPL-2.0
/*
 * Every command in every state of an id: what it answers, and that a command that
 * fails leaves what can be seen of the id as it was. The table is what C answers.
 */
#include "mcast.h"

enum command {
	BIND, RESOLVE_ADDR, RESOLVE_ROUTE, LISTEN, CONNECT, ACCEPT, ACCEPT_NULL, REJECT,
	DISCONNECT, NOTIFY, ATTR_INIT, ATTR_RTR, ATTR_RTS, TOS, REUSEADDR, AFONLY,
	ACK_TIMEOUT, QUERY_ADDR, QUERY_ROUTE, JOIN, SERVICE, WRITE, PATH, COMMANDS
};

static const char *const names[COMMANDS] = {
	"BIND", "RESOLVE_ADDR", "RESOLVE_ROUTE", "LISTEN", "CONNECT", "ACCEPT",
	"ACCEPT without parameters", "REJECT", "DISCONNECT", "NOTIFY", "INIT_QP_ATTR INIT",
	"INIT_QP_ATTR RTR", "INIT_QP_ATTR RTS", "SET_OPTION TOS", "SET_OPTION REUSEADDR",
	"SET_OPTION AFONLY", "SET_OPTION ACK_TIMEOUT", "QUERY ADDR", "QUERY_ROUTE",
	"JOIN_MCAST", "RESOLVE_IB_SERVICE", "WRITE_CM_EVENT", "SET_OPTION PATH",
};

static long issue(enum command c, int f, uint32_t id)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_query_addr_resp addr;
	struct rdma_ucm_query_route_resp route;
	struct { uint32_t id, reserved, word[78]; } request = { 0 };
	struct ib_path_rec_data path = { .flags = 0x2b };
	struct ib_uverbs_qp_attr attr;
	union addr a = any_port4();
	int one = 1;

	switch (c) {
	case BIND:
		return bind_addr(f, id, &a);
	case RESOLVE_ADDR:
		a = addr4(ADDR4, 7471);
		return resolve_addr(f, id, NULL, &a, 1000);
	case RESOLVE_ROUTE:
		return resolve_route(f, id, 1000);
	case LISTEN:
		return listen_id(f, id, 0);
	case CONNECT:
		return connect_id(f, id, &param);
	case ACCEPT:
		return accept_id(f, id, 1, &param);
	case ACCEPT_NULL:
		return accept_id(f, id, 1, NULL);
	case REJECT:
		return reject_id(f, id, NULL, 0, 0);
	case DISCONNECT:
		return disconnect_id(f, id);
	case NOTIFY:
		return notify_id(f, id, 4);
	case ATTR_INIT:
	case ATTR_RTR:
	case ATTR_RTS:
		return init_qp_attr(f, id, 1 + c - ATTR_INIT, &attr);
	case TOS:
		return set_option(f, id, 0, RDMA_OPTION_ID_TOS, &one, 1);
	case REUSEADDR:
		return set_option(f, id, 0, RDMA_OPTION_ID_REUSEADDR, &one, 4);
	case AFONLY:
		return set_option(f, id, 0, RDMA_OPTION_ID_AFONLY, &one, 4);
	case ACK_TIMEOUT:
		return set_option(f, id, 0, RDMA_OPTION_ID_ACK_TIMEOUT, &one, 1);
	case QUERY_ADDR:
		return query_addr(f, id, &addr);
	case QUERY_ROUTE:
		return query_route(f, id, &route);
	case JOIN:
		return join4(f, id, 1, "239.1.2.3", 0);
	case SERVICE:
		request.id = id;
		return cm_cmd(f, CMD_RESOLVE_IB_SERVICE, &request, 88, 0);
	case WRITE:
		request.id = id;
		request.word[0] = 18;	/* a user's event */
		return cm_cmd(f, CMD_WRITE_CM_EVENT, &request, 320, 0);
	case PATH:
		return set_option(f, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &path, sizeof(path));
	default:
		return -ENOSYS;
	}
}

/* The visible state of an id. */
struct view {
	struct rdma_ucm_query_addr_resp addr, gid;
	struct rdma_ucm_query_route_resp route;
	struct ib_uverbs_qp_attr attr[3];
	long attr_ret[3];
};

static void look(struct view *v, int f, uint32_t id)
{
	memset(v, 0, sizeof(*v));
	query_addr(f, id, &v->addr);
	query_gid(f, id, &v->gid);
	query_route(f, id, &v->route);
	for (int i = 0; i < 3; i++)
		v->attr_ret[i] = init_qp_attr(f, id, 1 + i, &v->attr[i]);
}

static void idle(struct pair *p)
{
	p->cfd = cm_open(O_RDWR | O_NONBLOCK);
	p->client = REQUIRE_ID(create_id(p->cfd, PS_TCP, 1));
}

static void bound(struct pair *p)
{
	idle(p);
	REQUIRE_OK(bind4(p->cfd, p->client, ADDR4, 0));
}

static void bound_any(struct pair *p)
{
	idle(p);
	REQUIRE_OK(bind4(p->cfd, p->client, "0.0.0.0", 0));
}

static void listening(struct pair *p)
{
	bound(p);
	REQUIRE_OK(listen_id(p->cfd, p->client, 0));
}

static void listening_any(struct pair *p)
{
	bound_any(p);
	REQUIRE_OK(listen_id(p->cfd, p->client, 0));
}

static void addr_query(struct pair *p)
{
	union addr a = absent4(7471);

	idle(p);
	REQUIRE_OK(resolve_addr(p->cfd, p->client, NULL, &a, 100000));
}

static void addr_error(struct pair *p)
{
	union addr a = absent4(7471);

	idle(p);
	REQUIRE_OK(resolve_addr(p->cfd, p->client, NULL, &a, 10));
	NEED_EVENT(p->cfd, EV_ADDR_ERROR, NULL);
}

static const union addr *here(void)
{
	static union addr a;

	a = any_port4();
	return &a;
}

static void addr_resolved(struct pair *p)
{
	pair_resolved_addr(p, here());
}

static void route_resolved(struct pair *p)
{
	pair_routed(p, here());
}

static void requested(struct pair *p)
{
	pair_requested(p, here());
}

static void accepted(struct pair *p)
{
	pair_accepted(p, here());
}

static void established(struct pair *p)
{
	pair_established(p, here());
}

static void disconnecting(struct pair *p)
{
	established(p);
	REQUIRE_OK(disconnect_id(p->cfd, p->client));
	NEED_EVENT(p->sfd, EV_DISCONNECTED, NULL);
}

static void timewait(struct pair *p)
{
	disconnecting(p);
	REQUIRE_OK(disconnect_id(p->sfd, p->server));
	NEED_EVENT(p->cfd, EV_DISCONNECTED, NULL);
}

static void after_timewait(struct pair *p)
{
	timewait(p);
	NEED_EVENT(p->cfd, EV_TIMEWAIT_EXIT, NULL);
	NEED_EVENT(p->sfd, EV_TIMEWAIT_EXIT, NULL);
}

static void rejected(struct pair *p)
{
	requested(p);
	REQUIRE_OK(reject_id(p->sfd, p->server, NULL, 0, 0));
	NEED_EVENT(p->cfd, EV_REJECTED, NULL);
}

/* --- datagrams --- */

static void ud_idle(struct pair *p)
{
	p->cfd = cm_open(O_RDWR | O_NONBLOCK);
	p->client = REQUIRE_ID(create_id(p->cfd, PS_UDP, 1));
}

static void ud_bound(struct pair *p)
{
	ud_idle(p);
	REQUIRE_OK(bind4(p->cfd, p->client, ADDR4, 0));
}

static void ud_bound_any(struct pair *p)
{
	ud_idle(p);
	REQUIRE_OK(bind4(p->cfd, p->client, "0.0.0.0", 0));
}

static void ud_listening(struct pair *p)
{
	ud_bound(p);
	REQUIRE_OK(listen_id(p->cfd, p->client, 0));
}

static void ud_listening_any(struct pair *p)
{
	ud_bound_any(p);
	REQUIRE_OK(listen_id(p->cfd, p->client, 0));
}

static void ud_addr_query(struct pair *p)
{
	union addr a = absent4(7471);

	ud_idle(p);
	REQUIRE_OK(resolve_addr(p->cfd, p->client, NULL, &a, 100000));
}

static void ud_addr_resolved(struct pair *p)
{
	p->ps = PS_UDP;
	addr_resolved(p);
}

static void ud_route_resolved(struct pair *p)
{
	p->ps = PS_UDP;
	route_resolved(p);
}

static void ud_requested(struct pair *p)
{
	p->ps = PS_UDP;
	requested(p);
}

static void ud_answered(struct pair *p)
{
	ud_requested(p);
	REQUIRE_OK(accept_id(p->sfd, p->server, p->server_uid, &p->sparam));
	NEED_EVENT(p->cfd, EV_ESTABLISHED, NULL);
}

static void ud_refused(struct pair *p)
{
	ud_requested(p);
	REQUIRE_OK(reject_id(p->sfd, p->server, NULL, 0, 0));
	NEED_EVENT(p->cfd, EV_UNREACHABLE, NULL);
}

static void ud_joined(struct pair *p)
{
	ud_bound(p);
	REQUIRE_ID(join4(p->cfd, p->client, 1, GROUP, 0));
	NEED_EVENT(p->cfd, EV_MULTICAST_JOIN, NULL);
}

/* --- native addresses, and an id that only InfiniBand could serve --- */

static void ib_idle(struct pair *p)
{
	p->cfd = cm_open(O_RDWR | O_NONBLOCK);
	p->client = REQUIRE_ID(create_id_type(p->cfd, PS_IB, QPT_RC, 1));
}

static void ib_bound(struct pair *p)
{
	union addr a = addr_ib(0x01060000, 0xffffffffffff0000);

	ib_idle(p);
	REQUIRE_OK(bind_addr(p->cfd, p->client, &a));
}

static void ib_listening(struct pair *p)
{
	ib_bound(p);
	REQUIRE_OK(listen_id(p->cfd, p->client, 0));
}

static void ib_addr_resolved(struct pair *p)
{
	union addr a = addr_ib(0x01060000 | 7471, ~0ull);

	ib_idle(p);
	NEED_ADDR(p->cfd, p->client, NULL, &a);
}

static void ipoib_idle(struct pair *p)
{
	p->cfd = cm_open(O_RDWR | O_NONBLOCK);
	p->client = REQUIRE_ID(create_id(p->cfd, PS_IPOIB, 1));
}

static void ipoib_addr_resolved(struct pair *p)
{
	union addr a = addr4("127.0.0.1", 7471);

	ipoib_idle(p);
	NEED_ADDR(p->cfd, p->client, NULL, &a);
}

/* Errors by state and command. V is EINVAL. */
#define V EINVAL
/*
 * C then rejects without ending the retries of its own message, and destroying the
 * id waits for these, a minute: not done on C.
 */
#define HANGS 1000
#define H(err) (HANGS + (err))

static const struct state {
	const char *name;
	void (*enter)(struct pair *p);
	bool passive;
	int want[COMMANDS];
} states[] = {
#include "matrix.h"
};

static void in_state(const struct state *s)
{
	for (int c = 0; c < COMMANDS; c++) {
		struct footprint had, has;
		struct view before, after;
		struct pair p = { 0 };
		long ret;
		int f;
		uint32_t id;

		if (s->want[c] >= HANGS && !is_rust())
			continue;
		s->enter(&p);
		f = s->passive ? p.sfd : p.cfd;
		id = s->passive ? p.server : p.client;
		look(&before, f, id);
		footprint(&had, f, id);
		ret = issue(c, f, id);
		if (getenv("MATRIX")) {
			printf("%s %s %ld\n", s->name, names[c], -ret);
		} else {
			int want = s->want[c] % HANGS;
			char what[100];

			snprintf(what, sizeof(what), "%s: %s", s->name, names[c]);
			check_err(__FILE__, __LINE__, what, want, ret);
			/* An accept that fails also rejects. */
			if (ret < 0 && c != ACCEPT && c != ACCEPT_NULL &&
			    !(c <= RESOLVE_ADDR && differs("failed_bind_leaves_address"))) {
				look(&after, f, id);
				check_mem(__FILE__, __LINE__, what, &before, &after,
					  sizeof(before));
				footprint(&has, f, id);
				/* The end of time wait is told by itself, sooner or later. */
				if (strncmp(s->name, "timewait", 8) == 0)
					has.events = had.events;
				if (footprint_differs(&had, &has))
					fail(__FILE__, __LINE__, "%s changes %s", what,
					     footprint_differs(&had, &has));
			}
		}
		if (p.cfd)
			close(p.cfd);
		if (p.sfd)
			close(p.sfd);
	}
}

static void named(const char *name)
{
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(states[i].name, name) == 0) {
			in_state(&states[i]);
			return;
		}
	}
	fail(__FILE__, __LINE__, "no state %s", name);
}

#define MATRIX(name) TEST_LIMIT(matrix, name, 60) { named(#name); }

MATRIX(idle)
MATRIX(bound)
MATRIX(bound_any)
MATRIX(listening)
MATRIX(listening_any)
MATRIX(addr_query)
MATRIX(addr_error)
MATRIX(addr_resolved)
MATRIX(route_resolved)
MATRIX(req_sent)
MATRIX(req_received)
MATRIX(rep_received)
MATRIX(rep_sent)
MATRIX(established_active)
MATRIX(established_passive)
MATRIX(dreq_sent)
MATRIX(dreq_received)
MATRIX(timewait_active)
MATRIX(timewait_passive)
MATRIX(after_timewait_active)
MATRIX(after_timewait_passive)
MATRIX(rejected_active)
MATRIX(rejected_passive)
MATRIX(ud_idle)
MATRIX(ud_bound)
MATRIX(ud_bound_any)
MATRIX(ud_listening)
MATRIX(ud_listening_any)
MATRIX(ud_addr_query)
MATRIX(ud_addr_resolved)
MATRIX(ud_route_resolved)
MATRIX(ud_req_sent)
MATRIX(ud_req_received)
MATRIX(ud_answered_active)
MATRIX(ud_answered_passive)
MATRIX(ud_refused_active)
MATRIX(ud_refused_passive)
MATRIX(ud_joined)
MATRIX(ib_idle)
MATRIX(ib_bound)
MATRIX(ib_listening)
MATRIX(ib_addr_resolved)
MATRIX(ipoib_idle)
MATRIX(ipoib_addr_resolved)
