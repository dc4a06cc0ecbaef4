// SPDX-License-Identifier: GPL-2.0
/* JOIN_MCAST, JOIN_IP_MCAST and LEAVE_MCAST. */
#include <net/if.h>

#include "mcast.h"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };

static void joins(uint16_t flags, bool old)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(GROUP, 0);
	int f = fd();
	uint32_t id = datagram_id(f, 0x11), mc;

	mc = REQUIRE_ID(old ? join_ip(f, id, 0x22, &a) : join(f, id, 0x22, &a, flags));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, 0x22, mapped);
	CHECK_EQ(flags == FULL, igmp(GROUP));
	CHECK_EQ(1, leave(f, mc));
	CHECK_EQ(0, igmp(GROUP));
	CHECK(no_event(f, 0));
}

TEST(mcast, full_member)
{
	joins(FULL, false);
}

TEST(mcast, full_member_by_ip)
{
	joins(FULL, true);
}

TEST(mcast, send_only_member)
{
	joins(SEND_ONLY, false);
}

TEST(mcast, port_and_scope_do_not_matter)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(GROUP, 4711);
	int f = fd();
	uint32_t id = datagram_id(f, 1);
	uint32_t mc = REQUIRE_ID(join(f, id, 2, &a, FULL));

	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, 2, mapped);
}

TEST(mcast, sgid_index_is_that_of_the_address)
{
	struct rdma_ucm_event_resp ev;
	const struct rdma_ucm_ud_param *ud = (const void *)&ev.param;
	union addr a = addr4(ADDR4, 0);
	char path[100], gid[64], want[64];
	const uint8_t *ip = (const void *)&a.in.sin_addr;
	int f = fd();
	FILE *file;

	REQUIRE_ID(join4(f, datagram_id(f, 1), 2, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	snprintf(path, sizeof(path), "/sys/class/infiniband/rxe0/ports/1/gids/%u",
		 ud->ah_attr.grh.sgid_index);
	file = fopen(path, "r");
	REQUIRE(file);
	REQUIRE(fgets(gid, sizeof(gid), file));
	fclose(file);
	snprintf(want, sizeof(want), "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n",
		 ip[0], ip[1], ip[2], ip[3]);
	CHECK(strcmp(gid, want) == 0);
}

TEST(mcast, addresses_of_no_group)
{
	union addr a = addr4("0.0.0.0", 0), any6 = addr6("::", 0), ib = addr_ib(0, 0);
	int f = fd();
	uint32_t id = datagram_id(f, 1);

	CHECK_ERR(EINVAL, join(f, id, 2, &a, FULL));
	CHECK_ERR(EINVAL, join(f, id, 2, &a, SEND_ONLY));
	CHECK_ERR(EINVAL, join_ip(f, id, 2, &a));
	CHECK_ERR(EINVAL, join(f, id, 2, &any6, FULL));
	CHECK_ERR(EINVAL, join_ip(f, id, 2, &any6));
	CHECK_ERR(EINVAL, join(f, id, 2, &ib, FULL));
	CHECK(no_event(f, 50));
}

/* By one command or the other; and left, or not joined at all. */
static void joins6(const char *group, uint16_t flags, bool old)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr6(group, 0);
	int f = fd();
	uint32_t id = datagram_id(f, 1), mc;
	long before = mld_at(netdev4(), group);
	long ret = old ? join_ip(f, id, 0x22, &a) : join(f, id, 0x22, &a, flags);

	if (differs("ipv6_groups")) {
		CHECK_ERR(differs("ipv6_groups"), ret);
		return;
	}
	mc = REQUIRE_ID(ret);
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, 0x22, a.in6.sin6_addr.s6_addr);
	CHECK_EQ(before + (flags == FULL), mld_at(netdev4(), group));
	CHECK_EQ(1, leave(f, mc));
	CHECK_EQ(before, mld_at(netdev4(), group));
	CHECK(no_event(f, 0));
}

TEST(mcast, ipv6_groups)
{
	/* The last one is a group that each interface has joined. */
	static const char *const groups[] = { "ff12::77", "ff05::77", "ff15::a01b:0:1", "ff18::77", "ff0e::1234",
					      "ff02::1" };

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		joins6(groups[i], FULL, false);
		joins6(groups[i], FULL, true);
		joins6(groups[i], SEND_ONLY, false);
	}
}

