// SPDX-License-Identifier: GPL-2.0
/*
 * Paths from a service of this host, as ibacm is, which the kernel asks before the subnet administrator: by a
 * netlink message to those in a group. The answer may have several records, with what each is for.
 */
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "ib.h"

#define PRIMARY 0x02	/* IB_PATH_PRIMARY */
#define CONNECTED 0x2b	/* and for messages, and for both directions */
#define OUTBOUND 0x0a
#define INBOUND 0x12
#define RESOLVE RDMA_NL_GET_TYPE(RDMA_NL_LS, RDMA_NL_LS_OP_RESOLVE)
#define DLID 41		/* the lower bytes in a record */
#define HOP_LIMIT 47
#define OUTBOUND_LID 0x51
#define INBOUND_LID 0x52
#define SECONDS 10
#define PORT 7860

/* A message of the kernel, or an answer, with room for records. */
struct message {
	struct nlmsghdr h;
	uint8_t body[1024];
};

static int open_service(void)
{
	struct sockaddr_nl a = { .nl_family = AF_NETLINK, .nl_groups = 1 << (RDMA_NL_GROUP_LS - 1) };
	struct timeval limit = { .tv_sec = SECONDS };
	int s = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	REQUIRE(s >= 0);
	REQUIRE_EQ(0, bind(s, (void *)&a, sizeof(a)));
	REQUIRE_EQ(0, setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	return s;
}

/* Returns the number of the question, if it is for this service; IPoIB asks, too. */
static bool is_about(const struct message *m, uint64_t sid)
{
	const struct nlattr *a = (void *)(m->body + NLMSG_ALIGN(sizeof(struct rdma_ls_resolve_header)));
	const uint8_t *end = (const uint8_t *)m + m->h.nlmsg_len;
	uint64_t asked;

	while ((const uint8_t *)(a + 1) <= end && a->nla_len >= sizeof(*a)) {
		if ((a->nla_type & NLA_TYPE_MASK & ~RDMA_NLA_F_MANDATORY) == LS_NLA_TYPE_SERVICE_ID) {
			memcpy(&asked, a + 1, sizeof(asked));
			return asked == sid;
		}
		a = (const void *)((const uint8_t *)a + NLA_ALIGN(a->nla_len));
	}
	return false;
}

static uint32_t asked(int s, uint64_t sid)
{
	struct message m;

	do
		REQUIRE(recv(s, &m, sizeof(m), 0) > (ssize_t)sizeof(m.h));
	while (m.h.nlmsg_type != RESOLVE || !is_about(&m, sid));
	return m.h.nlmsg_seq;
}

static void add(struct message *m, uint32_t flags, const struct record *r)
{
	struct nlattr *a = (void *)((uint8_t *)m + NLMSG_ALIGN(m->h.nlmsg_len));
	struct ib_path_rec_data data = { .flags = flags };

	memcpy(data.path_rec, r->r, sizeof(r->r));
	a->nla_type = LS_NLA_TYPE_PATH_RECORD;
	a->nla_len = NLA_HDRLEN + sizeof(data);
	memcpy(a + 1, &data, sizeof(data));
	m->h.nlmsg_len = NLMSG_ALIGN(m->h.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static void say(int s, struct message *m, uint32_t seq)
{
	m->h.nlmsg_seq = seq;
	REQUIRE_EQ(m->h.nlmsg_len, send(s, m, m->h.nlmsg_len, 0));
}

/* An answer without records: an error, or what others are added to. */
static struct message answer(uint16_t flags)
{
	return (struct message){ .h = { NLMSG_HDRLEN, RESOLVE, flags, 0, 0 } };
}

static struct record with(const struct record *r, int at, uint8_t value)
{
	struct record changed = *r;

	changed.r[at] = value;
	return changed;
}

/* The client has asked for its route, and is answered. */
static void ask_and_say(struct pair *p, int s, uint16_t port, struct message *m)
{
	REQUIRE_OK(resolve_route(p->cfd, p->client, 20000));
	say(s, m, asked(s, SID_TCP | port));
}

/* The LID of the peer in the attributes of the queue pair. */
static int data_lid(int f, uint32_t id)
{
	return qp_attr(f, id, RTR).ah_attr.dlid;
}

/* A client whose address is resolved, and its listener. */
static int begin(struct pair *p, uint16_t port)
{
	union addr a = addr4(PEER4, port);

	need_ib();
	ib_listen(p, &a);
	ib_resolved(p, NULL);
	return open_service();
}

static void with_hops(uint16_t port, uint8_t hops)
{
	struct message m = answer(0);
	struct record r = record_of("ib_a", "ib_b", SID_TCP | port, PKEY), way, back;
	struct port own = port_of("ib_a");
	struct pair p = { 0 };
	int s = begin(&p, port);

	r.r[HOP_LIMIT] = hops;
	way = with(&r, DLID, OUTBOUND_LID);
	back = with(&r, DLID, INBOUND_LID);
	add(&m, INBOUND, &back);
	add(&m, CONNECTED, &r);
	add(&m, OUTBOUND, &way);
	ask_and_say(&p, s, port, &m);
	NEED_PLAIN(p.cfd, EV_ROUTE_RESOLVED, p.client, p.client_uid, 0);
	close(s);
	CHECK_PATH(p.cfd, p.client, &r);
	/* The messages go along the path that is for them. */
	ib_requested(&p);
	CHECK_EQ(hops > 1 ? INBOUND_LID : own.lid, data_lid(p.sfd, p.server));
	ib_accepted(&p);
	CHECK_EQ(OUTBOUND_LID, data_lid(p.cfd, p.client));
	ib_established(&p);
	CHECK_EQ(OUTBOUND_LID, data_lid(p.cfd, p.client));
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
}

TEST(ib, local_service_with_a_path_for_each_direction)
{
	with_hops(PORT, 0);
}

/* The peer is told of the way back only if that is through routers. */
TEST(ib, local_service_with_a_path_back_through_routers)
{
	with_hops(PORT + 1, 64);
}

TEST(ib, local_service_with_one_path)
{
	struct message m = answer(0);
	struct record r = record_of("ib_a", "ib_b", SID_TCP | (PORT + 2), PKEY);
	struct pair p = { 0 };
	int s = begin(&p, PORT + 2);

	add(&m, CONNECTED, &r);
	ask_and_say(&p, s, PORT + 2, &m);
	NEED_PLAIN(p.cfd, EV_ROUTE_RESOLVED, p.client, p.client_uid, 0);
	close(s);
	CHECK_PATH(p.cfd, p.client, &r);
	ib_requested(&p);
	ib_accepted(&p);
	CHECK_EQ(port_of("ib_b").lid, data_lid(p.cfd, p.client));
}

/* A path whose use nobody knows, though there is one that would do. */
TEST(ib, local_service_with_a_path_of_no_use)
{
	struct message m = answer(0);
	struct record r = record_of("ib_a", "ib_b", SID_TCP | (PORT + 3), PKEY);
	struct pair p = { 0 };
	int s = begin(&p, PORT + 3);

	add(&m, CONNECTED, &r);
	add(&m, PRIMARY, &r);
	ask_and_say(&p, s, PORT + 3, &m);
	NEED_PLAIN(p.cfd, EV_ROUTE_ERROR, p.client, p.client_uid, -EINVAL);
	/* Once more, with the right ones. */
	m = answer(0);
	add(&m, CONNECTED, &r);
	ask_and_say(&p, s, PORT + 3, &m);
	NEED_PLAIN(p.cfd, EV_ROUTE_RESOLVED, p.client, p.client_uid, 0);
	close(s);
}

/* The administrator is asked if the service has no answer. */
TEST(ib, local_service_that_knows_no_path)
{
	struct message m = answer(RDMA_NL_LS_F_ERR);
	struct record r = record_of("ib_a", "ib_b", SID_TCP | (PORT + 4), PKEY);
	struct pair p = { 0 };
	int s = begin(&p, PORT + 4);

	ask_and_say(&p, s, PORT + 4, &m);
	NEED_PLAIN(p.cfd, EV_ROUTE_RESOLVED, p.client, p.client_uid, 0);
	close(s);
	CHECK_PATH(p.cfd, p.client, &r);
}
