// SPDX-License-Identifier: GPL-2.0
/* Addresses of VLANs, IPv4-mapped addresses, and scopes of link-local ones. */
#include <net/if.h>

#include "mcast.h"

#define VLAN4 "10.7.0.1"
#define VLAN6 "fd07::1"

static int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

static uint32_t new_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 1));
}

/* A VLAN of the device's netdev. Its priorities 6 and 2 go out as 3 and 5. */
static void add_vlan(void)
{
	char cmd[400];

	snprintf(cmd, sizeof(cmd),
		 "ip link add link %s name vl7 type vlan id 7 egress-qos-map 6:3 2:5 && "
		 "ip link set vl7 up && ip addr add " VLAN4 "/24 dev vl7 && "
		 "ip addr add " VLAN6 "/64 dev vl7 nodad", netdev4());
	REQUIRE_EQ(0, system(cmd));
}

static void remove_vlan(void)
{
	CHECK_EQ(0, run_within(10, "ip link del vl7"));
}

/* The device learns of addresses from a work queue. */
static void bind_soon(int f, uint32_t id, const union addr *a)
{
	long ret = -1;

	for (int i = 0; i < 100 && ret < 0; i++) {
		ret = bind_addr(f, id, a);
		if (ret < 0)
			usleep(50000);
	}
	REQUIRE_OK(ret);
}

static void vlan_pair(const union addr *a)
{
	struct rdma_ucm_query_addr_resp on_vlan, on_netdev;
	struct ib_uverbs_qp_attr attr, other;
	struct pair p = { 0 };
	int f = fd();
	uint32_t id = new_id(f);

	add_vlan();
	bind_soon(f, id, a);
	REQUIRE_OK(query_addr(f, id, &on_vlan));
	REQUIRE_ID(destroy_id(f, id));
	id = new_id(f);
	REQUIRE_OK(bind4(f, id, ADDR4, 0));
	REQUIRE_OK(query_addr(f, id, &on_netdev));
	/* It is the same device, with a GID of its own. */
	CHECK_EQ(on_netdev.node_guid, on_vlan.node_guid);
	CHECK_EQ(on_netdev.ibdev_index, on_vlan.ibdev_index);
	pair_established(&p, a);
	REQUIRE_OK(init_qp_attr(p.cfd, p.client, 2, &attr));
	REQUIRE_OK(init_qp_attr(p.sfd, p.server, 2, &other));
	CHECK_MEM(attr.ah_attr.grh.dgid, other.ah_attr.grh.dgid, 16);
	CHECK_EQ(attr.ah_attr.grh.sgid_index, other.ah_attr.grh.sgid_index);
	REQUIRE_OK(disconnect_id(p.cfd, p.client));
	NEED_EVENT(p.sfd, EV_DISCONNECTED, NULL);
	close(p.cfd);
	close(p.sfd);
	remove_vlan();
}

TEST(netdev, vlan)
{
	union addr a = addr4(VLAN4, 0);

	vlan_pair(&a);
}

TEST(netdev, vlan_ipv6)
{
	union addr a = addr6(VLAN6, 0);

	vlan_pair(&a);
}

static int level(uint8_t tos)
{
	union addr dst = addr4(VLAN4, 7471);
	struct rdma_ucm_query_route_resp r;
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_OK(set_option(f, id, 0, RDMA_OPTION_ID_TOS, &tos, 1));
	route_id(f, id, &dst);
	REQUIRE_OK(query_route(f, id, &r));
	CHECK_EQ(tos, r.ib_route[0].traffic_class);
	close(f);
	return r.ib_route[0].sl;
}

TEST(netdev, vlan_service_level)
{
	union addr a = addr4(VLAN4, 0);
	int f = fd();
	uint32_t id = new_id(f);

	add_vlan();
	bind_soon(f, id, &a);
	close(f);
	/* The priority that the egress map gives for the type of service. */
	CHECK_EQ(0, level(0));
	CHECK_EQ(3, level(0x10));
	CHECK_EQ(5, level(0x08));
	remove_vlan();
}

TEST(netdev, vlan_group)
{
	struct rdma_ucm_event_resp ev;
	union addr a = addr4(VLAN4, 0);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1));

	add_vlan();
	bind_soon(f, id, &a);
	REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, &ev);
	CHECK_EQ(1, igmp_at("vl7", GROUP));
	CHECK_EQ(0, igmp(GROUP));
	close(f);
	CHECK_EQ(0, igmp_at("vl7", GROUP));
	remove_vlan();
}

