// SPDX-License-Identifier: GPL-2.0
/*
 * Network namespaces: what an id sees of addresses, ports and devices, and what
 * happens when nothing but ids is left of one.
 *
 * A setting of the system says if devices belong to one namespace or to all ("rdma system");
 * netns.sh runs the case about the one that is not the default.
 */
#include <net/if.h>
#include <sched.h>

#include "abi.h"

#define INSIDE "10.79.0.1"	/* of a netdev with a device, in the new namespace */
#define OUTSIDE "10.79.0.2"	/* of its other end, here */
#define PORT 7750

static int home;

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 1));
}

/* Moves to a new namespace, with a device that is joined with the old one. */
static void enter(void)
{
	home = open("/proc/self/ns/net", O_RDONLY);
	REQUIRE_EQ(0, unshare(CLONE_NEWNET));
	REQUIRE_EQ(0, system("ip link set lo up && "
			     "ip link add nt1 type veth peer name nt0 netns 1 && "
			     "ip addr add " INSIDE "/24 dev nt1 && ip link set nt1 up && "
			     "nsenter -t 1 -n ip addr add " OUTSIDE "/24 dev nt0 && "
			     "nsenter -t 1 -n ip link set nt0 up && "
			     "rdma link add rxen type rxe netdev nt1"));
}

static void leave(void)
{
	REQUIRE_EQ(0, setns(home, CLONE_NEWNET));
}

/* The end of a namespace ends its interfaces, and so their other ends. */
static void namespace_ends(void)
{
	for (int i = 0; i < 300 && if_nametoindex("nt0"); i++)
		usleep(100000);
	CHECK_EQ(0, if_nametoindex("nt0"));
}

TEST_LIMIT(netns, addresses_apart, 60)
{
	int f = fd();

	enter();
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, new_id(f), ADDR4, 0));
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, new_id(f), OUTSIDE, 0));
	CHECK_OK(bind4(f, new_id(f), INSIDE, 0));
	leave();
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, new_id(f), INSIDE, 0));
	CHECK_OK(bind4(f, new_id(f), ADDR4, 0));
	close(f);
	namespace_ends();
}

TEST_LIMIT(netns, ports_apart, 60)
{
	int f = fd();
	uint32_t a, b, c;

	a = new_id(f);
	REQUIRE_OK(bind4(f, a, "0.0.0.0", PORT));
	CHECK_OK(listen_id(f, a, 0));
	enter();
	b = new_id(f);
	CHECK_OK(bind4(f, b, "0.0.0.0", PORT));
	CHECK_OK(listen_id(f, b, 0));
	c = new_id(f);
	CHECK_ERR(EADDRNOTAVAIL, bind4(f, c, INSIDE, PORT));
	leave();
	/* An id stays where it was made. */
	CHECK_OK(bind4(f, c, INSIDE, PORT + 1));
	close(f);
	namespace_ends();
}

TEST_LIMIT(netns, connects_within, 60)
{
	union addr a = addr4(INSIDE, 0);
	struct pair p = { 0 };

	enter();
	pair_established(&p, &a);
	leave();
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	close(p.cfd);
	close(p.sfd);
	namespace_ends();
}

/* --- only ids are left --- */

static void idle(int f)
{
	new_id(f);
}

static void bound(int f)
{
	REQUIRE_OK(bind4(f, new_id(f), INSIDE, 0));
}

static void listening(int f)
{
	uint32_t id = new_id(f);

	REQUIRE_OK(bind4(f, id, INSIDE, 0));
	REQUIRE_OK(listen_id(f, id, 0));
}

static void listening_any(int f)
{
	REQUIRE_OK(listen_id(f, new_id(f), 0));
}

static void resolving(int f)
{
	union addr dst = addr4("10.79.0.250", PORT);

	REQUIRE_OK(resolve_addr(f, new_id(f), NULL, &dst, 100000));
}

static void resolved(int f)
{
	union addr dst = addr4(INSIDE, PORT);

	NEED_ADDR(f, new_id(f), NULL, &dst);
}

static void connecting(int f)
{
	union addr dst = addr4(INSIDE, 0);
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_conn_param param = conn_param();
	uint32_t id = new_id(f);

	REQUIRE_OK(bind_addr(f, id, &dst));
	REQUIRE_OK(listen_id(f, id, 0));
	REQUIRE_OK(query_addr(f, id, &resp));
	memcpy(&dst, &resp.src_addr, sizeof(dst));
	REQUIRE_OK(connect_id(f, routed_client(f, 1, &dst), &param));
	NEED_EVENT(f, EV_CONNECT_REQUEST, NULL);
}

/* An id keeps its namespace, and nothing else does. */
static void keeps(void (*state)(int f))
{
	int f = fd();

	enter();
	state(f);
	leave();
	close(home);
	CHECK(no_event(f, 500));
	CHECK(if_nametoindex("nt0") != 0);
	close(f);
	namespace_ends();
}

#define KEEPS(state) TEST_LIMIT(netns, state##_keeps_it, 90) { keeps(state); }

KEEPS(idle)
KEEPS(bound)
KEEPS(listening)
KEEPS(listening_any)
KEEPS(resolving)
KEEPS(resolved)
KEEPS(connecting)

TEST_LIMIT(netns, established_keeps_it, 90)
{
	union addr a = addr4(INSIDE, 0);
	struct pair p = { 0 };

	enter();
	pair_established(&p, &a);
	leave();
	close(home);
	CHECK(no_event(p.cfd, 500));
	CHECK(if_nametoindex("nt0") != 0);
	close(p.sfd);
	NEED_EVENT(p.cfd, EV_DISCONNECTED, NULL);
	CHECK(if_nametoindex("nt0") != 0);
	close(p.cfd);
	namespace_ends();
}

/* The device goes, while the namespace has only ids. */
TEST_LIMIT(netns, device_goes, 90)
{
	int f = fd();
	uint32_t id;

	enter();
	id = new_id(f);
	REQUIRE_OK(bind4(f, id, INSIDE, 0));
	leave();
	close(home);
	REQUIRE_EQ(0, system("ip link del nt0"));
	NEED_EVENT(f, EV_DEVICE_REMOVAL, NULL);
	CHECK_EQ(1, REQUIRE_ID(destroy_id(f, id)));
}

/* --- devices of one namespace --- */

TEST_LIMIT(netns, exclusive_devices, 90)
{
	union addr dst = addr4(INSIDE, PORT), a = any_port4();
	struct rdma_ucm_event_resp ev;
	struct pair p = { 0 };
	int f = fd();
	uint32_t id;

	if (system("rdma system | grep -q 'netns exclusive'"))
		skip("the devices are shared by all namespaces");
	/* They belong to this one, and work here as ever. */
	pair_established(&p, &a);
	enter();
	CHECK_ERR(ENODEV, bind4(f, new_id(f), INSIDE, 0));
	id = new_id(f);
	CHECK_OK(bind4(f, id, "0.0.0.0", PORT));
	CHECK_OK(listen_id(f, id, 0));
	id = new_id(f);
	REQUIRE_OK(resolve_addr(f, id, NULL, &dst, 2000));
	NEED_EVENT(f, EV_ADDR_ERROR, &ev);
	CHECK_EQ(-ENODEV, (int)ev.status);
	leave();
	close(f);
	namespace_ends();
}
