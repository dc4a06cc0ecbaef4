// SPDX-License-Identifier: GPL-2.0
/* The network below ids: neighbours, bonds, VLANs, several devices, policy routes. */
#include <sys/wait.h>

#include "abi.h"

#define NEAR PLUG_ADDR
#define FAR "10.78.0.2"		/* a neighbour that is only written down */

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static void run(const char *command)
{
	if (system(command) != 0) {
		note("%s", command);
		fail(__FILE__, __LINE__, "the command failed");
		stop();
	}
}

/* Removes the leftovers of a test that failed before. */
static void sweep(void)
{
	run("for i in vt0.5 bt0 vt0 vt2; do "
	    "[ ! -e /sys/class/net/$i ] || ip link del $i; done; "
	    "rdma link del rxet 2>/dev/null || true");
}

/* The shared device, and a neighbour of it. */
static void plug_with_neighbour(void)
{
	sweep();
	plug();
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:02 dev vt0 nud permanent");
}

static uint32_t resolved(int f, uint64_t uid)
{
	union addr far = addr4(FAR, 7471);
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, uid));

	NEED_ADDR(f, id, NULL, &far);
	return id;
}

static void need_unreachable(int f, uint32_t id, uint64_t uid)
{
	struct rdma_ucm_event_resp ev;

	NEED_EVENT(f, EV_UNREACHABLE, &ev);
	CHECK_EQ(id, ev.id);
	CHECK_EQ(uid, ev.uid);
	CHECK_EQ(-ETIMEDOUT, (int)ev.status);
}

TEST(network, neighbour_moves)
{
	int f = fd();
	uint32_t id;

	plug_with_neighbour();
	id = resolved(f, 0x51);
	/* Nobody cares before there is a route. */
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:03 dev vt0 nud permanent");
	CHECK(no_event(f, 200));
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:02 dev vt0 nud permanent");
	NEED_ROUTE(f, id);
	/* The address is the same again, in other states of the neighbour. */
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:02 dev vt0 nud stale");
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:02 dev vt0 nud permanent");
	CHECK(no_event(f, 200));
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:03 dev vt0 nud permanent");
	need_unreachable(f, id, 0x51);
	/* Back where it was. */
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:02 dev vt0 nud permanent");
	CHECK(no_event(f, 200));
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:04 dev vt0 nud permanent");
	if (differs("peer_moves_again"))
		need_unreachable(f, id, 0x51);
	CHECK(no_event(f, 200));
	CHECK_EQ(differs("peer_moves_again") ? 4 : 3, REQUIRE_ID(destroy_id(f, id)));
	unwire();
}

TEST(network, neighbour_of_many)
{
	uint32_t id[20];
	int f = fd();

	plug_with_neighbour();
	for (int i = 0; i < 20; i++) {
		/* An id without a uid hears of nothing. */
		id[i] = resolved(f, i + 1);
		NEED_ROUTE(f, id[i]);
	}
	/* One that is gone hears nothing, and what goes while it is told is no harm. */
	REQUIRE_ID(destroy_id(f, id[7]));
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:03 dev vt0 nud permanent");
	for (int i = 0; i < 19; i++) {
		struct rdma_ucm_event_resp ev;

		NEED_EVENT(f, EV_UNREACHABLE, &ev);
		REQUIRE(ev.uid >= 1 && ev.uid <= 20 && ev.uid != 8);
		CHECK_EQ(id[ev.uid - 1], ev.id);
	}
	CHECK(no_event(f, 200));
	for (int i = 0; i < 20; i++)
		if (i != 7)
			CHECK_EQ(3, REQUIRE_ID(destroy_id(f, id[i])));
	unwire();
}

TEST(network, neighbour_while_connecting)
{
	struct rdma_ucm_conn_param param = conn_param();
	int f = fd();
	uint32_t id;

	plug_with_neighbour();
	id = resolved(f, 0x52);
	NEED_ROUTE(f, id);
	REQUIRE_OK(connect_id(f, id, &param));
	run("ip neigh replace " FAR " lladdr 02:00:00:00:00:03 dev vt0 nud permanent");
	need_unreachable(f, id, 0x52);
	CHECK_EQ(3, REQUIRE_ID(destroy_id(f, id)));
	unwire();
}

