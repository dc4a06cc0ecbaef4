// SPDX-License-Identifier: GPL-2.0
/* The device goes away below ids in all states. */
#include <pthread.h>

#include "abi.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

void plug(void)
{
	REQUIRE_EQ(0, system("ip link add vt0 type veth peer name vt1 && "
			     "ip addr add " PLUG_ADDR "/24 dev vt0 && ip link set vt0 up && "
			     "ip link set vt1 up && rdma link add rxet type rxe netdev vt0"));
}

void unplug(void)
{
	/* Must not wait for anybody who has an id. */
	REQUIRE_EQ(0, run_within(10, "rdma link del rxet"));
}

void unwire(void)
{
	CHECK_EQ(0, system("ip link del vt0"));
}

/* Every command says that the device is gone, until the id is destroyed. */
static void gone(int line, int f, uint32_t id, uint32_t events)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query_addr_resp addr;
	struct ib_uverbs_qp_attr attr;
	union addr a = addr4(PLUG_ADDR, 7471);
	uint8_t tos = 0;

	/* The file learns of it first, and the id is closed right after. */
	for (int i = 0; i < 200 && query_addr(f, id, &addr) != -ENXIO; i++)
		usleep(10000);
#define GONE(call) check_err(__FILE__, line, #call, ENXIO, call)
	GONE(query_addr(f, id, &addr));
	GONE(query_gid(f, id, &addr));
	GONE(query_route(f, id, &route));
	GONE(bind_addr(f, id, &a));
	GONE(bind_ip(f, id, &a));
	GONE(resolve_addr(f, id, NULL, &a, 1000));
	GONE(resolve_ip(f, id, NULL, &a, 1000));
	GONE(resolve_route(f, id, 1000));
	GONE(listen_id(f, id, 1));
	GONE(connect_id(f, id, &param));
	GONE(accept_id(f, id, 1, &param));
	GONE(accept_id(f, id, 1, NULL));
	GONE(reject_id(f, id, NULL, 0, 0));
	GONE(disconnect_id(f, id));
	GONE(notify_id(f, id, 4));
	GONE(init_qp_attr(f, id, 1, &attr));
	GONE(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	check_eq(__FILE__, line, "events", events, REQUIRE_ID(destroy_id(f, id)));
	check_err(__FILE__, line, "destroy twice", ENOENT, destroy_id(f, id));
}
#define CHECK_GONE(f, id, events) gone(__LINE__, f, id, events)

TEST(removal, bound_id)
{
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0x4444));

	plug();
	REQUIRE_OK(bind4(f, id, PLUG_ADDR, 0));
	unplug();
	NEED_EVENT(f, EV_DEVICE_REMOVAL, &ev);
	CHECK_EQ(id, ev.id);
	CHECK_EQ(0x4444, ev.uid);
	CHECK_EQ(0, ev.status);
	CHECK_GONE(f, id, 1);
	CHECK(no_event(f, 0));
	unwire();
}

TEST(removal, uid_zero)
{
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0));

	plug();
	REQUIRE_OK(bind4(f, id, PLUG_ADDR, 0));
	unplug();
	CHECK(no_event(f, 100));
	CHECK_GONE(f, id, 0);
	unwire();
}

TEST(removal, listener)
{
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	plug();
	REQUIRE_OK(bind4(f, id, PLUG_ADDR, 7680));
	REQUIRE_OK(listen_id(f, id, 0));
	unplug();
	NEED_EVENT(f, EV_DEVICE_REMOVAL, &ev);
	CHECK_GONE(f, id, 1);
	unwire();
}

TEST(removal, wildcard_listener_stays)
{
	struct rdma_ucm_conn_param param = conn_param();
	union addr dst = addr4(PLUG_ADDR, 7681);
	int f = fd(), c = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1)), client;

	REQUIRE_OK(bind4(f, id, "0.0.0.0", 7681));
	REQUIRE_OK(listen_id(f, id, 0));
	/* It takes in a device that comes later, and survives that it goes. */
	for (int i = 0; i < 2; i++) {
		struct rdma_ucm_event_resp ev;

		plug();
		client = routed_client(c, 1, &dst);
		REQUIRE_OK(connect_id(c, client, &param));
		NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
		REQUIRE_OK(destroy_id(f, ev.id));
		NEED_EVENT(c, EV_REJECTED, NULL);
		unplug();
		NEED_EVENT(c, EV_DEVICE_REMOVAL, NULL);
		CHECK_GONE(c, client, 4);
		/* A request that was sent again before its client was rejected is another one. */
		while (wait_event(f, &ev, 0) >= 0)
			CHECK_EQ(EV_CONNECT_REQUEST, ev.event);
		unwire();
	}
	dst = addr4(ADDR4, 7681);
	client = routed_client(c, 1, &dst);
	REQUIRE_OK(connect_id(c, client, &param));
	NEED_EVENT(f, EV_CONNECT_REQUEST, NULL);
}

TEST(removal, resolved)
{
	union addr dst = addr4(PLUG_ADDR, 7471);
	int f = fd();
	uint32_t a = REQUIRE_ID(create_id(f, PS_TCP, 1)), b;

	plug();
	NEED_ADDR(f, a, NULL, &dst);
	b = routed_client(f, 2, &dst);
	unplug();
	NEED_EVENT(f, EV_DEVICE_REMOVAL, NULL);
	NEED_EVENT(f, EV_DEVICE_REMOVAL, NULL);
	CHECK_GONE(f, a, 2);
	CHECK_GONE(f, b, 3);
	unwire();
}

