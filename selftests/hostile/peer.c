// SPDX-License-Identifier: GPL-2.0
/* A hostile peer, which sends from the address of another host and does not read the answers. */

#include "ends.h"
#include "server.h"
#include "wire.h"

#define CLOSED_PORT 9
/* Numbers that no queue pair has. */
#define NO_QP 0x600000

/* --- 1: an established connection --- */

/* A REQ with a queue pair number of the victim's peer, which claims that the old connection is lost. */
static void claim(uint8_t *mad, const struct hosts *h, bool victim, uint32_t qpn)
{
	static uint32_t comm_id = 0x51000000;
	struct forged_req req = {
		.src = h->gid[!victim], .dst = h->gid[victim], .comm_id = comm_id++, .qpn = qpn,
		.guid = h->guid[!victim], .port = CLOSED_PORT, .timeout = 20,
	};

	req_init(mad, &req);
}

/*
 * A message of another kind for a connection with these communication ids. It has one of them at most, or another queue
 * pair number.
 */
static void other(uint8_t *mad, unsigned int n, uint32_t own, uint32_t peer, uint32_t qpn, uint64_t guid)
{
	uint32_t wrong = 0x5a000000 + n;
	const uint32_t ids[][2] = { { peer, 0 }, { peer, wrong }, { wrong, own }, { 0, own }, { wrong, wrong + 1 } };
	const uint32_t *pair = ids[n / 7 % 5];
	unsigned int rest = n / 35;
	uint8_t *body = mad + BODY;

	switch (n % 7) {
	case 0:
	case 1:
		mad_init(mad, REJ, pair[0], pair[1]);
		body[8] = rest % 3 << 6;
		body[9] = 8 << 1;
		put(body + 10, n % 7 ? rest % 40 : 4, 2);
		put(body + 12, guid, 8);
		break;
	case 2:
		mad_init(mad, DREQ, rest % 2 ? pair[0] : peer, rest % 2 ? pair[1] : own);
		put(body + 8, rest % 2 ? qpn : qpn ^ (rest + 2), 3);
		break;
	case 3:
		mad_init(mad, REP, pair[0], pair[1]);
		put(body + 12, NO_QP + n % 0x1000, 3);
		put(body + 28, guid, 8);
		break;
	case 4:
		mad_init(mad, MRA, pair[0], pair[1]);
		body[8] = rest % 3 << 6;
		body[9] = 31 << 3;
		break;
	case 5:
		mad_init(mad, RTU, pair[0], pair[1]);
		break;
	default:
		mad_init(mad, DREP, pair[0], pair[1]);
	}
}

/*
 * Forged messages go to one end of a connection that carries data, from the address of the other end. "lost" is the
 * number of messages that were not received, "ended" that of ends with an event; "data" is 1 if data still goes both
 * ways, and "closed" is 1 if each end is told when the other one disconnects.
 */
ACT(forged, "4|6 here|there claims|others COUNT")
{
	struct hosts h = hosts(arguments[0]);
	bool victim = !strcmp(arguments[1], "there"), claims = !strcmp(arguments[2], "claims");
	uint32_t count = strtoul(arguments[3], NULL, 0), ids[2] = { 0 };
	struct end ends[2] = { 0 };
	int tap = wire(true);
	struct forger f;
	struct seen seen;

	connect_ends(ends, &h);
	REQUIRE(exchange_data(ends));
	while (sniff(tap, &seen))
		if (seen.attribute == REQ || seen.attribute == REP)
			ids[seen.attribute == REQ] = seen.local_id;
	close(tap);
	REQUIRE(ids[0] && ids[1]);
	forger_init(&f, !victim);
	for (uint32_t n = 0; n < count; n++) {
		uint8_t mad[MAD_LEN];

		if (claims)
			claim(mad, &h, victim, (ends[!victim].qp->qp_num + n - count / 2) & 0xffffff);
		else
			other(mad, n, ids[victim], ids[!victim], ends[victim].qp->qp_num, h.guid[!victim]);
		forge(&f, h.gid[!victim], h.gid[victim], mad);
	}
	printf("lost=%d ", forger_lost(&f));
	settle(&h, victim);
	printf("ended=%d ", ended(ends));
	printf("data=%d ", exchange_data(ends));
	printf("closed=%d\n", close_ends(ends));
}