/* Returns the number of times, within 0.3 s, that it is told that a peer has moved; a time wait may end, too. */
static int moves(int f, uint32_t id)
{
	struct rdma_ucm_event_resp ev;
	int told = 0;

	for (int i = 0; i < 30; i++) {
		while (get_event(f, &ev) >= 0) {
			if (ev.event == EV_TIMEWAIT_EXIT)
				continue;
			CHECK_EQ(EV_UNREACHABLE, ev.event);
			CHECK_EQ(-ETIMEDOUT, (int)ev.status);
			CHECK_EQ(id, ev.id);
			told++;
		}
		usleep(10000);
	}
	return told;
}

/* Returns true if the client is told that its peer, which is the own host, has another address now. */
static bool told_of_move(struct pair *p)
{
	static int last;
	char command[100];
	bool told;

	snprintf(command, sizeof(command), "ip neigh replace " NEAR
		 " lladdr 02:00:00:00:01:%02x dev vt0 nud permanent", last++ % 100);
	run(command);
	told = moves(p->cfd, p->client) > 0;
	/* The passive side has no route of its own. */
	CHECK_EQ(0, moves(p->sfd, p->server));
	run("ip neigh del " NEAR " dev vt0");
	moves(p->cfd, p->client);
	return told;
}

TEST_LIMIT(network, neighbour_moves_before_the_end, 120)
{
	union addr near = addr4(NEAR, 0);

	plug_with_neighbour();
	for (int i = 0; i < 5; i++) {
		struct pair p = { .ps = i < 4 ? PS_TCP : PS_UDP };

		if (i == 0)
			pair_routed(&p, &near);
		else if (i == 1 || i == 4)
			pair_requested(&p, &near);
		else if (i == 2)
			pair_accepted(&p, &near);
		else
			pair_established(&p, &near);
		if (i == 4) {
			REQUIRE_OK(accept_id(p.sfd, p.server, p.server_uid, &p.sparam));
			NEED_EVENT(p.cfd, EV_ESTABLISHED, NULL);
		}
		note("pair %d", i);
		CHECK(told_of_move(&p));
		close(p.cfd);
		close(p.sfd);
	}
	unwire();
}

TEST_LIMIT(network, neighbour_moves_after_the_end, 120)
{
	bool told = differs("peer_moves_after_the_end");
	union addr near = addr4(NEAR, 0);

	plug_with_neighbour();
	for (int i = 0; i < 5; i++) {
		struct pair p = { .ps = i < 4 ? PS_TCP : PS_UDP };

		note("pair %d", i);
		if (i == 0 || i == 4) {
			pair_requested(&p, &near);
			REQUIRE_OK(reject_id(p.sfd, p.server, NULL, 0, 0));
			NEED_EVENT(p.cfd, i == 0 ? EV_REJECTED : EV_UNREACHABLE, NULL);
		} else if (i == 1) {
			/* By the client itself, which is told nothing. */
			pair_accepted(&p, &near);
			REQUIRE_OK(reject_id(p.cfd, p.client, NULL, 0, 0));
			NEED_EVENT(p.sfd, EV_REJECTED, NULL);
		} else {
			pair_established(&p, &near);
			REQUIRE_OK(disconnect_id(i == 2 ? p.sfd : p.cfd,
						 i == 2 ? p.server : p.client));
			NEED_EVENT(i == 2 ? p.cfd : p.sfd, EV_DISCONNECTED, NULL);
		}
		/* The peer has not confirmed the fourth yet. */
		CHECK_EQ(told, told_of_move(&p));
		if (i == 3) {
			REQUIRE_OK(disconnect_id(p.sfd, p.server));
			NEED_EVENT(p.cfd, EV_DISCONNECTED, NULL);
			if (!told)
				CHECK(!told_of_move(&p));
		}
		close(p.cfd);
		close(p.sfd);
	}
	unwire();
}

