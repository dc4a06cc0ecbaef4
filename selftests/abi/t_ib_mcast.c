// SPDX-License-Identifier: GPL-2.0
/* Multicast groups of InfiniBand. */
#include <net/if.h>

#include "ib.h"

/* enum of the group's record, as sa.py and IPoIB make it */
#define RATE 16

static uint32_t datagrams(int f, uint16_t ps, const char *ip)
{
	uint32_t id = REQUIRE_ID(create_id(f, ps, 0x11));

	REQUIRE_OK(bind4(f, id, ip, 0));
	return id;
}

static void gid(const char *text, uint8_t to[16])
{
	REQUIRE_EQ(1, inet_pton(AF_INET6, text, to));
}

/* The event, to the last byte; the LID is the administrator's choice. */
static uint16_t need_joined(int line, int f, uint32_t mc, uint64_t uid, const uint8_t *mgid, uint32_t qkey)
{
	struct rdma_ucm_event_resp ev, want = { .uid = uid, .id = mc, .event = EV_MULTICAST_JOIN };
	struct rdma_ucm_ud_param ud = { .qp_num = 0xffffff, .qkey = qkey }, *got = (void *)&ev.param;

	need_event(__FILE__, line, f, EV_MULTICAST_JOIN, &ev);
	memcpy(ud.ah_attr.grh.dgid, mgid ?: got->ah_attr.grh.dgid, 16);
	ud.ah_attr.dlid = got->ah_attr.dlid;
	ud.ah_attr.static_rate = RATE;
	ud.ah_attr.is_global = 1;
	ud.ah_attr.port_num = 1;
	memcpy(&want.param, &ud, sizeof(ud));
	check_mem(__FILE__, line, "joined", &want, &ev, sizeof(want));
	check_eq(__FILE__, line, "LID of a group", 0xc, got->ah_attr.dlid >> 12);
	return got->ah_attr.dlid;
}
#define NEED_JOINED(f, mc, uid, mgid, qkey) need_joined(__LINE__, f, mc, uid, mgid, qkey)

static void joins(uint16_t ps, const union addr *a, const char *want, uint32_t qkey)
{
	uint8_t mgid[16];
	uint32_t id, mc;
	int f = fd();

	gid(want, mgid);
	for (int how = 0; how < 3; how++) {
		id = datagrams(f, ps, IB4);
		if (how == 2 && a->sa.sa_family == AF_IB) {
			CHECK_ERR(EINVAL, join_ip(f, id, 0x22, a));
			continue;
		}
		mc = REQUIRE_ID(how == 2 ? join_ip(f, id, 0x22, a)
					 : join(f, id, 0x22, a, how ? SEND_ONLY : FULL));
		NEED_JOINED(f, mc, 0x22, mgid, qkey);
		CHECK_EQ(1, leave(f, mc));
		CHECK_ERR(ENOENT, leave(f, mc));
		CHECK_EQ(1, REQUIRE_ID(destroy_id(f, id)));
	}
	CHECK(no_event(f, 0));
}

TEST(ib, group_ipv4)
{
	union addr a = addr4("239.1.2.3", 99);

	need_ib();
	joins(PS_UDP, &a, "ff12:4001:ffff::f01:203", QKEY);
}

TEST(ib, group_ipv6)
{
	union addr a = addr6("ff0e::1234:5678", 99);

	need_ib();
	joins(PS_UDP, &a, "ff12:6001:ffff::1234:5678", QKEY);
}

TEST(ib, group_of_ipoib)
{
	union addr a = addr4("239.1.2.4", 0), a6 = addr6("ff0e::1234:5679", 0);

	need_ib();
	joins(PS_IPOIB, &a, "ff12:401b:ffff::f01:204", IPOIB_QKEY);
	joins(PS_IPOIB, &a6, "ff12:601b:ffff::1234:5679", IPOIB_QKEY);
}

/* A GID that an administrator has given out is no address of IP. */
TEST(ib, group_assigned)
{
	union addr a = addr6("ff12:a01b:fe80::77", 0), ib = addr_ib(0, 0);

	need_ib();
	joins(PS_UDP, &a, "ff12:a01b:fe80::77", QKEY);
	gid("ff15:1234::77", ib.ib.gid);
	joins(PS_UDP, &ib, "ff15:1234::77", QKEY);
}

TEST(ib, group_of_any_address)
{
	union addr anys[] = { addr4("0.0.0.0", 0), addr6("::", 0), addr_ib(0, 0) };
	uint16_t lids[3];
	int f;

	need_ib();
	f = fd();
	/* The administrator chooses, another one each time. */
	for (int i = 0; i < 3; i++) {
		uint32_t id = datagrams(f, PS_UDP, IB4);
		uint32_t mc = REQUIRE_ID(join(f, id, 5, &anys[i], FULL));

		lids[i] = NEED_JOINED(f, mc, 5, NULL, QKEY);
	}
	CHECK(lids[0] != lids[1] && lids[1] != lids[2] && lids[0] != lids[2]);
}