TEST(netdev, vlan_goes)
{
	union addr a = addr4(VLAN4, 0);
	int f = fd();
	uint32_t id = REQUIRE_ID(create_id(f, PS_UDP, 1)), listener = new_id(f);

	add_vlan();
	bind_soon(f, id, &a);
	REQUIRE_OK(bind_addr(f, listener, &a));
	REQUIRE_OK(listen_id(f, listener, 1));
	REQUIRE_ID(join4(f, id, 2, GROUP, FULL));
	NEED_EVENT(f, EV_MULTICAST_JOIN, NULL);
	/* The device stays, and so do ids that nobody can use. */
	remove_vlan();
	CHECK_ERR(ENODEV, join4(f, id, 2, GROUP, FULL));
	CHECK(no_event(f, 100));
	CHECK_OK(destroy_id(f, listener));
	CHECK_EQ(1, destroy_id(f, id));
}

static union addr mapped(const char *ip, uint16_t port)
{
	char text[64];

	snprintf(text, sizeof(text), "::ffff:%s", ip);
	return addr6(text, port);
}

TEST(netdev, mapped_addresses)
{
	union addr own = mapped(ADDR4, 0), far = mapped("10.0.0.2", 7471), any6 = addr6("::", 0);
	int f = fd();
	uint32_t id = new_id(f);

	/* IPv6 addresses as any other, which no interface has and no route leads to. */
	CHECK_ERR(EADDRNOTAVAIL, bind_addr(f, id, &own));
	CHECK_ERR(EADDRNOTAVAIL, bind_ip(f, id, &own));
	CHECK_ERR(ENETUNREACH, resolve_addr(f, id, NULL, &far, 1000));
	id = new_id(f);
	CHECK_ERR(EADDRNOTAVAIL, resolve_addr(f, id, &own, &far, 1000));
	CHECK_ERR(ENETUNREACH, resolve_ip(f, id, &any6, &far, 1000));
	CHECK(no_event(f, 50));
}

TEST(netdev, mapped_address_of_a_listener_for_both)
{
	union addr any6 = addr6("::", 0), dst = addr4(ADDR4, 0);
	struct rdma_ucm_query_addr_resp resp;
	struct rdma_ucm_event_resp ev;
	struct rdma_ucm_conn_param param = conn_param();
	int s = fd(), c = fd(), off = 0;
	uint32_t listener = new_id(s), client;

	/* A request over IPv4 has IPv4 addresses at both ends, and none that is mapped. */
	REQUIRE_OK(set_option(s, listener, 0, RDMA_OPTION_ID_AFONLY, &off, 4));
	REQUIRE_OK(bind_addr(s, listener, &any6));
	REQUIRE_OK(listen_id(s, listener, 1));
	REQUIRE_OK(query_addr(s, listener, &resp));
	dst.in.sin_port = ((union addr *)&resp.src_addr)->in6.sin6_port;
	client = routed_client(c, 5, &dst);
	REQUIRE_OK(connect_id(c, client, &param));
	NEED_EVENT(s, EV_CONNECT_REQUEST, &ev);
	REQUIRE_OK(query_addr(s, ev.id, &resp));
	CHECK_EQ(16, resp.src_size);
	CHECK_EQ(16, resp.dst_size);
	CHECK_MEM(&dst, &resp.src_addr, 16);
	REQUIRE_OK(reject_id(s, ev.id, NULL, 0, 0));
	NEED_EVENT(c, EV_REJECTED, NULL);
}

TEST(netdev, linklocal_pair)
{
	union addr a = linklocal6(0);
	struct rdma_ucm_query_addr_resp resp;
	struct pair p = { 0 };

	pair_established(&p, &a);
	REQUIRE_OK(query_addr(p.cfd, p.client, &resp));
	CHECK_EQ(a.in6.sin6_scope_id, ((union addr *)&resp.src_addr)->in6.sin6_scope_id);
	CHECK_EQ(a.in6.sin6_scope_id, ((union addr *)&resp.dst_addr)->in6.sin6_scope_id);
	REQUIRE_OK(query_addr(p.sfd, p.server, &resp));
	CHECK_EQ(28, resp.src_size);
	CHECK_MEM(&a.in6.sin6_addr, &((union addr *)&resp.src_addr)->in6.sin6_addr, 16);
}

TEST(netdev, linklocal_scopes)
{
	union addr a = linklocal6(0), dst;
	unsigned int right = a.in6.sin6_scope_id;
	int f = fd();
	uint32_t id = new_id(f);

	/* No scope, and one of no interface. */
	a.in6.sin6_scope_id = 0;
	CHECK_ERR(EINVAL, bind_addr(f, id, &a));
	a.in6.sin6_scope_id = 0x7ffffff0;
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
	dst = a;
	dst.in6.sin6_port = htons(7471);
	id = new_id(f);
	dst.in6.sin6_scope_id = right;
	CHECK_OK(resolve_addr(f, id, NULL, &dst, 1000));
	NEED_EVENT(f, EV_ADDR_RESOLVED, NULL);

	/* A peer without a scope is where the routes say, on whichever interface. */
	id = new_id(f);
	dst.in6.sin6_scope_id = 0;
	CHECK_OK(resolve_addr(f, id, NULL, &dst, 1000));
}