TEST(mcast, ipv6_group_of_a_link)
{
	union addr a = addr6("ff12::77", 0);
	int f = fd();
	uint32_t id = datagram_id(f, 1);

	/* The interface of the id, and another one. */
	a.in6.sin6_scope_id = if_nametoindex(netdev4());
	if (differs("ipv6_groups")) {
		CHECK_ERR(differs("ipv6_groups"), join(f, id, 2, &a, FULL));
		return;
	}
	REQUIRE_ID(join(f, id, 2, &a, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	CHECK_EQ(1, mld_at(netdev4(), "ff12::77"));
	a.in6.sin6_scope_id = if_nametoindex("lo");
	CHECK_ERR(EINVAL, join(f, id, 2, &a, FULL));
	CHECK_ERR(EINVAL, join(f, id, 2, &a, SEND_ONLY));
	CHECK_EQ(1, mld_at(netdev4(), "ff12::77"));
	CHECK(no_event(f, 50));
	/* The end of the file is the end of its memberships. */
	close(f);
	CHECK_EQ(0, mld_at(netdev4(), "ff12::77"));
}

TEST(mcast, no_groups_over_udp)
{
	/* These groups do not leave the host, or are no groups. */
	static const char *const groups[] = { "ff00::1", "ff01::1", "ff11::77", "fd00::9", "fe80::9", "::1",
					      "::ffff:239.1.2.3" };
	union addr ib = addr_ib(0, 0);
	int f = fd();
	uint32_t id = datagram_id(f, 1);

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		union addr a = addr6(groups[i], 0);

		CHECK_ERR(ENOTSUPP, join(f, id, 2, &a, FULL));
		CHECK_ERR(ENOTSUPP, join(f, id, 2, &a, SEND_ONLY));
		CHECK_ERR(ENOTSUPP, join_ip(f, id, 2, &a));
	}
	ib.ib.gid[0] = 0xff;
	CHECK_ERR(ENOTSUPP, join(f, id, 2, &ib, FULL));
	CHECK(no_event(f, 50));
}

TEST(mcast, ipv6_id_ipv4_group)
{
	union addr a6 = global6(0);
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1)), mc;

	REQUIRE_OK(bind_addr(f, id, &a6));
	mc = REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, 2, mapped);
	CHECK_EQ(1, igmp(GROUP));
}