/* --- 3: a peer that has restarted --- */

static void at_peer(const char *what, const char *more)
{
	char command[200];

	snprintf(command, sizeof(command), "ip netns exec peer tc qdisc %s dev v1 root%s", what, more);
	REQUIRE(system(command) == 0);
}

/* Sends a DREQ for no connection. Many use up the answers that the peer sends without a connection. */
static void forge_next(struct forger *f, const struct hosts *h, uint32_t n)
{
	uint8_t source[16], mad[MAD_LEN];

	gid_of(source, is_v4(h->gid[0]) ? "10.9.2.1" : "fd09::2:1");
	mad_init(mad, DREQ, 0x52000000 + 2 * n, 0x52000001 + 2 * n);
	forge(f, source, h->gid[1], mad);
}

/*
 * A peer that has lost a connection, with its DREQ, connects again from the same queue pair. "rejected" is the reason of
 * the REJ, "told" is 1 if the other end is told that the old connection has ended, "late" the time from the CONNECT to
 * that in ms, and "again" is 1 if the next CONNECT arrives at the listener.
 */
ACT(restarted, "4|6 quiet|flooded")
{
	struct hosts h = hosts(arguments[0]);
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_event_resp ev;
	struct end ends[2] = { 0 };
	union addr a = connect_ends(ends, &h);
	int here = ends[0].fd, there = ends[1].fd;
	pid_t flood = 0;
	uint64_t asked;
	bool told;

	at_peer("add", " netem loss 100%");
	destroy_id(there, ends[1].id);
	usleep(300000 * patience());
	at_peer("del", "");
	REQUIRE(no_event(here, 100));
	if (!strcmp(arguments[1], "flooded")) {
		share();
		flood = flooder(false, forge_next, &h, 3000);
	}

	param.qp_num = ends[1].qp->qp_num;
	asked = now_ms();
	REQUIRE_OK(connect_id(there, client_at(there, &a, true), &param));
	NEED_EVENT(there, EV_REJECTED, &ev);
	printf("rejected=%d ", (int)ev.status);
	told = wait_event(here, &ev, 5000 * patience()) >= 0 && ev.event == EV_DISCONNECTED;
	printf("told=%d late=%d ", told, (int)(now_ms() - asked));
	if (flood)
		kill_child(flood);
	REQUIRE_OK(connect_id(there, client_at(there, &a, true), &param));
	printf("again=%d\n", count_events(here, EV_CONNECT_REQUEST, 1, 5000, NULL));
}

/* --- 4: requests that nobody confirms --- */

#define FORGED 64
#define HONEST 20

/*
 * A client connects with the queue pair numbers of forged requests: "honest" times, and "connected" times with success.
 */
ACT(unconfirmed, "4|6")
{
	struct hosts h = hosts(arguments[0]);
	struct server *server = accept_from(file(), 0);
	union addr a = listen_at(server->fd, &h, false);
	int there = file(), connected = 0;
	struct forger f;

	forger_init(&f, true);
	for (uint32_t n = 0; n < FORGED; n++) {
		struct forged_req req = {
			.src = h.gid[1], .dst = h.gid[0], .comm_id = 0x53000000 + n, .qpn = NO_QP + n,
			.guid = h.guid[1], .port = addr_port(&a), .timeout = 20,
		};
		uint8_t mad[MAD_LEN];

		req_init(mad, &req);
		forge(&f, h.gid[1], h.gid[0], mad);
	}
	for (int i = 0; i < 10000 * patience() && server->accepted < FORGED; i++)
		usleep(1000);
	REQUIRE_EQ(FORGED, server->accepted);
	for (int n = 0; n < HONEST; n++) {
		struct rdma_ucm_conn_param param = conn_param();
		struct rdma_ucm_event_resp ev;
		uint32_t id = client_at(there, &a, true);

		param.qp_num = NO_QP + n;
		REQUIRE_OK(connect_id(there, id, &param));
		if (wait_event(there, &ev, 5000 * patience()) >= 0 && ev.event == EV_CONNECT_RESPONSE)
			connected += accept_id(there, id, 0, NULL) == 0;
	}
	printf("honest=%d connected=%d\n", HONEST, connected);
}

