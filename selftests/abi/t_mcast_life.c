// SPDX-License-Identifier: GPL-2.0
/* Multicast groups whose device, interface or id goes. */
#include <arpa/inet.h>
#include <linux/membarrier.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "mcast.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

/* A device of its own, of a kind that goes without IPv4. */
static void own_device(const char *type)
{
	char cmd[300];

	/* A test that did not come to its end may have left the link. */
	REQUIRE_EQ(0, system("[ ! -e /sys/class/net/mc0 ] || ip link del mc0"));
	snprintf(cmd, sizeof(cmd), "ip link add mc0 type %s && ip link set mc0 up && "
		 "rdma link add rxem type rxe netdev mc0 && ip addr add 10.79.0.1/24 dev mc0", type);
	REQUIRE_EQ(0, system(cmd));
}

static uint32_t plugged_id(int f)
{
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	long ret = -1;

	/* The device learns of the address from a work queue. */
	for (int i = 0; i < 100 && ret < 0; i++) {
		ret = bind4(f, id, "10.79.0.1", 0);
		if (ret < 0)
			usleep(50000);
	}
	REQUIRE_OK(ret);
	return id;
}

static void mtu(int n)
{
	struct ifreq req = { .ifr_name = "mc0", .ifr_mtu = n };
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	CHECK_EQ(0, ioctl(s, SIOCSIFMTU, &req));
	close(s);
}

TEST_LIMIT(mcast, interface_without_ipv4, 60)
{
	int f = fd();
	uint32_t id, other;

	own_device("dummy");
	id = plugged_id(f);
	other = plugged_id(f);
	/* Too small for IPv4. */
	mtu(67);
	CHECK_ERR(ENODEV, join4(f, id, 2, GROUP, FULL));
	/* Large enough for that, but not for a packet of RDMA. */
	mtu(200);
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, SEND_ONLY));
	mtu(1500);
	CHECK_EQ(differs("igmp_after_failed_join"), igmp_at("mc0", GROUP));
	/* A membership ends with IPv4, and is not mixed up with one after that. */
	REQUIRE_ID(join4(f, id, 2, "239.8.8.8", FULL));
	CHECK_EQ(1, igmp_at("mc0", "239.8.8.8"));
	mtu(67);
	mtu(1500);
	CHECK_EQ(0, igmp_at("mc0", "239.8.8.8"));
	REQUIRE_ID(join4(f, other, 2, "239.8.8.8", FULL));
	REQUIRE_ID(destroy_id(f, id));
	CHECK_EQ(differs("igmp_of_another"), igmp_at("mc0", "239.8.8.8"));
	close(f);
	CHECK_EQ(0, run_within(10, "rdma link del rxem && ip link del mc0"));
}

/* As often as it takes for memory to be used again. */
#define PARTS 32

/* The kernel uses memory again where it was given back. */
static void stay_on_one_cpu(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	REQUIRE_EQ(0, sched_setaffinity(0, sizeof(one), &one));
}

/*
 * Until the IPv4 part of an interface, of which readers may know, has been given back: first its
 * address, then it.
 */
static void wait_for_readers(void)
{
	for (int i = 0; i < 4; i++) {
		REQUIRE_EQ(0, syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0));
		usleep(2000);
	}
}

TEST_LIMIT(mcast, ipv4_of_the_interface_comes_again, 120)
{
	struct ip_mreqn mreq = { 0 };
	uint32_t id[PARTS];
	char group[20];
	int f = fd(), s;

	own_device("dummy");
	stay_on_one_cpu();
	for (int i = 0; i < PARTS; i++) {
		id[i] = plugged_id(f);
		snprintf(group, sizeof(group), "239.8.7.%d", i);
		REQUIRE_ID(join4(f, id[i], 2, group, FULL));
	}
	CHECK_EQ(1, igmp_at("mc0", "239.8.7.0"));
	/*
	 * Those memberships end with that part, and nobody else's is taken for one of them, though a
	 * later part is at the place of the first.
	 */
	for (int i = 0; i < PARTS; i++) {
		snprintf(group, sizeof(group), "239.8.7.%d", i);
		mtu(67);
		wait_for_readers();
		mtu(1500);
		CHECK_EQ(0, igmp_at("mc0", group));
		s = socket(AF_INET, SOCK_DGRAM, 0);
		mreq.imr_multiaddr.s_addr = inet_addr(group);
		mreq.imr_ifindex = if_nametoindex("mc0");
		REQUIRE_EQ(0, setsockopt(s, IPPROTO_IP, IP_ADD_MEMBERSHIP, &mreq, sizeof(mreq)));
		CHECK_EQ(1, igmp_at("mc0", group));
		REQUIRE_ID(destroy_id(f, id[i]));
		CHECK_EQ(differs("igmp_of_another"), igmp_at("mc0", group));
		close(s);
	}
	close(f);
	CHECK_EQ(0, run_within(10, "rdma link del rxem && ip link del mc0"));
}

