// SPDX-License-Identifier: GPL-2.0
/* Numbers of queue pairs of others. */
#include <sched.h>

#include "ends.h"

/* The user whose queue pair it is. */
#define OWNER SOMEBODY
#define CLOSED_PORT 9

/* The device, and an address of it: of soft-RoCE, unless the environment says otherwise. */
static const char *device(void)
{
	return getenv("HOSTILE_DEVICE") ?: "rxe0";
}

static union addr here(uint16_t port)
{
	const char *address = getenv("HOSTILE_ADDRESS") ?: ADDR4;

	return strchr(address, ':') ? addr6(address, port) : addr4(address, port);
}

static struct ibv_pd *pd;
static struct ibv_cq *cq;

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ibv_qp *qp;

	if (!pd) {
		struct ibv_context *context = open_device(device());

		REQUIRE((pd = ibv_alloc_pd(context)));
		REQUIRE((cq = ibv_create_cq(context, 1, NULL, NULL, 0)));
	}
	attr.send_cq = cq;
	attr.recv_cq = cq;
	REQUIRE((qp = ibv_create_qp(pd, &attr)));
	return qp;
}

/* The queue pair with this number, which is one of the next. */
static void make_qp_number(uint32_t number)
{
	for (int i = 0; i < 64; i++)
		if (make_qp()->qp_num == number)
			return;
	fail(__FILE__, __LINE__, "no queue pair has the number 0x%x", number);
	stop();
}

static long try_connect(uint32_t number, uint16_t port)
{
	union addr dst = here(port);
	struct rdma_ucm_conn_param param = conn_param();
	int fd = file();
	uint32_t id = routed_client(fd, 1, &dst);

	param.qp_num = number;
	return connect_id(fd, id, &param);
}

/* The event of the ones that come within a second which says that a connection is over. */
static bool is_ended(int fd)
{
	struct rdma_ucm_event_resp ev;

	while (wait_event(fd, &ev, 1000 * patience()) >= 0)
		if (ev.event == EV_DISCONNECTED)
			return true;
	return false;
}

/* The owner: a connection of a real queue pair, and whether it has ended when all is over. */
static pid_t connected_owner(void)
{
	union addr a = here(0);
	struct pair p = { 0 };
	pid_t pid = child();

	if (pid)
		return pid;
	become(OWNER);
	pair_routed(&p, &a);
	p.cparam.qp_num = make_qp()->qp_num;
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
	REQUIRE_OK(accept_id(p.sfd, p.request.id, p.server_uid, &p.sparam));
	NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
	REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
	NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
	shared->number = p.cparam.qp_num;
	sem_post(&shared->ready);
	wait_for(&shared->go);
	printf("ended=%d\n", is_ended(p.cfd));
	finished();
	return 0;
}

static long steal_connect(void)
{
	return try_connect(shared->number, CLOSED_PORT);
}

/* As the passive end, whose REP has the number. */
static long steal_accept(void)
{
	union addr a = here(0);
	struct pair p = { 0 };

	pair_requested(&p, &a);
	p.sparam.qp_num = shared->number;
	return accept_id(p.sfd, p.server, p.server_uid, &p.sparam);
}

/* Root of a user namespace of its own is who it was. */
static long steal_userns(void)
{
	REQUIRE(unshare(CLONE_NEWUSER) == 0);
	return steal_connect();
}

static const struct {
	const char *name;
	unsigned int user;
	long (*steal)(void);
} thieves[] = {
	{ "connect", NOBODY, steal_connect },
	{ "accept", NOBODY, steal_accept },
	{ "userns", NOBODY, steal_userns },
	/* Another process of the owner. */
	{ "owner", OWNER, steal_connect },
	{ "root", 0, steal_connect },
};

/*
 * Another process names the number of a connected queue pair: whether it is refused, and whether the connection of the
 * owner ends.
 */
ACT(steal, "connect|accept|userns|owner|root")
{
	pid_t owner, thief;

	share();
	owner = connected_owner();
	wait_for(&shared->ready);
	thief = child();
	if (thief == 0) {
		for (size_t i = 0; i < sizeof(thieves) / sizeof(thieves[0]); i++) {
			if (strcmp(thieves[i].name, arguments[0]))
				continue;
			become(thieves[i].user);
			printf("error=%ld ", -thieves[i].steal());
			/* The peer is to see it before this process ends. */
			usleep(300000 * patience());
			finished();
		}
		stop();
	}
	REQUIRE(reap(thief) == 0);
	sem_post(&shared->go);
	REQUIRE(reap(owner) == 0);
}

/* The descriptor of the queue pair's device is not the right to its number. */
ACT(steal_passed, "")
{
	pid_t thief;
	uint32_t number;

	share();
	number = make_qp()->qp_num;
	thief = child();
	if (thief == 0) {
		become(NOBODY);
		printf("error=%ld\n", -try_connect(number, CLOSED_PORT));
		finished();
	}
	REQUIRE(reap(thief) == 0);
}

/* A process that gives its privileges up keeps its queue pair. */
ACT(dropped, "")
{
	union addr a = here(0);
	struct pair p = { 0 };
	uint32_t number = make_qp()->qp_num;

	become(OWNER);
	pair_routed(&p, &a);
	p.cparam.qp_num = number;
	printf("error=%ld\n", -connect_id(p.cfd, p.client, &p.cparam));
}

