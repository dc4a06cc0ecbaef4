// SPDX-License-Identifier: GPL-2.0
/* Every function, wherever an identifier is. */
#include "cmid.h"

#define B(situation) (1U << (situation))
/* Where there is a connection, or somebody wants one. */
#define CONNECTING (B(REQ_SENT) | B(REQ_RCVD) | B(RESPONSE) | B(ACCEPTED) | B(ESTABLISHED) | \
		    B(REJECTED) | B(UNREACHABLE))
#define EVERYWHERE (~0U)

static int bind_nothing(struct side *side)
{
	struct sockaddr place = { .sa_family = AF_UNSPEC };

	return rdma_bind_addr(side->id, &place);
}

static int resolve_service(struct side *side)
{
	struct rdma_ucm_ib_service service = { .flags = RDMA_USER_CM_IB_SERVICE_FLAG_ID };
	int ret = rdma_resolve_ib_service(side->id, &service);

	/* There are none over RoCE. */
	return ret == -EOPNOTSUPP && side->id->device ? -EINVAL : ret;
}

static int set_path(struct side *side)
{
	struct sa_path_rec path = {};

	return rdma_set_ib_path(side->id, &path);
}

static int create_qp_without_device(struct side *side)
{
	return side->id->device ? -EINVAL : create_qp(side);
}

static int notify_migration_error(struct side *side)
{
	return rdma_notify(side->id, IB_EVENT_PATH_MIG_ERR);
}

static int notify_data(struct side *side)
{
	return rdma_notify(side->id, IB_EVENT_COMM_EST);
}

static int join(struct side *side)
{
	return side->id->qp ? -EINVAL :
	       rdma_join_multicast(side->id, at(0xef010203, 0), BIT(0), NULL);
}

static int reuse(struct side *side)
{
	return rdma_set_reuseaddr(side->id, 1);
}

static int no_reuse(struct side *side)
{
	return rdma_set_reuseaddr(side->id, 0);
}

static int one_family(struct side *side)
{
	return rdma_set_afonly(side->id, 1);
}

static int ack_timeout(struct side *side)
{
	return rdma_set_ack_timeout(side->id, 17);
}

static int rnr_timer(struct side *side)
{
	return rdma_set_min_rnr_timer(side->id, 12);
}

static int long_rnr_timer(struct side *side)
{
	return rdma_set_min_rnr_timer(side->id, 32);
}

static int restrict_type(struct side *side)
{
	int ret = rdma_restrict_node_type(side->id, RDMA_NODE_IB_CA);

	return ret == -EALREADY ? -EINVAL : ret;
}

static int restrict_switch(struct side *side)
{
	return rdma_restrict_node_type(side->id, RDMA_NODE_IB_SWITCH);
}

/* What each does: nothing but to fail with EINVAL, unless it succeeds and changes nothing; left out
 * where it would do what it is for.
 */
static const struct {
	const char *name;
	int (*act)(struct side *side);
	u32 succeeds;
	u32 is_for;
	/* The lock of the handler, which a callback has: taken by the function, or needed. */
	bool takes, needs;
} acts[] = {
	{ "bind", bind, 0, B(NEW) },
	{ "resolve", resolve, 0, B(NEW) | B(BOUND) },
	{ "resolve_route", resolve_route, 0, B(RESOLVED) },
	{ "resolve_service", resolve_service },
	{ "set_path", set_path, 0, B(RESOLVED) },
	{ "create_qp", create_qp_without_device },
	{ "connect", connect, 0, B(ROUTE_RESOLVED), .takes = true },
	{ "connect_ece", connect_ece, 0, B(ROUTE_RESOLVED), .takes = true },
	/* The route of RoCE may be known before anybody is told. */
	{ "connect_locked", connect_locked, 0, B(ROUTE_QUERY) | B(ROUTE_RESOLVED), .needs = true },
	{ "listen", listen, 0, B(NEW) | B(BOUND) },
	{ "accept", accept, 0, CONNECTING, .needs = true },
	{ "accept_ece", accept_ece, 0, CONNECTING, .needs = true },
	{ "accept_nothing", accept_nothing, 0, CONNECTING, .needs = true },
	{ "notify_data", notify_data, 0, CONNECTING },
	{ "notify_migration_error", notify_migration_error },
	{ "reject", reject, 0, B(REQ_SENT) | B(REQ_RCVD) | B(RESPONSE) | B(ACCEPTED) },
	{ "disconnect", disconnect, CONNECTING | B(DISCONNECTED) | B(LISTENING),
	  B(ESTABLISHED) | B(DISCONNECTING) },
	{ "join", join },
	{ "reuse", reuse, ~B(LISTENING) },
	{ "no_reuse", no_reuse, B(NEW) },
	{ "one_family", one_family, B(NEW) | B(BOUND) },
	{ "ack_timeout", ack_timeout, EVERYWHERE },
	{ "rnr_timer", rnr_timer, EVERYWHERE },
	{ "long_rnr_timer", long_rnr_timer },
	{ "restrict", restrict_type, B(NEW) },
	{ "restrict_switch", restrict_switch },
};

/* What only looks, and so can be done everywhere. */
static void look(struct side *side)
{
	struct sockaddr_in place = { .sin_family = AF_INET, .sin_port = htons(4420) };
	struct in6_addr mapped;
	union ib_gid own, far;

	CHECK(rdma_get_service_id(side->id, (struct sockaddr *)&place) ==
	      cpu_to_be64(((u64)side->id->ps << 16) + 4420));
	memset(&own, 0xff, sizeof(own));
	rdma_read_gids(side->id, &own, &far);
	rdma_read_gids(side->id, NULL, NULL);
	if (side->id->device) {
		ipv6_addr_set_v4mapped(htonl(address), &mapped);
		CHECK(side->id->device == dev);
		CHECK(!memcmp(&own, &mapped, sizeof(own)));
		CHECK(!rdma_iw_cm_id(side->id));
		IS(strcmp(rdma_reject_msg(side->id, 28), "consumer defined"), 0);
		IS(side->id->port_num, 1);
	} else {
		IS(memchr_inv(&own, 0, sizeof(own)) != NULL, 0);
		IS(memchr_inv(&far, 0, sizeof(far)) != NULL, 0);
	}
	rdma_set_service_type(side->id, 0);
	rdma_leave_multicast(side->id, at(0xef010203, 0));
}

/* A side is in a situation, which nothing changes that is for another. The caller is inside if it has
 * the lock of the handler, or is in a callback.
 */
void calls_at(struct side *side, enum situation situation, bool inside, int line)
{
	int i, ret, right;

	look(side);
	if (situation == ANY)
		return;
	for (i = 0; i < ARRAY_SIZE(acts); i++) {
		if ((acts[i].is_for & B(situation)) || (inside && acts[i].takes))
			continue;
		right = acts[i].succeeds & B(situation) ? 0 : -EINVAL;
		/* It ends what a queue pair does. */
		if (acts[i].act == disconnect && side->id->qp)
			continue;
		if (acts[i].needs && !inside)
			rdma_lock_handler(side->id);
		ret = acts[i].act(side);
		if (acts[i].needs && !inside)
			rdma_unlock_handler(side->id);
		if (ret != right) {
			pr_err("cmid: line %d: %s in situation %d %s is %d, not %d\n", line,
			       acts[i].name, situation, inside ? "inside" : "outside", ret, right);
			good = false;
		}
	}
	IS(bind_nothing(side), -EAFNOSUPPORT);
}