TEST(mcast, addresses_that_are_not_multicast)
{
	static const uint8_t host[16] = { [10] = 0xff, 0xff, 10, 0, 0, 77 }, none[16];
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = datagram_id(f, 1), mc;

	mc = REQUIRE_ID(join4(f, id, 2, "10.0.0.77", FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, 2, host);
	CHECK_EQ(differs("igmp_of_no_group"), igmp("10.0.0.77"));
	mc = REQUIRE_ID(join4(f, id, 2, "127.0.0.1", FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, 2, none);
	CHECK_EQ(differs("igmp_of_no_group"), igmp("0.0.0.0"));
	REQUIRE_ID(destroy_id(f, id));
	CHECK_EQ(0, igmp("10.0.0.77"));
}

TEST(mcast, sizes_and_flags)
{
	union addr a = addr4(GROUP, 0), none = { 0 }, odd = { .sa.sa_family = AF_UNIX };
	int f = fd();
	uint32_t id = datagram_id(f, 1), mc;

	for (int size = 0; size < 140; size++)
		if (size != 16)
			CHECK_ERR(EINVAL, join_sized(f, id, 2, &a, size, FULL, &mc, 4));
	CHECK_ERR(EINVAL, join_sized(f, id, 2, &a, 0xffff, FULL, &mc, 4));
	a = addr6("ff02::1", 0);
	CHECK_ERR(EINVAL, join_sized(f, id, 2, &a, 16, FULL, &mc, 4));
	a = addr_ib(0, 0);
	CHECK_ERR(EINVAL, join_sized(f, id, 2, &a, 28, FULL, &mc, 4));
	for (int size = 0; size < 130; size++) {
		CHECK_ERR(EINVAL, join_sized(f, id, 2, &none, size, FULL, &mc, 4));
		CHECK_ERR(EINVAL, join_sized(f, id, 2, &odd, size, FULL, &mc, 4));
	}
	CHECK_ERR(EINVAL, join_ip(f, id, 2, &none));
	CHECK_ERR(EINVAL, join_ip(f, id, 2, &odd));
	a = addr_ib(0, 0);
	CHECK_ERR(EINVAL, join_ip(f, id, 2, &a));
	a = addr4(GROUP, 0);
	for (int flags = 2; flags < 0x10000; flags = flags * 2 - 1)
		CHECK_ERR(EINVAL, join(f, id, 2, &a, flags));
	CHECK_EQ(0, igmp(GROUP));
}

TEST(mcast, order_of_the_checks)
{
	union addr a = addr4(GROUP, 0), none = { 0 };
	uint32_t nobody = 0xffffffff, mc;
	int f = fd();

	/* Family, room for the answer, size, flags, id. */
	CHECK_ERR(EINVAL, join_sized(f, nobody, 2, &none, 3, 9, &mc, 0));
	CHECK_ERR(ENOSPC, join_sized(f, nobody, 2, &a, 3, 9, &mc, 3));
	CHECK_ERR(EINVAL, join_sized(f, nobody, 2, &a, 3, 0, &mc, 4));
	CHECK_ERR(EINVAL, join_sized(f, nobody, 2, &a, 16, 9, &mc, 4));
	CHECK_ERR(ENOENT, join_sized(f, nobody, 2, &a, 16, 0, &mc, 4));
	CHECK_ERR(ENOENT, join_ip(f, nobody, 2, &a));
	CHECK_ERR(EINVAL, join_ip(f, nobody, 2, &none));
	/* The id's file, before its state. */
	CHECK_ERR(differs("foreign_id"), join(fd(), datagram_id(f, 1), 2, &a, 0));
}

TEST(mcast, states)
{
	union addr dst = addr4(ADDR4, 7471), loop = addr4("127.0.0.1", 7471);
	int f = fd();
	uint32_t id;

	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	REQUIRE_OK(bind4(f, id, "0.0.0.0", 0));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));

	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	NEED_ADDR(f, id, NULL, &dst);
	REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	NEED_ROUTE(f, id);
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	CHECK_ERR(EINVAL, join4(f, id, 2, "239.9.9.9", SEND_ONLY));
	CHECK_EQ(1, igmp(GROUP));
	CHECK_EQ(0, igmp("239.9.9.9"));

	id = datagram_id(f, 1);
	REQUIRE_OK(listen_id(f, id, 1));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));

	/* No interface. */
	id = REQUIRE_ID(create_id(f, PS_UDP, 1));
	NEED_ADDR(f, id, NULL, &loop);
	CHECK_ERR(ENODEV, join4(f, id, 2, GROUP, FULL));
	CHECK_ERR(EINVAL, join4(f, id, 2, "0.0.0.0", FULL));
	CHECK(no_event(f, 50));
}

TEST(mcast, kinds_of_ids)
{
	struct rdma_ucm_event_resp ev;
	int f = fd();

	for (int type = 0; type < 20; type++) {
		uint32_t id = REQUIRE_ID(create_id_type(f, PS_IB, type, 1));

		REQUIRE_OK(bind4(f, id, ADDR4, 0));
		if (type == QPT_UD) {
			uint32_t mc = REQUIRE_ID(join4(f, id, 2, GROUP, FULL));

			NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
			check_joined(&ev, mc, 2, mapped);
		} else {
			CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
			CHECK_ERR(EINVAL, join4(f, id, 2, "0.0.0.0", FULL));
		}
	}
	uint32_t id = REQUIRE_ID(create_id(f, PS_TCP, 1));
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	id = REQUIRE_ID(create_id(f, PS_IPOIB, 1));
	REQUIRE_OK(bind4(f, id, "0.0.0.0", 0));
	CHECK_ERR(EINVAL, join4(f, id, 2, GROUP, FULL));
	CHECK(no_event(f, 50));
}

