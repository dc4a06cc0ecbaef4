// SPDX-License-Identifier: GPL-2.0
/* Joining and leaving multicast groups, and who is a member. */
#include <ifaddrs.h>

#include "mcast.h"

uint32_t datagram_id(int f, uint64_t uid)
{
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, uid));

	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	return id;
}

long join_sized(int f, uint32_t id, uint64_t uid, const union addr *a, uint16_t size,
		uint16_t flags, void *resp, uint16_t out)
{
	struct rdma_ucm_join_mcast req = {
		.response = ptr(resp), .uid = uid, .id = id, .addr_size = size,
		.join_flags = flags,
	};

	memcpy(&req.addr, a, sizeof(*a));
	return cm_cmd(f, RDMA_USER_CM_CMD_JOIN_MCAST, &req, sizeof(req), out);
}

long join(int f, uint32_t id, uint64_t uid, const union addr *a, uint16_t flags)
{
	uint32_t *mc = edge_fill(4, 0xee);
	long ret = join_sized(f, id, uid, a, addr_size(a), flags, mc, 4);

	return ret < 0 ? ret : (long)*mc;
}

long join4(int f, uint32_t id, uint64_t uid, const char *ip, uint16_t flags)
{
	union addr a = addr4(ip, 0);

	return join(f, id, uid, &a, flags);
}

long join_ip(int f, uint32_t id, uint64_t uid, const union addr *a)
{
	uint32_t *mc = edge_fill(4, 0xee);
	struct rdma_ucm_join_ip_mcast req = {
		.response = ptr(mc), .uid = uid, .id = id, .addr = a->in6,
	};
	long ret = cm_cmd(f, RDMA_USER_CM_CMD_JOIN_IP_MCAST, &req, sizeof(req), 4);

	return ret < 0 ? ret : (long)*mc;
}

long leave(int f, uint32_t mc)
{
	uint32_t *reported = edge_fill(4, 0xee);
	struct rdma_ucm_destroy_id req = { .response = ptr(reported), .id = mc };
	long ret = cm_cmd(f, RDMA_USER_CM_CMD_LEAVE_MCAST, &req, sizeof(req), 4);

	return ret < 0 ? ret : (long)*reported;
}

long igmp_at(const char *netdev, const char *group)
{
	FILE *f = fopen("/proc/net/igmp", "r");
	struct in_addr want;
	char line[256];
	bool here = false;
	long users = 0;

	if (!f)
		return -errno;
	inet_pton(AF_INET, group, &want);
	while (fgets(line, sizeof(line), f)) {
		char name[64];
		unsigned int addr, n;

		/* A line for the device, then indented ones for its groups. */
		if (line[0] != '\t')
			here = sscanf(line, "%*d %63[^: ]", name) == 1 &&
			       strcmp(name, netdev) == 0;
		else if (here && sscanf(line, "%x %u", &addr, &n) == 2 &&
			 addr == want.s_addr)
			users = n;
	}
	fclose(f);
	return users;
}

long mld_at(const char *netdev, const char *group)
{
	FILE *f = fopen("/proc/net/igmp6", "r");
	struct in6_addr want;
	char line[256], hex[33];
	long users = 0;

	if (!f)
		return -errno;
	inet_pton(AF_INET6, group, &want);
	for (int i = 0; i < 16; i++)
		sprintf(hex + 2 * i, "%02x", want.s6_addr[i]);
	while (fgets(line, sizeof(line), f)) {
		char name[64], addr[64];
		unsigned int n;

		if (sscanf(line, "%*d %63s %63s %u", name, addr, &n) == 3 &&
		    strcmp(name, netdev) == 0 && strcmp(addr, hex) == 0)
			users = n;
	}
	fclose(f);
	return users;
}

const char *netdev4(void)
{
	static char name[64];
	union addr want = addr4(ADDR4, 0);
	struct ifaddrs *all, *i;

	if (name[0] || getifaddrs(&all))
		return name;
	for (i = all; i; i = i->ifa_next) {
		const union addr *a = (const void *)i->ifa_addr;

		if (a && a->sa.sa_family == AF_INET &&
		    a->in.sin_addr.s_addr == want.in.sin_addr.s_addr)
			snprintf(name, sizeof(name), "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return name;
}

long igmp(const char *group)
{
	return igmp_at(netdev4(), group);
}

void check_joined(const struct rdma_ucm_event_resp *ev, uint32_t mc, uint64_t uid,
		  const uint8_t *dgid)
{
	struct rdma_ucm_event_resp want = { .uid = uid, .id = mc, .event = EV_MULTICAST_JOIN };
	struct rdma_ucm_ud_param ud = { .qp_num = 0xffffff, .qkey = QKEY };
	const struct rdma_ucm_ud_param *got = (const void *)&ev->param;

	memcpy(ud.ah_attr.grh.dgid, dgid, 16);
	/* The device chooses the entry of the table. */
	ud.ah_attr.grh.sgid_index = got->ah_attr.grh.sgid_index;
	ud.ah_attr.grh.hop_limit = 64;
	ud.ah_attr.is_global = 1;
	ud.ah_attr.port_num = 1;
	memcpy(&want.param, &ud, sizeof(ud));
	CHECK_MEM(&want, ev, sizeof(want));
}