TEST_LIMIT(network, neighbour_changes_against_destroy, 90)
{
	int f = fd();

	plug_with_neighbour();
	if (fork() == 0) {
		int status = system("for i in $(seq 50); do ip neigh replace " FAR
				    " lladdr 02:00:00:00:00:$((10 + i % 80)) dev vt0 nud permanent;"
				    " done");
		_exit(status != 0);
	}
	for (int i = 0; i < 100; i++) {
		union addr far = addr4(FAR, 7471);
		uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, i + 1));
		struct rdma_ucm_event_resp ev;

		route_id(f, id, &far);
		while (get_event(f, &ev) >= 0)
			CHECK_EQ(EV_UNREACHABLE, ev.event);
		REQUIRE_ID(destroy_id(f, id));
	}
	wait(NULL);
	unwire();
}

/* A bond of two interfaces; whether its address goes with the active one. */
static void bond(const char *fail_over_mac)
{
	char command[512];

	if (system("modprobe -q bonding max_bonds=0") != 0)
		skip("no bonding");
	sweep();
	snprintf(command, sizeof(command),
		 "ip link add bt0 type bond mode active-backup fail_over_mac %s && "
		 "ip link add vt0 type veth peer name vt1 && "
		 "ip link add vt2 type veth peer name vt3 && "
		 "ip link set vt0 master bt0 && ip link set vt2 master bt0 && "
		 "for i in vt0 vt1 vt2 vt3; do ip link set $i up; done && "
		 "ip link set bt0 type bond active_slave vt0 && "
		 "ip addr add " NEAR "/24 dev bt0 && ip link set bt0 up && "
		 "rdma link add rxet type rxe netdev bt0", fail_over_mac);
	run(command);
}

static void unbond(void)
{
	CHECK_EQ(0, system("rdma link del rxet; ip link del bt0; ip link del vt0; ip link del vt2"));
}

TEST(network, bond_fails_over)
{
	struct rdma_ucm_event_resp ev;
	union addr near = addr4(NEAR, 0), any = addr4("0.0.0.0", 0);
	int f = fd(), other = fd();
	uint32_t id, elsewhere, wild;

	bond("active");
	id = REQUIRE_ID(create_id(f, PS_TCP, 0x61));
	REQUIRE_OK(bind_addr(f, id, &near));
	elsewhere = REQUIRE_ID(create_id(other, PS_TCP, 0x62));
	REQUIRE_OK(bind4(other, elsewhere, ADDR4, 0));
	wild = REQUIRE_ID(create_id(other, PS_TCP, 0x63));
	REQUIRE_OK(bind_addr(other, wild, &any));
	REQUIRE_OK(listen_id(other, wild, 0));

	run("ip link set bt0 type bond active_slave vt2");
	NEED_EVENT(f, EV_ADDR_CHANGE, &ev);
	CHECK_EQ(id, ev.id);
	CHECK_EQ(0x61, ev.uid);
	CHECK_EQ(0, ev.status);
	CHECK(no_event(other, 200));
	/* Back to the address that it knows. */
	run("ip link set bt0 type bond active_slave vt0");
	CHECK(no_event(f, 200));
	CHECK_EQ(1, REQUIRE_ID(destroy_id(f, id)));
	unbond();
}

TEST(network, bond_keeps_its_address)
{
	union addr near = addr4(NEAR, 0);
	int f = fd();
	uint32_t id;

	bond("none");
	id = REQUIRE_ID(create_id(f, PS_TCP, 0x61));
	REQUIRE_OK(bind_addr(f, id, &near));
	run("ip link set bt0 type bond active_slave vt2");
	CHECK(no_event(f, 200));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
	unbond();
}

TEST(network, bond_of_a_connection)
{
	struct pair p = { 0 };
	union addr near = addr4(NEAR, 0);
	struct rdma_ucm_event_resp ev;

	bond("active");
	pair_established(&p, &near);
	run("ip link set bt0 type bond active_slave vt2");
	NEED_EVENT(p.cfd, EV_ADDR_CHANGE, &ev);
	CHECK_EQ(p.client, ev.id);
	/* The listener and the connection, in whatever order. */
	for (int i = 0; i < 2; i++) {
		NEED_EVENT(p.sfd, EV_ADDR_CHANGE, &ev);
		CHECK(ev.id == p.listener || ev.id == p.server);
	}
	unbond();
}