TEST(mcast, igmp_counts)
{
	int f = fd(), g = fd();
	uint32_t a = datagram_id(f, 1), b = datagram_id(g, 1), mc[4];

	mc[0] = REQUIRE_ID(join4(f, a, 2, GROUP, FULL));
	mc[1] = REQUIRE_ID(join4(f, a, 3, "239.7.7.7", FULL));
	mc[2] = REQUIRE_ID(join4(g, b, 4, GROUP, FULL));
	mc[3] = REQUIRE_ID(join4(g, b, 5, GROUP, SEND_ONLY));
	CHECK_EQ(2, igmp(GROUP));
	CHECK_EQ(1, igmp("239.7.7.7"));
	CHECK_EQ(0, leave(f, mc[0]));
	CHECK_EQ(1, igmp(GROUP));
	CHECK_EQ(0, leave(g, mc[3]));
	CHECK_EQ(1, igmp(GROUP));
	/* With the id, with the file. */
	REQUIRE_ID(destroy_id(f, a));
	CHECK_EQ(0, igmp("239.7.7.7"));
	CHECK_EQ(1, igmp(GROUP));
	close(g);
	CHECK_EQ(0, igmp(GROUP));
	CHECK_ERR(ENOENT, leave(f, mc[1]));
	CHECK_ERR(ENOENT, leave(f, mc[2]));
}

