// SPDX-License-Identifier: GPL-2.0
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdarg.h>

#include "ib.h"

#define CONTROL "/run/sa.control"

static bool there(const char *device)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s", device);
	return access(path, F_OK) == 0;
}

void need_ib(void)
{
	if (!there("ib_a") || !there("ib_b") || access(CONTROL, W_OK))
		skip("no InfiniBand devices ib_a and ib_b: the suite ib makes them");
	sa("%s", "");
}

void sa(const char *format, ...)
{
	/* Never half of it: it is read with each request. */
	FILE *f = fopen(CONTROL ".new", "w");
	va_list args;

	REQUIRE(f);
	va_start(args, format);
	vfprintf(f, format, args);
	va_end(args);
	fputs("\n", f);
	fclose(f);
	REQUIRE_EQ(0, rename(CONTROL ".new", CONTROL));
}

/* Eight groups of hexadecimal digits, or four. */
static void read_hex(const char *device, const char *name, uint8_t *to, int groups)
{
	unsigned int group;
	char path[100];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", device, name);
	f = fopen(path, "r");
	REQUIRE(f);
	for (int i = 0; i < groups; i++) {
		REQUIRE_EQ(1, fscanf(f, i ? ":%x" : "%x", &group));
		to[2 * i] = group >> 8;
		to[2 * i + 1] = group;
	}
	fclose(f);
}

static long read_of_port(const char *device, const char *name)
{
	char path[100];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/%s", device, name);
	return read_number(path);
}

struct port port_of(const char *device)
{
	struct port port = { 0 };

	read_hex(device, "ports/1/gids/0", port.gid, 8);
	read_hex(device, "node_guid", (void *)&port.guid, 4);
	port.lid = read_of_port(device, "lid");
	port.path_bits = (1 << read_of_port(device, "lid_mask_count")) - 1;
	return port;
}

const char *ipoib_of(const char *device)
{
	static char name[IF_NAMESIZE];
	struct port port = port_of(device);
	struct ifaddrs *all;

	name[0] = 0;
	REQUIRE_EQ(0, getifaddrs(&all));
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct sockaddr_ll *ll = (void *)i->ifa_addr;

		/* The hardware address is longer than this type says. */
		if (ll && ll->sll_family == AF_PACKET && ll->sll_halen == 20 &&
		    memcmp((uint8_t *)ll->sll_addr + 4, port.gid, 16) == 0)
			snprintf(name, sizeof(name), "%s", i->ifa_name);
	}
	freeifaddrs(all);
	return name;
}

union addr native(const char *device, uint64_t sid, uint16_t pkey)
{
	union addr a = addr_ib(sid, sid & 0xffff ? ~0ull : ~0xffffull);

	memcpy(a.ib.gid, port_of(device).gid, 16);
	a.ib.pkey = htons(pkey);
	return a;
}

/* --- paths --- */

struct record record_of(const char *src, const char *dst, uint64_t sid, uint16_t pkey)
{
	struct port a = port_of(src), b = port_of(dst);
	struct record record = { 0 };
	uint8_t *r = record.r;

	sid = htobe64(sid);
	memcpy(r, &sid, 8);
	memcpy(r + 8, b.gid, 16);
	memcpy(r + 24, a.gid, 16);
	r[40] = b.lid >> 8, r[41] = b.lid;
	r[42] = a.lid >> 8, r[43] = a.lid;
	r[49] = 0x80 | 1;			/* reversible, one path */
	r[50] = pkey >> 8, r[51] = pkey;
	r[54] = 0x80 | 5;			/* exactly, MTU 4096 */
	r[55] = 0x80 | 16;			/* exactly, rate 100 Gb/s */
	r[56] = 0x80 | 14;			/* exactly, life time */
	return record;
}

long set_path(int f, uint32_t id, const struct record *r)
{
	struct ib_path_rec_data d = { .flags = 0x2b };

	memcpy(d.path_rec, r->r, 64);
	return set_option(f, id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, edge_copy(&d, sizeof(d)),
			  sizeof(d));
}

struct shown {
	struct rdma_ucm_query_path_resp head;
	struct ib_path_rec_data data[2];
};

struct record path_shown(int f, uint32_t id)
{
	struct shown shown = { 0 };
	struct record record;