TEST(network, vlan)
{
	struct rdma_ucm_query_addr_resp addr;
	struct pair p = { 0 };
	union addr a = addr4("10.79.0.1", 0);

	plug_with_neighbour();
	run("ip link add link vt0 name vt0.5 type vlan id 5 && "
	    "ip addr add 10.79.0.1/24 dev vt0.5 && ip link set vt0.5 up");
	/* The device gets the addresses of its VLANs a moment later. */
	for (int i = 0; i < 100; i++) {
		int f = fd();
		uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 0));
		bool found = bind_addr(f, id, &a) == 0;

		close(f);
		if (found)
			break;
		usleep(20000);
	}
	pair_established(&p, &a);
	REQUIRE_OK(query_addr(p.cfd, p.client, &addr));
	CHECK_EQ(inet_addr("10.79.0.1"),
		 ((struct sockaddr_in *)&addr.src_addr)->sin_addr.s_addr);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	CHECK_EQ(0, system("ip link del vt0.5"));
	unwire();
}

TEST(network, several_devices)
{
	struct rdma_ucm_query_route_resp here, there;
	int f = fd();
	uint32_t a, b;

	plug_with_neighbour();
	a = REQUIRE_ID(create_id(f, PS_TCP, 1));
	b = REQUIRE_ID(create_id(f, PS_TCP, 2));
	REQUIRE_OK(bind4(f, a, ADDR4, 7480));
	/* The same port of another device is another one. */
	REQUIRE_OK(bind4(f, b, NEAR, 7480));
	REQUIRE_OK(query_route(f, a, &here));
	REQUIRE_OK(query_route(f, b, &there));
	CHECK(here.node_guid != there.node_guid);
	CHECK(here.ibdev_index != there.ibdev_index);
	REQUIRE_OK(listen_id(f, a, 0));
	REQUIRE_OK(listen_id(f, b, 0));
	unwire();
	NEED_EVENT(f, EV_DEVICE_REMOVAL, NULL);
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, a)));
	CHECK_EQ(1, REQUIRE_ID(destroy_id(f, b)));
}

TEST(network, device_comes_to_a_wildcard_listener)
{
	struct rdma_ucm_conn_param param = conn_param();
	union addr any = addr4("0.0.0.0", 7481), near = addr4(NEAR, 7481);
	int f = fd();
	uint32_t listener = REQUIRE_ID(create_id(f, PS_TCP, 0x71));

	REQUIRE_OK(bind_addr(f, listener, &any));
	REQUIRE_OK(listen_id(f, listener, 0));
	for (int i = 0; i < 2; i++) {
		struct rdma_ucm_event_resp ev;
		int c = fd();
		uint32_t client;

		plug_with_neighbour();
		client = routed_client(c, 0x72, &near);
		param.qp_num = fake_qpn();
		REQUIRE_OK(connect_id(c, client, &param));
		NEED_EVENT(f, EV_CONNECT_REQUEST, &ev);
		CHECK_EQ(0x71, ev.uid);
		unplug();
		NEED_EVENT(c, EV_DEVICE_REMOVAL, NULL);
		/* Neither the listener nor a connection without a uid hears of it. */
		CHECK(no_event(f, 100));
		REQUIRE_ID(destroy_id(f, ev.id));
		close(c);
		unwire();
	}
	REQUIRE_ID(destroy_id(f, listener));
}

TEST(network, policy_route)
{
	union addr near = addr4(NEAR, 0), far = addr4("10.99.0.9", 7471);
	struct rdma_ucm_query_addr_resp addr;
	int f = fd();
	uint32_t id;

	plug_with_neighbour();
	run("ip rule add from " NEAR " lookup 100 && "
	    "ip route add 10.99.0.0/24 dev vt0 table 100 && "
	    "ip neigh replace 10.99.0.9 lladdr 02:00:00:00:00:09 dev vt0 nud permanent");
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	CHECK_ERR(ENETUNREACH, resolve_addr(f, id, NULL, &far, 2000));
	REQUIRE_ID(destroy_id(f, id));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	NEED_ADDR(f, id, &near, &far);
	NEED_ROUTE(f, id);
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(near.in.sin_addr.s_addr,
		 ((struct sockaddr_in *)&addr.src_addr)->sin_addr.s_addr);
	CHECK_EQ(0, system("ip rule del from " NEAR " lookup 100"));
	unwire();
}