TEST(ib, group_of_no_group)
{
	struct rdma_ucm_event_resp ev;
	union addr ib = addr_ib(0, 0);
	uint32_t id, mc;
	int f;

	need_ib();
	f = fd();
	/* Mapped as if it were one. */
	id = datagrams(f, PS_UDP, IB4);
	mc = REQUIRE_ID(join4(f, id, 2, "10.1.2.3", FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	CHECK_EQ(mc, ev.id);
	/* The GID of a port: the administrator's word counts. */
	id = datagrams(f, PS_UDP, IB4);
	memcpy(ib.ib.gid, port_of("ib_a").gid, 16);
	mc = REQUIRE_ID(join(f, id, 2, &ib, FULL));
	NEED_PLAIN(f, EV_MULTICAST_ERROR, mc, 2, -EINVAL);
}

TEST(ib, group_states)
{
	union addr dst = addr4(PEER4, 7851), gid, any = addr4("0.0.0.0", 0);
	uint8_t mgid[16];
	uint32_t id, mc;
	int f;

	need_ib();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	REQUIRE_OK(bind_addr(f, id, &any));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_OK(bind4(f, id, IB4, 0));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	NEED_ADDR(f, id, NULL, &dst);
	mc = REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	REQUIRE_EQ(1, inet_pton(AF_INET6, "ff12:4001:ffff::f01:203", mgid));
	NEED_JOINED(f, mc, 2, mgid, QKEY);
	NEED_ROUTE(f, id);
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	id = datagrams(f, PS_UDP, IB4);
	REQUIRE_OK(listen_id(f, id, 0));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	/* A native address has no interface of IPoIB, whose broadcast group is the model. */
	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	gid = native("ib_a", SID_UDP, PKEY);
	REQUIRE_OK(bind_addr(f, id, &gid));
	CHECK_ERR(EADDRNOTAVAIL, join4(f, id, 2, GROUP, FULL));
	CHECK(no_event(f, 20));
}

TEST(ib, group_refused)
{
	uint8_t mgid[16];
	uint32_t id, mc;
	int f;

	need_ib();
	gid("ff12:4001:ffff::f01:203", mgid);
	f = fd();
	id = datagrams(f, PS_UDP, IB4);
	sa("mcast refuse");
	for (int i = 0; i < 3; i++) {
		mc = REQUIRE_ID(join4(f, id, i, GROUP, FULL));
		NEED_PLAIN(f, EV_MULTICAST_ERROR, mc, i, -EINVAL);
		if (i)
			CHECK_EQ(1, leave(f, mc));
	}
	sa("%s", "");
	mc = REQUIRE_ID(join4(f, id, 7, GROUP, FULL));
	NEED_JOINED(f, mc, 7, mgid, QKEY);
	CHECK_EQ(4, REQUIRE_ID(destroy_id(f, id)));
}

/* One id more than once, and ids of one port together; in another namespace. */
TEST(ib, group_shared)
{
	uint8_t mgid[16];
	uint32_t ids[2], mc[4];
	uint16_t lid = 0;
	int f;

	need_ib();
	gid("ff12:4001:ffff::f01:203", mgid);
	f = fd();
	ids[0] = datagrams(f, PS_UDP, IB4);
	in_peer();
	ids[1] = datagrams(f, PS_UDP, PEER4);
	at_home();
	for (int i = 0; i < 4; i++) {
		mc[i] = REQUIRE_ID(join4(f, ids[i & 1], 10 + i, GROUP, i & 2 ? SEND_ONLY : FULL));
		if (i == 0)
			lid = NEED_JOINED(f, mc[i], 10 + i, mgid, QKEY);
		else
			CHECK_EQ(lid, NEED_JOINED(f, mc[i], 10 + i, mgid, QKEY));
	}
	CHECK_EQ(1, leave(f, mc[0]));
	mc[0] = REQUIRE_ID(join4(f, ids[0], 20, GROUP, FULL));
	CHECK_EQ(lid, NEED_JOINED(f, mc[0], 20, mgid, QKEY));
	CHECK_EQ(3, REQUIRE_ID(destroy_id(f, ids[0])));
	CHECK_EQ(2, REQUIRE_ID(destroy_id(f, ids[1])));
	CHECK_ERR(ENOENT, leave(f, mc[3]));
}

TEST(ib, group_left_before_the_answer)
{
	uint32_t id, mc;
	int f;

	need_ib();
	f = fd();
	id = datagrams(f, PS_UDP, IB4);
	sa("mcast delay=300");
	for (int i = 0; i < 2; i++) {
		mc = REQUIRE_ID(join4(f, id, 1, "239.1.2.9", FULL));
		usleep(20000 * i);
		CHECK_EQ(0, leave(f, mc));
	}
	mc = REQUIRE_ID(join4(f, id, 1, "239.1.2.10", FULL));
	CHECK_EQ(0, REQUIRE_ID(destroy_id(f, id)));
	id = datagrams(f, PS_UDP, IB4);
	mc = REQUIRE_ID(join4(f, id, 1, "239.1.2.11", FULL));
	(void)mc;
	CHECK(no_event(f, 0));
	close(f);
	sa("%s", "");
	/* All of it can be done again. */
	f = fd();
	id = datagrams(f, PS_UDP, IB4);
	mc = REQUIRE_ID(join4(f, id, 3, "239.1.2.9", FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	CHECK(no_event(f, 400));
}

static void while_it_is_joined(int leaving)
{
	uint8_t mgid[16];
	uint32_t id, mc[3];
	int f, other;

	gid("ff12:4001:ffff::f01:20c", mgid);
	f = fd();
	other = fd();
	id = datagrams(f, PS_UDP, IB4);
	sa("mcast delay=800");
	for (int i = 0; i < 3; i++)
		mc[i] = REQUIRE_ID(join4(f, id, i, "239.1.2.12", FULL));
	CHECK(no_event(f, 50));
	sa("%s", "");
	CHECK_EQ(0, leave(f, mc[leaving]));
	CHECK_EQ(0, REQUIRE_ID(migrate_id(other, id, f)));
	for (int i = 0; i < 3; i++) {
		if (i == leaving)
			continue;
		NEED_JOINED(other, mc[i], i, mgid, QKEY);
		CHECK_ERR(differs("foreign_id"), leave(f, mc[i]));
		CHECK_EQ(1, leave(other, mc[i]));
	}
	CHECK(no_event(f, 0));
	CHECK(no_event(other, 50));
}

TEST(ib, group_while_it_is_joined)
{
	need_ib();
	while_it_is_joined(2);
}

TEST(ib, group_of_several_left)
{
	need_ib();
	if (!is_rust())
		skip("C ends the latest membership of that address, and tells of the one that it has freed");
	while_it_is_joined(0);
	while_it_is_joined(1);
}

TEST(ib, group_without_uid)
{
	uint32_t id, mc;
	int f;

	need_ib();
	f = fd();
	id = REQUIRE_ID(create_id(f, PS_UDP, 0));
	REQUIRE_OK(bind4(f, id, IB4, 0));
	mc = REQUIRE_ID(join4(f, id, 7, GROUP, FULL));
	CHECK(no_event(f, 300));
	CHECK_EQ(0, leave(f, mc));
}

TEST(ib, groups_many)
{
	enum { N = 60 };
	uint32_t id, mc[N];
	char ip[32];
	int f;

	need_ib();
	f = fd();
	id = datagrams(f, PS_UDP, IB4);
	for (int i = 0; i < N; i++) {
		snprintf(ip, sizeof(ip), "239.7.0.%d", i + 1);
		mc[i] = REQUIRE_ID(join4(f, id, i, ip, FULL));
	}
	for (int i = 0; i < N; i++)
		NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	for (int i = 0; i < N; i += 2)
		CHECK_EQ(1, leave(f, mc[i]));
	CHECK_EQ(N, REQUIRE_ID(destroy_id(f, id)));
}

TEST(ib, group_without_interface)
{
	struct ib_uverbs_qp_attr attr;
	char cmd[100];
	uint32_t id, ipoib;
	int f;

	plug_ib();
	f = fd();
	id = datagrams(f, PS_UDP, PLUG_IB4);
	ipoib = datagrams(f, PS_IPOIB, PLUG_IB4);
	snprintf(cmd, sizeof(cmd), "ip link set %s down", ipoib_of("ib_c"));
	REQUIRE_EQ(0, system(cmd));
	/* It leaves its broadcast group, the model of all others, a moment later. */
	for (int i = 0; i < 100 && init_qp_attr(f, ipoib, INIT, &attr) >= 0; i++)
		usleep(20000);
	CHECK_ERR(EADDRNOTAVAIL, join4(f, id, 1, GROUP, FULL));
	CHECK_ERR(EADDRNOTAVAIL, join4(f, id, 1, GROUP, SEND_ONLY));
	CHECK_ERR(EADDRNOTAVAIL, join4(f, ipoib, 1, GROUP, FULL));
	CHECK_ERR(EADDRNOTAVAIL, init_qp_attr(f, ipoib, INIT, &attr));
	CHECK_OK(init_qp_attr(f, id, INIT, &attr));
	CHECK(no_event(f, 20));
	snprintf(cmd, sizeof(cmd), "ip link set %s up", ipoib_of("ib_c"));
	REQUIRE_EQ(0, system(cmd));
	plug_ib();
	REQUIRE_ID(join4(f, id, 1, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
}

/* The port goes down: who is a member has to join again. */
TEST_LIMIT(ib, group_lost, 60)
{
	uint8_t mgid[16];
	uint32_t id, a, b, c;
	int f;

	plug_ib();
	gid("ff12:4001:ffff::f01:203", mgid);
	f = fd();
	id = datagrams(f, PS_UDP, PLUG_IB4);
	a = REQUIRE_ID(join4(f, id, 0xa, GROUP, FULL));
	NEED_JOINED(f, a, 0xa, mgid, QKEY);
	REQUIRE_EQ(0, system("ip link set m2 down"));
	NEED_PLAIN(f, EV_MULTICAST_ERROR, a, 0xa, -ENETRESET);
	REQUIRE_EQ(0, system("ip link set m2 up; ip route replace 10.77.0.0/16 dev m2 metric 5000"));
	plug_ib();
	b = REQUIRE_ID(join4(f, id, 0xb, GROUP, FULL));
	NEED_JOINED(f, b, 0xb, mgid, QKEY);
	CHECK_EQ(2, leave(f, a));
	CHECK_EQ(1, leave(f, b));
	c = REQUIRE_ID(join4(f, id, 0xc, GROUP, FULL));
	NEED_JOINED(f, c, 0xc, mgid, QKEY);
}

/* An interface of another partition: the address tells which. */
#define OTHER4 "10.76.0.1"
TEST_LIMIT(ib, partition, 60)
{
	struct rdma_ucm_query_addr_resp addr;
	union addr a = addr4(OTHER4, 0);
	struct ib_uverbs_qp_attr attr;
	struct pair p = { 0 };
	struct record want;
	uint8_t mgid[16];
	uint32_t id, mc;
	char cmd[300], name[16];
	int f;

	need_ib();
	f = fd();
	snprintf(name, sizeof(name), "%s", ipoib_of("ib_a"));
	snprintf(cmd, sizeof(cmd), "echo 0x8001 >/sys/class/net/%s/create_child && "
		 "ip addr add " OTHER4 "/24 dev %s.8001 && ip link set %s.8001 up",
		 name, name, name);
	REQUIRE_EQ(0, system(cmd));
	id = REQUIRE_ID(create_id(f, PS_IPOIB, 1));
	REQUIRE_OK(bind_addr(f, id, &a));
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(OTHER_PKEY, ntohs(addr.pkey));
	CHECK_ENDS(f, id, port_of("ib_a").gid, (uint8_t [16]){ 0 }, OTHER_PKEY);
	/* While the broadcast group is joined, its Q_Key is 0. */
	for (int i = 0; i < 200; i++) {
		if (init_qp_attr(f, id, INIT, &attr) >= 0 && attr.qkey == IPOIB_QKEY)
			break;
		usleep(50000);
	}
	REQUIRE_EQ(IPOIB_QKEY, attr.qkey);
	CHECK_EQ(1, attr.pkey_index);
	mc = REQUIRE_ID(join4(f, id, 5, GROUP, FULL));
	gid("ff12:401b:8001::f01:203", mgid);
	NEED_JOINED(f, mc, 5, mgid, IPOIB_QKEY);

	pair_established(&p, &a);
	want = record_of("ib_a", "ib_a", SID_TCP | addr_port(&p.addr), OTHER_PKEY);
	CHECK_PATH(p.cfd, p.client, &want);
	REQUIRE_OK(query_addr(p.sfd, p.server, &addr));
	CHECK_EQ(OTHER_PKEY, ntohs(addr.pkey));
	REQUIRE_OK(init_qp_attr(p.cfd, p.client, INIT, &attr));
	CHECK_EQ(1, attr.pkey_index);
	REQUIRE_OK(init_qp_attr(p.sfd, p.server, INIT, &attr));
	CHECK_EQ(1, attr.pkey_index);
	snprintf(cmd, sizeof(cmd), "echo 0x8001 >/sys/class/net/%s/delete_child", name);
	REQUIRE_EQ(0, system(cmd));
	snprintf(cmd, sizeof(cmd), "%s.8001", name);
	for (int i = 0; i < 200 && (if_nametoindex(cmd) || init_qp_attr(f, id, INIT, &attr) >= 0); i++)
		usleep(20000);
	/* The id has the port, not the interface. */
	REQUIRE_OK(query_addr(f, id, &addr));
	CHECK_EQ(OTHER_PKEY, ntohs(addr.pkey));
	CHECK_ERR(EADDRNOTAVAIL, join4(f, id, 5, GROUP, FULL));
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, REQUIRE_ID(create_id(f, PS_UDP, 1)), &a));
}