	REQUIRE_OK(query(f, id, RDMA_USER_CM_QUERY_PATH, &shown, sizeof(shown)));
	REQUIRE_EQ(1, shown.head.num_paths);
	memcpy(&record, shown.data[0].path_rec, sizeof(record));
	return record;
}

/* As QUERY_ROUTE has it. */
static struct ib_user_path_rec unpacked(const struct record *record)
{
	const uint8_t *r = record->r;
	struct ib_user_path_rec u = { 0 };

	memcpy(u.dgid, r + 8, 16);
	memcpy(u.sgid, r + 24, 16);
	memcpy(&u.dlid, r + 40, 2);
	memcpy(&u.slid, r + 42, 2);
	u.raw_traffic = r[44] >> 7;
	u.flow_label = htonl((r[44] & 0xf) << 16 | r[45] << 8 | r[46]);
	u.hop_limit = r[47];
	u.traffic_class = r[48];
	u.reversible = r[49] >> 7;
	u.numb_path = r[49] & 0x7f;
	memcpy(&u.pkey, r + 50, 2);
	u.sl = r[53] & 0xf;
	u.mtu_selector = r[54] >> 6;
	u.mtu = r[54] & 0x3f;
	u.rate_selector = r[55] >> 6;
	u.rate = r[55] & 0x3f;
	u.packet_life_time_selector = r[56] >> 6;
	u.packet_life_time = r[56] & 0x3f;
	u.preference = r[57];
	return u;
}

void check_path(const char *file, int line, int f, uint32_t id, const struct record *want)
{
	struct ib_user_path_rec u[2] = { unpacked(want) };
	struct shown shown = { 0 }, kept;
	struct rdma_ucm_query_route_resp route;

	REQUIRE_OK(query(f, id, RDMA_USER_CM_QUERY_PATH, &shown, sizeof(shown)));
	check_eq(file, line, "num_paths", 1, shown.head.num_paths);
	check_eq(file, line, "flags", 0x2b, shown.data[0].flags);
	check_eq(file, line, "reserved", 0, shown.data[0].reserved);
	check_mem(file, line, "path", want->r, shown.data[0].path_rec, 64);
	/* Whole records only. */
	REQUIRE_OK(query(f, id, RDMA_USER_CM_QUERY_PATH, &kept, 79));
	check_eq(file, line, "num_paths", 1, kept.head.num_paths);
	for (int i = 8; i < 79; i++)
		check_eq(file, line, "what is not written", 0xee, ((uint8_t *)&kept)[i]);
	REQUIRE_OK(query_route(f, id, &route));
	check_eq(file, line, "num_paths", 1, route.num_paths);
	check_mem(file, line, "ib_route", u, route.ib_route, sizeof(u));
}

void check_ends(const char *file, int line, int f, uint32_t id, const uint8_t *sgid, const uint8_t *dgid,
		uint16_t pkey)
{
	struct ib_user_path_rec want[2] = { { .pkey = htons(pkey) } };
	struct rdma_ucm_query_route_resp route;
	struct rdma_ucm_query_path_resp path;

	memcpy(want[0].sgid, sgid, 16);
	if (dgid)
		memcpy(want[0].dgid, dgid, 16);
	REQUIRE_OK(query_route(f, id, &route));
	check_eq(file, line, "num_paths", 0, route.num_paths);
	check_eq(file, line, "port", 1, route.port_num);
	check_mem(file, line, "ib_route", want, route.ib_route, sizeof(want));
	REQUIRE_OK(query(f, id, RDMA_USER_CM_QUERY_PATH, &path, sizeof(path)));
	check_eq(file, line, "num_paths", 0, path.num_paths);
}

void check_port(const char *file, int line, int f, uint32_t id, const char *device, const uint8_t *dgid,
		    uint64_t sid, uint64_t dsid)
{
	struct rdma_ucm_query_addr_resp addr, gid, want = {
		.port_num = 1, .pkey = htons(PKEY), .src_size = 48, .dst_size = 48,
	};
	struct sockaddr_ib ib = { .family = AF_IB, .pkey = htons(PKEY) };
	struct port port = port_of(device);

	want.node_guid = port.guid;
	REQUIRE_OK(query_addr(f, id, &addr));
	check_eq(file, line, "port", 1, addr.port_num);
	check_eq(file, line, "pkey", PKEY, ntohs(addr.pkey));
	check_eq(file, line, "guid", port.guid, addr.node_guid);
	REQUIRE_OK(query_gid(f, id, &gid));
	/* Every byte; which number the device has is its own business. */
	want.ibdev_index = addr.ibdev_index;
	memcpy(ib.gid, port.gid, 16);
	ib.sid = htobe64(sid);
	memcpy(&want.src_addr, &ib, sizeof(ib));
	memcpy(ib.gid, dgid, 16);
	ib.sid = htobe64(dsid);
	memcpy(&want.dst_addr, &ib, sizeof(ib));
	check_mem(file, line, "GIDs", &want, &gid, sizeof(want));
	check_ends(file, line, f, id, port.gid, dgid, PKEY);
}