/* The scope has to be the interface that has the address, after calls that failed as well. */
TEST(netdev, linklocal_scope_of_another)
{
	union addr good = linklocal6(0), a = good;
	int f = fd();
	uint32_t id = new_id(f);

	REQUIRE_EQ(0, system("ip link add vl8 type dummy && ip link set vl8 up"));
	a.in6.sin6_scope_id = if_nametoindex("vl8");
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
	CHECK_ERR(ENODEV, bind_addr(f, id, &a));
	CHECK_OK(bind_addr(f, id, &good));
	id = new_id(f);
	/* No Ethernet: C then looks at no interface, if the device is soft-RoCE. */
	a.in6.sin6_scope_id = if_nametoindex("lo");
	CHECK_ERR(differs("scope_of_lo"), bind_addr(f, id, &a));
	CHECK_EQ(0, run_within(10, "ip link del vl8"));
}

static uint32_t device_of(int f, uint32_t id)
{
	struct rdma_ucm_query_route_resp route;

	REQUIRE_OK(query_route(f, id, &route));
	return route.ibdev_index;
}

/* Returns true if an address of the link can be used as a source: not as long as it may be another's. */
static bool has_linklocal(const char *name)
{
	char command[100];

	snprintf(command, sizeof(command),
		 "ip -6 addr show dev %s scope link -tentative | grep -q fe80:", name);
	return system(command) == 0;
}

/* The device that leads to an address; that of an id that is bound to a wildcard first, or not. */
static uint32_t device_to(const char *text, unsigned int scope, bool bound)
{
	union addr dst = addr6(text, 7471), any = addr6("::", 0);
	int f = fd();
	uint32_t id = new_id(f), device;

	dst.in6.sin6_scope_id = scope;
	if (bound)
		REQUIRE_OK(bind_addr(f, id, &any));
	NEED_ADDR(f, id, NULL, &dst);
	device = device_of(f, id);
	close(f);
	return device;
}

/* A group of a link, or of an interface, is at the interface that is named. */
TEST_LIMIT(netdev, scope_of_a_group, 60)
{
	static const char *const groups[] = {
		"ff02::1:77", "ff12::77", "ff12:601b:ffff::77", "ff32::77", "ff01::77", "ff11::77"
	};
	unsigned int here = linklocal6(0).in6.sin6_scope_id, there;
	union addr near = global6(0), far = addr4(PLUG_ADDR, 0), dst = addr6("ff12::77", 7471);
	uint32_t mine, others, id;
	int f = fd();

	plug();
	there = if_nametoindex("vt0");
	for (int i = 0; i < 100 && !has_linklocal("vt0"); i++)
		usleep(100000);
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &near));
	mine = device_of(f, id);
	id = new_id(f);
	REQUIRE_OK(bind_addr(f, id, &far));
	others = device_of(f, id);
	CHECK(mine != others);
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		note("%s", groups[i]);
		/* The scope is that of an interface: C lets the routes decide. */
		if (i >= 4 && !is_rust())
			continue;
		CHECK_EQ(mine, device_to(groups[i], here, false));
		CHECK_EQ(others, device_to(groups[i], there, false));
		/* C does not look at the scope then. */
		if (!is_rust())
			continue;
		CHECK_EQ(mine, device_to(groups[i], here, true));
		CHECK_EQ(others, device_to(groups[i], there, true));
	}

	/* From an address of another interface. C asks there all the same. */
	for (int i = 0; i < 2; i++) {
		id = new_id(f);
		dst.in6.sin6_scope_id = i == 0 ? here : there;
		CHECK_ERR(i == 0 ? 0 : differs("scope_of_another_interface"),
			  resolve_addr(f, id, &near, &dst, 1000));
		CHECK_EQ(mine, device_of(f, id));
	}
	close(f);
	unwire();
}

/* An id that is resolved keeps its interface, whatever it is asked for then. */
TEST(netdev, linklocal_too_late)
{
	union addr a = any_port4(), late = addr6("fe80::77", 7471);
	struct pair p = { 0 };

	pair_resolved_addr(&p, &a);
	CHECK_ERR(EINVAL, resolve_addr(p.cfd, p.client, NULL, &late, 1000));
	CHECK_ERR(differs("route_after_failed_resolve"), resolve_route(p.cfd, p.client, 1000));
}