/*
 * Somebody connects with a number that no queue pair has, until "when": "established", "requested", or "answered", that
 * is, it is to say that it is established. Then the owner gets a queue pair with the number. "late" is what the
 * somebody's ESTABLISH says then; "connected", whether the owner's connection is made; "ended", whether the other one
 * has given way.
 */
ACT(squat, "established|requested|answered")
{
	bool answered = !strcmp(arguments[0], "answered"), requested = !strcmp(arguments[0], "requested");
	pid_t owner, squatter;

	share();
	owner = child();
	if (owner == 0) {
		union addr a = here(0);
		struct pair p = { 0 };
		struct rdma_ucm_event_resp ev;
		bool connected;

		become(OWNER);
		shared->number = make_qp()->qp_num + 8;
		sem_post(&shared->ready);
		wait_for(&shared->go);
		make_qp_number(shared->number);
		sem_post(&shared->done);
		if (answered) {
			/* Its queue pairs go with it. */
			wait_for(&shared->go);
			finished();
		}
		pair_routed(&p, &a);
		p.cparam.qp_num = shared->number;
		REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
		connected = wait_event(p.sfd, &ev, 2000 * patience()) >= 0 && ev.event == EV_CONNECT_REQUEST &&
			    accept_id(p.sfd, ev.id, p.server_uid, &p.sparam) >= 0 &&
			    wait_event(p.cfd, &ev, 5000 * patience()) >= 0 && ev.event == EV_CONNECT_RESPONSE;
		printf("connected=%d ", connected);
		sem_post(&shared->done);
		/* It may be that it is this one that ends. */
		wait_for(&shared->go);
		finished();
	}
	wait_for(&shared->ready);
	squatter = child();
	if (squatter == 0) {
		union addr a = here(0);
		struct rdma_ucm_event_resp ev;
		struct pair p = { 0 };
		bool ended = false;

		become(NOBODY);
		pair_routed(&p, &a);
		p.cparam.qp_num = shared->number;
		REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
		NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &p.request);
		if (!requested) {
			REQUIRE_OK(accept_id(p.sfd, p.request.id, p.server_uid, &p.sparam));
			NEED_EVENT(p.cfd, EV_CONNECT_RESPONSE, NULL);
		}
		if (!requested && !answered) {
			REQUIRE_OK(accept_id(p.cfd, p.client, 0, NULL));
			NEED_EVENT(p.sfd, EV_ESTABLISHED, NULL);
		}
		sem_post(&shared->go);
		wait_for(&shared->done);
		if (answered) {
			printf("late=%ld\n", -accept_id(p.cfd, p.client, 0, NULL));
			finished();
		}
		wait_for(&shared->done);
		while (!ended && wait_event(p.cfd, &ev, 1000 * patience()) >= 0)
			ended = ev.event == EV_DISCONNECTED || ev.event == EV_REJECTED;
		printf("ended=%d\n", ended);
		finished();
	}
	REQUIRE(reap(squatter) == 0);
	sem_post(&shared->go);
	REQUIRE(reap(owner) == 0);
}

/* Somebody names a number, as of a queue pair of the kernel. */
ACT(name, "NUMBER USER")
{
	become(strtoul(arguments[1], NULL, 0));
	printf("error=%ld\n", -try_connect(strtoul(arguments[0], NULL, 0), CLOSED_PORT));
}

/*
 * Over iWARP a connection takes its queue pair by the number: whether somebody gets hold of one that another user has made
 * and not connected yet. "taken" says whether its state has changed.
 */
ACT(take, "")
{
	pid_t owner, thief;

	share();
	owner = child();
	if (owner == 0) {
		struct ibv_qp_attr before, after;
		struct ibv_qp_init_attr init;
		struct ibv_qp *qp;

		become(OWNER);
		qp = make_qp();
		shared->number = qp->qp_num;
		REQUIRE(ibv_query_qp(qp, &before, IBV_QP_STATE, &init) == 0);
		sem_post(&shared->ready);
		wait_for(&shared->go);
		REQUIRE(ibv_query_qp(qp, &after, IBV_QP_STATE, &init) == 0);
		printf("taken=%d ", before.qp_state != after.qp_state);
		sem_post(&shared->done);
		finished();
	}
	wait_for(&shared->ready);
	thief = child();
	if (thief == 0) {
		union addr a = here(0);
		struct rdma_ucm_event_resp ev;
		struct pair p = { 0 };
		long error;

		become(NOBODY);
		pair_routed(&p, &a);
		p.cparam.qp_num = shared->number;
		error = -connect_id(p.cfd, p.client, &p.cparam);
		if (!error && wait_event(p.sfd, &ev, 2000 * patience()) >= 0 && ev.event == EV_CONNECT_REQUEST) {
			p.sparam.qp_num = make_qp()->qp_num;
			accept_id(p.sfd, ev.id, p.server_uid, &p.sparam);
			wait_event(p.cfd, &ev, 2000 * patience());
		}
		sem_post(&shared->go);
		wait_for(&shared->done);
		printf("error=%ld\n", error);
		finished();
	}
	REQUIRE(reap(thief) == 0);
	REQUIRE(reap(owner) == 0);
}