/* --- 11: answers to a source that has not asked --- */

#define WINDOW_MS 10000

/* A source whose address is forged, and the messages in both directions. */
struct source {
	const char *what;
	unsigned int requests, copies;
	bool unread;
	uint8_t gid[16];
	int sent, answers, reps;
};

static const struct source kinds[] = {
	{ .what = "one", .requests = 1, .copies = 1 },
	{ .what = "many", .requests = 100, .copies = 1 },
	{ .what = "again", .requests = 1, .copies = 21 },
	{ .what = "unread", .requests = 1, .copies = 501, .unread = true },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void forge_requests(struct forger *f, struct source *s, const uint8_t *dst, uint16_t port)
{
	static uint64_t guid = 0x0200000000000001;
	struct forged_req req = {
		.src = s->gid, .dst = dst, .comm_id = 0x54000000, .qpn = NO_QP, .guid = guid++, .port = port,
		.timeout = 17,
	};
	uint8_t mad[MAD_LEN];

	for (unsigned int n = 0; n < s->requests; n++, req.comm_id++, req.qpn++) {
		req_init(mad, &req);
		for (unsigned int copy = 0; copy < s->copies; copy++, s->sent++)
			forge(f, s->gid, dst, mad);
	}
}

static void count_answers(int tap, struct source *sources, size_t number)
{
	struct seen seen;

	while (sniff(tap, &seen))
		for (size_t i = 0; !seen.outgoing && i < number; i++)
			if (memcmp(sources[i].gid, seen.dst, 16) == 0) {
				sources[i].answers++;
				sources[i].reps += seen.attribute == REP;
			}
}

/*
 * Forged requests go to a server that accepts, and to one that does not read its events. The words are the numbers of
 * messages to a source within 10 s, less those from there, and "reps", the number of REPs for a request that is sent
 * once. They are the larger ones of IPv4 and IPv6. "answered" is 1 if there are answers over both.
 */
ACT(answers, "")
{
	struct server *server = accept_from(file(), 0);
	int deaf = file(), tap = wire(true);
	struct source sources[2 * KINDS] = { 0 }, *four = sources, *six = sources + KINDS;
	uint64_t end = now_ms() + WINDOW_MS;
	struct forger f;

	forger_init(&f, true);
	for (int v = 0; v < 2; v++) {
		struct hosts h = hosts(v ? "6" : "4");
		union addr read = listen_at(server->fd, &h, false), unread = listen_at(deaf, &h, false);

		for (size_t i = 0; i < KINDS; i++) {
			struct source *s = &sources[v * KINDS + i];
			char address[32];

			*s = kinds[i];
			snprintf(address, sizeof(address), v ? "fd09::1:%zu" : "10.9.1.%zu", i + 1);
			gid_of(s->gid, address);
			forge_requests(&f, s, h.gid[0], addr_port(s->unread ? &unread : &read));
		}
	}
	REQUIRE_EQ(0, forger_lost(&f));
	while (now_ms() < end) {
		usleep(20000);
		count_answers(tap, sources, 2 * KINDS);
	}
	for (size_t i = 0; i < KINDS; i++)
		printf("%s=%d ", kinds[i].what, larger(four[i].answers - four[i].sent, six[i].answers - six[i].sent));
	printf("answered=%d reps=%d\n", four[0].answers && six[0].answers, larger(four[0].reps, six[0].reps));
}