/* --- events and commands --- */

void need_plain(const char *file, int line, int f, uint32_t event, uint32_t id, uint64_t uid, int status)
{
	struct rdma_ucm_event_resp ev, want = {
		.uid = uid, .id = id, .event = event, .status = status,
	};

	need_event(file, line, f, event, &ev);
	check_mem(file, line, event_name(event), &want, &ev, sizeof(ev));
}

void check_refused(const char *file, int line, int f, uint32_t id)
{
	struct rdma_ucm_conn_param param = conn_param();
	struct record r = record_of("ib_a", "ib_b", 0, PKEY);
	union addr a = addr4(IB4, 0), dst = addr4(PEER4, 7471);

#define REFUSED(call) check_err(file, line, #call, EINVAL, call)
	REFUSED(bind_addr(f, id, &a));
	REFUSED(bind_ip(f, id, &a));
	REFUSED(resolve_addr(f, id, NULL, &dst, 1000));
	REFUSED(resolve_ip(f, id, NULL, &dst, 1000));
	REFUSED(resolve_route(f, id, 1000));
	REFUSED(set_path(f, id, &r));
	REFUSED(listen_id(f, id, 1));
	REFUSED(connect_id(f, id, &param));
	REFUSED(accept_id(f, id, 1, &param));
	REFUSED(accept_id(f, id, 1, NULL));
	REFUSED(reject_id(f, id, NULL, 0, 0));
	REFUSED(disconnect_id(f, id));
	REFUSED(notify_id(f, id, 4));
	REFUSED(join4(f, id, 2, GROUP, FULL));
	REFUSED(resolve_service(f, id, 1, "", BY_ID));
}

/* --- a device that goes --- */

/* Its interface is a member of the broadcast group. */
static bool joined(void)
{
	struct ib_uverbs_qp_attr attr;
	int f = cm_open(O_RDWR | O_NONBLOCK);
	uint32_t id = REQUIRE_ID(create_id(f, PS_IPOIB, 0));
	bool is = bind4(f, id, PLUG_IB4, 0) >= 0 && init_qp_attr(f, id, INIT, &attr) >= 0 &&
		  attr.qkey == IPOIB_QKEY;

	close(f);
	return is;
}

void plug_ib(void)
{
	char cmd[300];

	need_ib();
	if (!there("ib_c")) {
		if (if_nametoindex("m2") == 0)
			skip("no interface m2: the suite ib makes it");
		REQUIRE_EQ(0, run_within(20, "rdma link add ib_c type softib netdev m2"));
		for (int i = 0; i < 100 && !ipoib_of("ib_c")[0]; i++)
			usleep(50000);
		snprintf(cmd, sizeof(cmd), "ip addr add " PLUG_IB4 "/24 dev %s && ip addr add "
			 PLUG_IB6 "/64 dev %s nodad && ip link set %s up",
			 ipoib_of("ib_c"), ipoib_of("ib_c"), ipoib_of("ib_c"));
		REQUIRE_EQ(0, system(cmd));
	}
	for (int i = 0; i < 100 && !joined(); i++)
		usleep(50000);
}

void unplug_ib(void)
{
	/* Must not wait for anybody who has an id. */
	REQUIRE_EQ(0, run_within(20, "rdma link del ib_c"));
}

/* --- services --- */

long resolve_service(int f, uint32_t id, uint64_t sid, const char *name, uint32_t flags)
{
	struct service req = { .id = id, .service_id = sid, .flags = flags };

	memcpy(req.name, name, strnlen(name, sizeof(req.name)));
	return cm_cmd(f, CMD_RESOLVE_IB_SERVICE, &req, sizeof(req), 0);
}