TEST_LIMIT(mcast, device_goes, 60)
{
	int f = fd();
	uint32_t id, mc[3];

	own_device("veth");
	id = plugged_id(f);
	mc[0] = REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	mc[1] = REQUIRE_ID(join4(f, id, 2, "239.8.8.8", FULL));
	mc[2] = REQUIRE_ID(join4(f, id, 2, "239.8.8.9", SEND_ONLY));
	CHECK_EQ(1, igmp_at("mc0", GROUP));
	CHECK_EQ(0, run_within(10, "rdma link del rxem"));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	NEED_EVENT(f, EV_DEVICE_REMOVAL, NULL);
	for (int i = 0; i < 200 && igmp_at("mc0", GROUP); i++)
		usleep(10000);
	CHECK_EQ(0, igmp_at("mc0", GROUP));
	CHECK_EQ(0, igmp_at("mc0", "239.8.8.8"));
	for (int i = 0; i < 3; i++)
		CHECK_ERR(ENXIO, leave(f, mc[i]));
	CHECK_ERR(ENXIO, join4(f, id, 2, GROUP, FULL));
	CHECK_EQ(4, destroy_id(f, id));
	for (int i = 0; i < 3; i++)
		CHECK_ERR(ENOENT, leave(f, mc[i]));
	CHECK_EQ(0, system("ip link del mc0"));
}

TEST_LIMIT(mcast, interface_goes, 60)
{
	int f = fd();
	uint32_t id;

	own_device("veth");
	id = plugged_id(f);
	REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	/* Neither waits for the other. */
	CHECK_EQ(0, run_within(10, "ip link del mc0"));
	NEED_EVENT(f, EV_DEVICE_REMOVAL, NULL);
	CHECK_EQ(2, destroy_id(f, id));
}

TEST(mcast, moves_with_the_id)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };
	struct rdma_ucm_event_resp ev;
	int f = fd(), g = fd();
	uint32_t id = datagram_id(f, 1), a, b;

	a = REQUIRE_ID(join4(f, id, 0xa, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	b = REQUIRE_ID(join4(f, id, 0xb, GROUP, FULL));
	usleep(100000);
	CHECK_EQ(1, migrate_id(g, id, f));
	CHECK(no_event(f, 0));
	NEED_EVENT(g, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, b, 0xb, mapped);
	CHECK_ERR(differs("foreign_id"), leave(f, a));
	CHECK_ERR(differs("foreign_id"), leave(f, b));
	CHECK_EQ(2, igmp(GROUP));
	CHECK_EQ(1, leave(g, b));
	close(f);
	CHECK_EQ(1, igmp(GROUP));
	CHECK_EQ(1, leave(g, a));
	CHECK_EQ(0, igmp(GROUP));
	CHECK_EQ(2, destroy_id(g, id));
}

/* --- races --- */

static struct {
	int f;
	uint32_t id;
	volatile bool stop;
	unsigned long joined, left;
} race;

/* cm_cmd() without new mappings: these run many times. */
static long again(uint32_t cmd, const void *req, uint16_t in, uint16_t out)
{
	struct rdma_ucm_cmd_hdr h = { .cmd = cmd, .in = in, .out = out };
	char buf[sizeof(h) + 256];

	memcpy(buf, &h, sizeof(h));
	memcpy(buf + sizeof(h), req, in);
	return cm_raw(race.f, buf, sizeof(h) + in);
}

static void *race_join(void *arg)
{
	union addr a = addr4(arg, 0);
	uint32_t mc = 0;
	struct rdma_ucm_join_ip_mcast req = {
		.response = ptr(&mc), .uid = 7, .addr = a.in6, .id = race.id,
	};

	while (!race.stop)
		if (again(RDMA_USER_CM_CMD_JOIN_IP_MCAST, &req, sizeof(req), 4) > 0)
			__atomic_add_fetch(&race.joined, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* Guesses numbers, also such as are not announced yet. */
static void *race_leave(void *arg)
{
	uint32_t reported = 0;
	struct rdma_ucm_destroy_id req = { .response = ptr(&reported) };

	for (; !race.stop; req.id = (req.id + 1) % 8)
		if (again(RDMA_USER_CM_CMD_LEAVE_MCAST, &req, sizeof(req), 4) > 0)
			__atomic_add_fetch(&race.left, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *race_read(void *arg)
{
	struct rdma_ucm_event_resp ev = { 0 };
	struct rdma_ucm_get_event req = { .response = ptr(&ev) };

	while (!race.stop)
		if (again(RDMA_USER_CM_CMD_GET_EVENT, &req, sizeof(req), sizeof(ev)) > 0) {
			CHECK_EQ(EV_MULTICAST_JOIN, ev.event);
			CHECK_EQ(7, ev.uid);
		}
	return NULL;
}

TEST_LIMIT(mcast, join_against_leave, 60)
{
	pthread_t t[4];

	race.f = fd();
	race.id = datagram_id(race.f, 1);
	pthread_create(&t[0], NULL, race_join, "239.4.4.4");
	pthread_create(&t[1], NULL, race_join, "239.5.5.5");
	pthread_create(&t[2], NULL, race_leave, NULL);
	pthread_create(&t[3], NULL, race_read, NULL);
	sleep(3);
	race.stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	note("%lu joined, %lu left", race.joined, race.left);
	CHECK(race.joined > 0 && race.left > 0);
	CHECK_EQ(race.joined - race.left, igmp("239.4.4.4") + igmp("239.5.5.5"));
	close(race.f);
	CHECK_EQ(0, igmp("239.4.4.4") + igmp("239.5.5.5"));
}

TEST_LIMIT(mcast, join_against_destroy, 60)
{
	race.f = fd();
	for (int i = 0; i < 200; i++) {
		pthread_t t;

		race.id = datagram_id(race.f, 1);
		race.stop = false;
		pthread_create(&t, NULL, race_join, GROUP);
		usleep(i * 10);
		CHECK_OK(destroy_id(race.f, race.id));
		race.stop = true;
		pthread_join(t, NULL);
		REQUIRE_EQ(0, igmp(GROUP));
	}
	race.id = datagram_id(race.f, 1);
	CHECK_EQ(0, join4(race.f, race.id, 7, GROUP, FULL));
}