TEST(mcast, same_group_twice)
{
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = datagram_id(f, 1), a, b;

	a = REQUIRE_ID(join4(f, id, 0xa, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, a, 0xa, mapped);
	b = REQUIRE_ID(join4(f, id, 0xb, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, b, 0xb, mapped);
	CHECK_EQ(2, igmp(GROUP));
	CHECK_EQ(1, leave(f, a));
	CHECK_EQ(1, igmp(GROUP));
	CHECK_EQ(1, leave(f, b));
	CHECK_EQ(0, igmp(GROUP));
}

TEST(mcast, numbers)
{
	int f = fd(), g = fd();
	uint32_t a = datagram_id(f, 1), b = datagram_id(g, 1), mc[4];

	/* The lowest that is free, for all files together; not those of ids. */
	for (int i = 0; i < 4; i++) {
		mc[i] = REQUIRE_ID(join4(i & 1 ? g : f, i & 1 ? b : a, 2, GROUP, FULL));
		CHECK_EQ(i, mc[i]);
	}
	CHECK_EQ(0, leave(f, mc[2]));
	CHECK_EQ(0, leave(g, mc[1]));
	CHECK_EQ(1, join4(f, a, 2, GROUP, FULL));
	CHECK_EQ(2, join4(f, a, 2, GROUP, FULL));
	CHECK_EQ(4, join4(f, a, 2, GROUP, FULL));
	/* A join that fails takes none. */
	CHECK_ERR(EINVAL, join4(f, a, 2, "0.0.0.0", FULL));
	CHECK_EQ(5, join4(f, a, 2, GROUP, FULL));
}

TEST(mcast, leave_errors)
{
	uint32_t *reported = edge_fill(4, 0xee);
	struct rdma_ucm_destroy_id req = { .response = ptr(reported) };
	int f = fd();
	uint32_t id = datagram_id(f, 1), mc;

	CHECK_ERR(ENOENT, leave(f, 0));
	CHECK_ERR(ENOENT, leave(f, 0xffffffff));
	mc = REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	CHECK_ERR(differs("foreign_id"), leave(fd(), mc));
	req.id = mc;
	for (int out = 0; out < 4; out++)
		CHECK_ERR(ENOSPC, cm_cmd(f, RDMA_USER_CM_CMD_LEAVE_MCAST, &req, sizeof(req), out));
	CHECK_EQ(1, igmp(GROUP));
	CHECK_EQ(0, leave(f, mc));
	CHECK_ERR(ENOENT, leave(f, mc));
	/* Left, though the answer cannot be written. */
	mc = REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	req.id = mc;
	req.response = ptr(unmapped());
	CHECK_ERR(EFAULT, cm_cmd(f, RDMA_USER_CM_CMD_LEAVE_MCAST, &req, sizeof(req), 4));
	CHECK_ERR(ENOENT, leave(f, mc));
	CHECK_EQ(0, igmp(GROUP));
	CHECK(no_event(f, 50));
}

TEST(mcast, leave_takes_the_event_along)
{
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = datagram_id(f, 1), mc[3];

	for (int i = 0; i < 3; i++)
		mc[i] = REQUIRE_ID(join4(f, id, 0x10 + i, GROUP, FULL));
	usleep(100000);
	CHECK_EQ(0, leave(f, mc[0]));
	CHECK_EQ(0, leave(f, mc[2]));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc[1], 0x11, mapped);
	CHECK(no_event(f, 50));
	CHECK_EQ(1, leave(f, mc[1]));
	/* Events that were read count for the id, too. */
	CHECK_EQ(1, destroy_id(f, id));
}

TEST(mcast, answer_cannot_be_written)
{
	union addr a = addr4(GROUP, 0);
	int f = fd();
	uint32_t id = datagram_id(f, 1);

	for (int i = 0; i < 50; i++) {
		CHECK_ERR(EFAULT, join_sized(f, id, 2, &a, 16, FULL, unmapped(), 4));
		CHECK_ERR(EFAULT, join_sized(f, id, 2, &a, 16, FULL, NULL, 4));
		CHECK_ERR(EFAULT, join_sized(f, id, 2, &a, 16, FULL, readonly(4), 4));
		CHECK_ERR(EFAULT, join_sized(f, id, 2, &a, 16, SEND_ONLY, edge(3), 4));
	}
	CHECK_EQ(0, igmp(GROUP));
	CHECK(no_event(f, 100));
	CHECK_EQ(0, join4(f, id, 2, GROUP, FULL));
}

TEST(mcast, answer_is_four_bytes)
{
	union addr a = addr4(GROUP, 0);
	uint8_t *buf = edge_fill(64, 0xee);
	int f = fd();
	uint32_t id = datagram_id(f, 1);

	for (int out = 4; out <= 64; out += 20) {
		memset(buf, 0xee, 64);
		REQUIRE_OK(join_sized(f, id, 2, &a, 16, FULL, buf, out));
		for (int i = 4; i < 64; i++)
			CHECK_EQ(0xee, buf[i]);
	}
}

TEST(mcast, uids)
{
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = datagram_id(f, 1), mc;

	/* The uid of the membership may be 0; that of the id says whether there are events. */
	mc = REQUIRE_ID(join4(f, id, 0, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, 0, mapped);
	mc = REQUIRE_ID(join4(f, id, UINT64_MAX, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	check_joined(&ev, mc, UINT64_MAX, mapped);
	mc = REQUIRE_ID(join4(f, datagram_id(f, 0), 7, GROUP, FULL));
	CHECK(no_event(f, 100));
	CHECK_EQ(0, leave(f, mc));
}

TEST_LIMIT(mcast, many_groups, 120)
{
	enum { N = 300 };
	struct rdma_ucm_event_resp ev;
	int f = fd();
	uint32_t id = datagram_id(f, 1), mc[N];
	char ip[32];

	for (int i = 0; i < N; i++) {
		snprintf(ip, sizeof(ip), "239.3.%d.%d", i / 256, i % 256);
		mc[i] = REQUIRE_ID(join4(f, id, 1000 + i, ip, FULL));
	}
	CHECK_EQ(1, igmp("239.3.1.43"));
	/* No event is lost, and they come in order. */
	for (int i = 0; i < N; i++) {
		uint8_t dgid[16] = { [10] = 0xff, 0xff, 239, 3, i / 256, i % 256 };

		NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
		check_joined(&ev, mc[i], 1000 + i, dgid);
	}
	for (int i = 0; i < N; i += 2)
		CHECK_EQ(1, leave(f, mc[i]));
	CHECK_EQ(N, destroy_id(f, id));
	CHECK_EQ(0, igmp("239.3.1.43"));
}

TEST(mcast, q_key_of_the_queue_pair)
{
	struct ib_uverbs_qp_attr attr;
	int f = fd();
	uint32_t id = datagram_id(f, 1);

	REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	REQUIRE_OK(init_qp_attr(f, id, 1, &attr));
	CHECK_EQ(QKEY, attr.qkey);
}

TEST(mcast, address_that_has_gone)
{
	struct rdma_ucm_event_resp ev, want = { .uid = 9, .event = EV_MULTICAST_ERROR };
	char cmd[100];
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	snprintf(cmd, sizeof(cmd), "ip addr add 10.0.0.99/32 dev %s", netdev4());
	REQUIRE_EQ(0, system(cmd));
	/* The device learns of the address from a work queue. */
	for (int i = 0; i < 100 && bind4(f, id, "10.0.0.99", 0) < 0; i++)
		usleep(50000);
	memcpy(cmd, "ip addr del", 11);
	REQUIRE_EQ(0, system(cmd));
	usleep(500000);
	want.id = REQUIRE_ID(join4(f, id, 9, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_ERROR, &ev);
	want.status = differs("mcast_error_status");
	CHECK_MEM(&want, &ev, sizeof(ev));
	CHECK_EQ(1, leave(f, want.id));
	CHECK_EQ(0, igmp(GROUP));
}