TEST(removal, resolving)
{
	union addr dst = addr4("10.78.0.250", 7471);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	plug();
	REQUIRE_OK(bind4(f, id, PLUG_ADDR, 0));
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 100000));
	unplug();
	NEED_EVENT(f, EV_DEVICE_REMOVAL, NULL);
	CHECK_GONE(f, id, 1);
	unwire();
}

static void connected(int step)
{
	struct pair p = { 0 };
	union addr a = addr4(PLUG_ADDR, 0);
	uint32_t client_events = 0, server_events = 0;

	plug();
	switch (step) {
	case 0:
		pair_requested(&p, &a);
		client_events = 3;
		/* Not accepted: nobody is told. */
		server_events = 0;
		break;
	case 1:
		pair_accepted(&p, &a);
		client_events = 4;
		server_events = 1;
		break;
	case 2:
		pair_established(&p, &a);
		client_events = 4;
		server_events = 2;
		break;
	}
	unplug();
	NEED_EVENT(p.cfd, EV_DEVICE_REMOVAL, NULL);
	/* The listener, and the child once it has been accepted. */
	NEED_EVENT(p.sfd, EV_DEVICE_REMOVAL, NULL);
	if (step)
		NEED_EVENT(p.sfd, EV_DEVICE_REMOVAL, NULL);
	CHECK_GONE(p.cfd, p.client, client_events);
	CHECK_GONE(p.sfd, p.server, server_events);
	CHECK_GONE(p.sfd, p.listener, 2);
	CHECK(no_event(p.cfd, 0));
	CHECK(no_event(p.sfd, 0));
	unwire();
}

TEST(removal, request_unanswered)
{
	connected(0);
}

TEST(removal, accepted)
{
	connected(1);
}

TEST(removal, established)
{
	connected(2);
}

static void datagrams(bool answered)
{
	struct pair p = { .ps = PS_UDP };
	union addr a = addr4(PLUG_ADDR, 0);

	plug();
	pair_requested(&p, &a);
	if (answered) {
		REQUIRE_OK(accept_id(p.sfd, p.server, 1, &p.sparam));
		NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
	}
	unplug();
	NEED_EVENT(p.cfd, EV_DEVICE_REMOVAL, NULL);
	NEED_EVENT(p.sfd, EV_DEVICE_REMOVAL, NULL);
	if (answered)
		NEED_EVENT(p.sfd, EV_DEVICE_REMOVAL, NULL);
	CHECK_GONE(p.cfd, p.client, answered ? 4 : 3);
	CHECK_GONE(p.sfd, p.server, answered ? 1 : 0);
	CHECK_GONE(p.sfd, p.listener, 2);
	CHECK(no_event(p.cfd, 0));
	CHECK(no_event(p.sfd, 0));
	unwire();
}

TEST(removal, question_unanswered)
{
	datagrams(false);
}

TEST(removal, question_answered)
{
	datagrams(true);
}

TEST(removal, request_unread)
{
	struct pair p = { 0 };
	union addr a = addr4(PLUG_ADDR, 0);
	struct rdma_ucm_event_resp ev;

	plug();
	pair_routed(&p, &a);
	REQUIRE_OK(connect_id(p.cfd, p.client, &p.cparam));
	usleep(300000);
	unplug();
	NEED_EVENT(p.sfd, EV_CONNECT_REQUEST, &ev);
	NEED_EVENT(p.sfd, EV_DEVICE_REMOVAL, NULL);
	CHECK_GONE(p.sfd, ev.id, 0);
	CHECK_GONE(p.sfd, p.listener, 2);
	unwire();
}

TEST(removal, close_without_reading)
{
	struct pair p = { 0 };
	union addr a = addr4(PLUG_ADDR, 0);

	plug();
	pair_established(&p, &a);
	unplug();
	close(p.cfd);
	close(p.sfd);
	unwire();
}

/* Wildcard listeners that begin, and end at once unless they stay. */
struct listeners {
	bool stay;
	volatile bool enough;
};

static void *listen_again(void *arg)
{
	const struct listeners *l = arg;
	int f = fd();

	for (int i = 0; i < 500 && !l->enough; i++) {
		uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

		REQUIRE_OK(bind4(f, id, "0.0.0.0", 0));
		REQUIRE_OK(listen_id(f, id, 0));
		if (!l->stay)
			CHECK_OK(destroy_id(f, id));
	}
	while (!l->enough)
		usleep(1000);
	close(f);
	return NULL;
}

static void while_they_listen(bool stay, void (*change)(void))
{
	struct listeners l = { .stay = stay };
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		REQUIRE_EQ(0, pthread_create(&threads[i], NULL, listen_again, &l));
	change();
	l.enough = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

/* None of them is shown when it has ended, and none keeps the device. */
TEST(removal, wildcard_listeners_while_a_device_comes_and_goes)
{
	long before = count_cm_ids();

	for (int round = 0; round < 10; round++) {
		while_they_listen(false, plug);
		CHECK_EQ(before, count_cm_ids());
		while_they_listen(true, unplug);
		CHECK_EQ(before, count_cm_ids());
		unwire();
	}
}

TEST(removal, netdev_goes)
{
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));

	plug();
	REQUIRE_OK(bind4(f, id, PLUG_ADDR, 0));
	unwire();
	NEED_EVENT(f, EV_DEVICE_REMOVAL, &ev);
	CHECK_GONE(f, id, 1);
}
