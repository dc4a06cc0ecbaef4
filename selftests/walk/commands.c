// SPDX-License-Identifier: GPL-2.0
/* The requests of all commands, and the values that make them special. */
#include "walk.h"

#define F(name, at, size) { name, at, size, NUMBER }
#define R(name, at, size) { name, at, size, RESERVED }
#define P(name, at) { name, at, 8, ADDRESS }

void put16(uint8_t *req, size_t at, uint16_t value)
{
	memcpy(req + at, &value, sizeof(value));
}

void put32(uint8_t *req, size_t at, uint32_t value)
{
	memcpy(req + at, &value, sizeof(value));
}

void put64(uint8_t *req, size_t at, uint64_t value)
{
	memcpy(req + at, &value, sizeof(value));
}

static void put_addr(uint8_t *req, size_t at, const union addr *a)
{
	memcpy(req + at, a, addr_size(a));
}

static void set8(struct subject *s, uint8_t *req, long arg)
{
	req[arg >> 8] = arg;
}

static void set16(struct subject *s, uint8_t *req, long arg)
{
	put16(req, arg >> 16, arg);
}

static void set32(struct subject *s, uint8_t *req, long arg)
{
	put32(req, arg >> 32, arg);
}

#define SET8(name, at, value) { name, set8, (long)(at) << 8 | (value) }
#define SET16(name, at, value) { name, set16, (long)(at) << 16 | (value), true }
#define SET32(name, at, value) { name, set32, (long)(at) << 32 | (uint32_t)(value) }

/* --- CREATE_ID --- */

static void create_fill(struct subject *s, uint8_t *req)
{
	put64(req, 0, 0x5555);
	put16(req, 16, PS_TCP);
	req[18] = QPT_RC;
}

static void ps_and_type(struct subject *s, uint8_t *req, long arg)
{
	put16(req, 16, arg >> 8);
	req[18] = arg;
}

#define CREATE(ps, type) { #ps " " #type, ps_and_type, (long)(ps) << 8 | (type), true }
#define CREATES(ps) CREATE(ps, 0), CREATE(ps, 2), CREATE(ps, 3), CREATE(ps, 4), CREATE(ps, 9), \
	CREATE(ps, 255)

static const struct variant create_variants[] = {
	CREATES(0x0106), CREATES(0x0111), CREATES(0x013f), CREATES(0x0002), CREATES(0x0000),
	CREATES(0x0107), CREATES(0xffff), { 0 }
};

/* --- commands with an address --- */

/* In at: the place of the address; the size, where there is one, comes before. */
enum place { BIND_IP_AT = 8, BIND_AT = 8, SRC_IP_AT = 0, DST_IP_AT = 28, SRC_AT = 16,
	     DST_AT = 144, JOIN_IP_AT = 16, JOIN_AT = 24 };

/* Addresses by name; the low byte of a variant's arg. */
enum who { HERE, HERE_PORT, LOW_PORT, ANY, ANY6, LOOPBACK, LOOPBACK6, HERE6, LINKLOCAL6, ABSENT,
	   FAR, PEER, BROADCAST, GROUP, GROUP6, GROUP_RESERVED, IB_ANY, IB_ZERO, IB_GID, FAMILY0,
	   FAMILY10000, SERVER, LINKLOCAL6_HERE, LINKLOCAL6_ELSEWHERE, GROUP6_OF_INTERFACE,
	   GROUP6_OF_INTERFACE_HERE, GROUP6_OF_INTERFACE_ELSEWHERE, GROUP6_OF_LINK,
	   GROUP6_OF_LINK_HERE, GROUP6_OF_LINK_ELSEWHERE, GROUP6_OF_SITE, GROUP6_OF_SITE_HERE,
	   GROUP6_OF_SITE_ELSEWHERE, GROUP6_HERE, GROUP6_ELSEWHERE, WHOS };

enum scope { NO_SCOPE, SCOPE_HERE, SCOPE_ELSEWHERE };

/* With the index of the interface of ADDR4, or of another. */
static union addr scoped(union addr a, enum scope scope)
{
	a.in6.sin6_scope_id = 0;
	if (scope == SCOPE_HERE)
		a.in6.sin6_scope_id = linklocal6(0).in6.sin6_scope_id;
	else if (scope == SCOPE_ELSEWHERE)
		/* The scope is that of the loopback interface, where nobody makes one for this. */
		a.in6.sin6_scope_id = if_nametoindex(ELSEWHERE) ?: 1;
	return a;
}

static union addr who(enum who w, struct subject *s)
{
	union addr a;

	switch (w) {
	case HERE:
		return addr4(ADDR4, 0);
	case HERE_PORT:
		return addr4(ADDR4, 7471);
	case LOW_PORT:
		return addr4(ADDR4, 80);
	case ANY:
		return addr4("0.0.0.0", 0);
	case ANY6:
		return addr6("::", 0);
	case LOOPBACK:
		return addr4("127.0.0.1", 0);
	case LOOPBACK6:
		return addr6("::1", 0);
	case HERE6:
		return addr6(ADDR6, 0);
	case LINKLOCAL6:
		/* Without scope. */
		return addr6("fe80::1", 0);
	case ABSENT:
		return absent4(7471);
	case FAR:
		return addr4("192.0.2.1", 7471);
	case PEER:
		return addr4(FAR4, 7471);
	case BROADCAST:
		return addr4("255.255.255.255", 7471);
	case GROUP:
		return addr4("239.1.2.3", 0);
	case GROUP6:
		return addr6("ff0e::1234", 0);
	case GROUP_RESERVED:
		return addr4("224.0.0.1", 0);
	case IB_ANY:
		return addr_ib(0x01060000, 0xffffffffffff0000);
	case IB_ZERO:
		return addr_ib(0, 0);
	case IB_GID:
		a = addr_ib(0x01061234, ~0ull);
		a.ib.gid[0] = 0xfe;
		a.ib.gid[1] = 0x80;
		a.ib.gid[15] = 1;
		return a;
	case FAMILY10000:
		a = addr4(ADDR4, 0);
		a.sa.sa_family = 10000;
		return a;
	case LINKLOCAL6_HERE:
	case LINKLOCAL6_ELSEWHERE:
		return scoped(linklocal6(0), w - LINKLOCAL6_HERE + SCOPE_HERE);
	case GROUP6_OF_INTERFACE ... GROUP6_OF_INTERFACE_ELSEWHERE:
		return scoped(addr6("ff11::77", 0), w - GROUP6_OF_INTERFACE);
	case GROUP6_OF_LINK ... GROUP6_OF_LINK_ELSEWHERE:
		return scoped(addr6("ff12::77", 0), w - GROUP6_OF_LINK);
	case GROUP6_OF_SITE ... GROUP6_OF_SITE_ELSEWHERE:
		return scoped(addr6("ff15::77", 0), w - GROUP6_OF_SITE);
	case GROUP6_HERE:
	case GROUP6_ELSEWHERE:
		return scoped(addr6("ff0e::1234", 0), w - GROUP6_HERE + SCOPE_HERE);
	case SERVER:
		return s->p.sfd ? s->p.addr : addr4(ADDR4, 7471);
	default:
		return (union addr){ 0 };
	}
}

/* The address at some place of a request; families with a size also in the field before. */
#define ADDR_ARG(who, at, size_at) ((long)(who) | (long)(at) << 8 | (long)(size_at) << 24)
#define NO_SIZE 0xffff

static void set_addr(struct subject *s, uint8_t *req, long arg)
{
	enum who w = arg & 0xff;
	size_t at = arg >> 8 & 0xffff, size_at = arg >> 24 & 0xffff;
	union addr a = who(w, s);
	bool ip_only = size_at == NO_SIZE;

	memset(req + at, 0, ip_only ? 28 : 128);
	memcpy(req + at, &a, ip_only && addr_size(&a) > 28 ? 28 : addr_size(&a) ?: 28);
	if (!ip_only)
		put16(req, size_at, addr_size(&a) ?: 16);
}

#define ADDR(who, at, size_at) { #who, set_addr, ADDR_ARG(who, at, size_at), true }
#define ADDRS(at, size_at)							\
	ADDR(HERE, at, size_at), ADDR(HERE_PORT, at, size_at), ADDR(LOW_PORT, at, size_at),	\
	ADDR(ANY, at, size_at), ADDR(ANY6, at, size_at), ADDR(LOOPBACK, at, size_at),		\
	ADDR(LOOPBACK6, at, size_at), ADDR(HERE6, at, size_at), ADDR(LINKLOCAL6, at, size_at),	\
	ADDR(ABSENT, at, size_at), ADDR(FAR, at, size_at), ADDR(PEER, at, size_at),		\
	ADDR(BROADCAST, at, size_at), ADDR(GROUP, at, size_at), ADDR(GROUP6, at, size_at),	\
	ADDR(GROUP_RESERVED, at, size_at), ADDR(IB_ANY, at, size_at),				\
	ADDR(IB_ZERO, at, size_at), ADDR(IB_GID, at, size_at), ADDR(FAMILY0, at, size_at),	\
	ADDR(FAMILY10000, at, size_at), ADDR(LINKLOCAL6_HERE, at, size_at),			\
	ADDR(LINKLOCAL6_ELSEWHERE, at, size_at), ADDR(GROUP6_OF_INTERFACE, at, size_at),	\
	ADDR(GROUP6_OF_INTERFACE_HERE, at, size_at),						\
	ADDR(GROUP6_OF_INTERFACE_ELSEWHERE, at, size_at), ADDR(GROUP6_OF_LINK, at, size_at),	\
	ADDR(GROUP6_OF_LINK_HERE, at, size_at), ADDR(GROUP6_OF_LINK_ELSEWHERE, at, size_at),	\
	ADDR(GROUP6_OF_SITE, at, size_at), ADDR(GROUP6_OF_SITE_HERE, at, size_at),		\
	ADDR(GROUP6_OF_SITE_ELSEWHERE, at, size_at), ADDR(GROUP6_HERE, at, size_at),		\
	ADDR(GROUP6_ELSEWHERE, at, size_at)

/* Both addresses of RESOLVE_IP or RESOLVE_ADDR, of which the latter has fields for their sizes. */
static void set_both(struct subject *s, uint8_t *req, long arg)
{
	enum who src = arg & 0xff, dst = arg >> 8 & 0xff;
	bool ip_only = arg >> 16;

	set_addr(s, req, ip_only ? ADDR_ARG(src, SRC_IP_AT, NO_SIZE) : ADDR_ARG(src, SRC_AT, 8));
	set_addr(s, req, ip_only ? ADDR_ARG(dst, DST_IP_AT, NO_SIZE) : ADDR_ARG(dst, DST_AT, 10));
}

#define BOTH(src, dst, ip_only) { "from " #src " to " #dst, set_both,				\
	(long)(src) | (long)(dst) << 8 | (long)(ip_only) << 16, true }
#define SCOPES(ip_only)										\
	BOTH(ANY6, LINKLOCAL6_HERE, ip_only), BOTH(ANY6, LINKLOCAL6_ELSEWHERE, ip_only),	\
	BOTH(ANY6, GROUP6_OF_LINK_ELSEWHERE, ip_only),						\
	BOTH(HERE6, LINKLOCAL6_HERE, ip_only), BOTH(HERE6, LINKLOCAL6_ELSEWHERE, ip_only),	\
	BOTH(HERE6, GROUP6_OF_LINK, ip_only), BOTH(HERE6, GROUP6_OF_LINK_HERE, ip_only),	\
	BOTH(HERE6, GROUP6_OF_LINK_ELSEWHERE, ip_only),						\
	BOTH(LINKLOCAL6_HERE, LINKLOCAL6_HERE, ip_only),					\
	BOTH(LINKLOCAL6_HERE, LINKLOCAL6_ELSEWHERE, ip_only),					\
	BOTH(LINKLOCAL6_HERE, GROUP6_OF_LINK_ELSEWHERE, ip_only)

static void bind_ip_fill(struct subject *s, uint8_t *req)
{
	union addr a = who(HERE, s);

	put_addr(req, BIND_IP_AT, &a);
}

static const struct variant bind_ip_variants[] = { ADDRS(BIND_IP_AT, NO_SIZE), { 0 } };

static void bind_fill(struct subject *s, uint8_t *req)
{
	union addr a = who(HERE, s);

	put_addr(req, BIND_AT, &a);
	put16(req, 4, addr_size(&a));
}

#define SIZES(at) SET16("size 0", at, 0), SET16("size 2", at, 2), SET16("size 15", at, 15),	\
	SET16("size 17", at, 17), SET16("size 28", at, 28), SET16("size 48", at, 48),		\
	SET16("size 128", at, 128), SET16("size 129", at, 129)

static const struct variant bind_variants[] = { ADDRS(BIND_AT, 4), SIZES(4), { 0 } };

static void resolve_ip_fill(struct subject *s, uint8_t *req)
{
	union addr a = who(SERVER, s);

	memcpy(req + DST_IP_AT, &a, 28);
	put32(req, 60, 2000);
}

static const struct variant resolve_ip_variants[] = {
	ADDRS(DST_IP_AT, NO_SIZE),
	{ "from HERE", set_addr, ADDR_ARG(HERE, SRC_IP_AT, NO_SIZE), true },
	{ "from ANY", set_addr, ADDR_ARG(ANY, SRC_IP_AT, NO_SIZE), true },
	{ "from HERE6", set_addr, ADDR_ARG(HERE6, SRC_IP_AT, NO_SIZE), true },
	{ "from IB_ANY", set_addr, ADDR_ARG(IB_ANY, SRC_IP_AT, NO_SIZE), true },
	{ "from FAR", set_addr, ADDR_ARG(FAR, SRC_IP_AT, NO_SIZE), true },
	{ "from FAMILY10000", set_addr, ADDR_ARG(FAMILY10000, SRC_IP_AT, NO_SIZE), true },
	SCOPES(true),
	{ 0 }
};

static void resolve_addr_fill(struct subject *s, uint8_t *req)
{
	union addr a = who(SERVER, s);

	put32(req, 4, 2000);
	put16(req, 10, addr_size(&a));
	put_addr(req, DST_AT, &a);
}

static const struct variant resolve_addr_variants[] = {
	ADDRS(DST_AT, 10), SIZES(10),
	{ "from HERE", set_addr, ADDR_ARG(HERE, SRC_AT, 8), true },
	{ "from ANY", set_addr, ADDR_ARG(ANY, SRC_AT, 8), true },
	{ "from HERE6", set_addr, ADDR_ARG(HERE6, SRC_AT, 8), true },
	{ "from IB_ANY", set_addr, ADDR_ARG(IB_ANY, SRC_AT, 8), true },
	{ "from FAR", set_addr, ADDR_ARG(FAR, SRC_AT, 8), true },
	{ "from FAMILY10000", set_addr, ADDR_ARG(FAMILY10000, SRC_AT, 8), true },
	SCOPES(false),
	SET16("from size 15", 8, 15),
	{ 0 }
};

static void route_fill(struct subject *s, uint8_t *req)
{
	put32(req, 4, 2000);
}

/* --- connections --- */

static void param_fill(struct subject *s, uint8_t *param)
{
	struct rdma_ucm_conn_param p = conn_param();

	memcpy(param, &p, sizeof(p));
}

static void connect_fill(struct subject *s, uint8_t *req)
{
	param_fill(s, req);
}

/* Lengths of private data; in a UD id more fits than in a connected one. */
#define PARAMS(at)								\
	SET8("not valid", (at) + 271, 0), SET8("data 1", (at) + 264, 1),	\
	SET8("data 56", (at) + 264, 56), SET8("data 57", (at) + 264, 57),	\
	SET8("data 92", (at) + 264, 92), SET8("data 136", (at) + 264, 136),	\
	SET8("data 137", (at) + 264, 137), SET8("data 180", (at) + 264, 180),	\
	SET8("data 181", (at) + 264, 181), SET8("data 196", (at) + 264, 196),	\
	SET8("data 197", (at) + 264, 197), SET8("data 255", (at) + 264, 255),	\
	SET8("retry 8", (at) + 269, 8), SET8("rnr retry 8", (at) + 270, 8),	\
	SET32("QPN 0x1000001", at, 0x1000001), SET8("srq", (at) + 265, 1)

static const struct variant connect_variants[] = {
	PARAMS(0), SET32("vendor", 280, 0x1234), SET32("vendor of 25 bits", 280, 0x1000000),
	SET32("modifier", 284, 5), { 0 }
};

static void listen_fill(struct subject *s, uint8_t *req)
{
	put32(req, 4, 4);
}

static const struct variant listen_variants[] = {
	SET32("backlog 1024", 4, 1024), SET32("backlog 1025", 4, 1025),
	SET32("backlog -1", 4, -1), { 0 }
};

static void accept_fill(struct subject *s, uint8_t *req)
{
	put64(req, 0, 0x2222);
	param_fill(s, req + 8);
}

static const struct variant accept_variants[] = {
	PARAMS(8), SET32("vendor", 288, 0x1234), SET32("modifier", 292, 5), { 0 }
};

static const struct variant reject_variants[] = {
	SET8("data 148", 4, 148), SET8("data 149", 4, 149), SET8("data 136", 4, 136),
	SET8("data 137", 4, 137), SET8("data 255", 4, 255), SET8("reason 1", 5, 1),
	SET8("reason 27", 5, 27), SET8("reason 28", 5, 28), SET8("reason 34", 5, 34),
	SET8("reason 35", 5, 35), SET8("reason 36", 5, 36), { 0 }
};

static void attr_fill(struct subject *s, uint8_t *req)
{
	put32(req, 12, 1);
}

static const struct variant attr_variants[] = {
	SET32("RESET", 12, 0), SET32("RTR", 12, 2), SET32("RTS", 12, 3), SET32("SQD", 12, 4),
	SET32("SQE", 12, 5), SET32("ERR", 12, 6), SET32("7", 12, 7), { 0 }
};

static void notify_fill(struct subject *s, uint8_t *req)
{
	put32(req, 4, 4);
}

static const struct variant notify_variants[] = {
	SET32("0", 4, 0), SET32("1", 4, 1), SET32("3", 4, 3), SET32("5", 4, 5),
	SET32("PATH_MIG", 4, 6), SET32("PATH_MIG_ERR", 4, 7), SET32("20", 4, 20), { 0 }
};

/* --- options --- */

static const uint8_t *option_value(void)
{
	/* Longer than any option; all but the first byte zero. */
	static uint8_t value[256] __attribute__((aligned(8)));

	memset(value, 0, sizeof(value));
	value[0] = 1;
	return value;
}

static void option_fill(struct subject *s, uint8_t *req)
{
	put64(req, 0, ptr(option_value()));
	put32(req, 12, RDMA_OPTION_ID);
	put32(req, 16, RDMA_OPTION_ID_TOS);
	put32(req, 20, 1);
}

static void option(struct subject *s, uint8_t *req, long arg)
{
	put32(req, 12, arg >> 48 & 0xff);
	put32(req, 16, arg >> 40 & 0xff);
	put32(req, 20, arg);
}

/* A path of one record: flags that the kernel takes, from here to here. */
static void path(struct subject *s, uint8_t *req, long arg)
{
	static uint8_t value[2 * 72] __attribute__((aligned(8)));

	memset(value, 0, sizeof(value));
	put32(value, 0, arg & 0xff);
	put32(value, 72, arg >> 8 & 0xff);
	/* GIDs of 10.0.0.1, P_Key, MTU and the like. */
	for (int i = 0; i < 2; i++) {
		uint8_t *gid = value + 8 + 8 + 16 * i;

		gid[10] = gid[11] = 0xff;
		memcpy(gid + 12, "\x0a\x00\x00\x01", 4);
	}
	put64(req, 0, ptr(value));
	put32(req, 12, 1);
	put32(req, 16, 1);
	put32(req, 20, arg >> 16 & 0xffff);
}

#define OPTION(name, level, option_, len) \
	{ name, option, (long)(level) << 48 | (long)(option_) << 40 | (uint32_t)(len), true }
#define OPTION_LENS(name, option_) OPTION(name ", 0 bytes", 0, option_, 0),	\
	OPTION(name ", 1 byte", 0, option_, 1), OPTION(name ", 2 bytes", 0, option_, 2),	\
	OPTION(name ", 4 bytes", 0, option_, 4), OPTION(name ", 8 bytes", 0, option_, 8)
#define PATH(name, one, two, len) { name, path, (long)(len) << 16 | (two) << 8 | (one) }

static const struct variant option_variants[] = {
	OPTION_LENS("TOS", 0), OPTION_LENS("REUSEADDR", 1), OPTION_LENS("AFONLY", 2),
	OPTION_LENS("ACK_TIMEOUT", 3), OPTION_LENS("option 4", 4),
	OPTION("level 1 option 0", 1, 0, 72), OPTION("level 1 option 2", 1, 2, 72),
	OPTION("level 2", 2, 0, 1),
	OPTION("too long for memory", 0, 0, 0x7fffffff), OPTION("4 GB - 1", 0, 0, 0xffffffff),
	OPTION("4 MB and one", 0, 0, 0x400001),
	PATH("path", 0x2b, 0, 72), PATH("no path", 0x2b, 0, 0), PATH("half a path", 0x2b, 0, 71),
	PATH("path, other flags", 0x03, 0, 72), PATH("two paths, second good", 1, 0x2b, 144),
	PATH("two paths, none good", 1, 3, 144), { 0 }
};

/* --- queries --- */

static const struct variant query_variants[] = {
	SET32("PATH", 12, 1), SET32("GID", 12, 2), SET32("IB_SERVICE", 12, 3),
	SET32("4", 12, 4), { 0 }
};

/* --- multicast --- */

static void join_ip_fill(struct subject *s, uint8_t *req)
{
	union addr a = who(GROUP, s);

	put64(req, 8, 0x4444);
	put_addr(req, JOIN_IP_AT, &a);
}

static const struct variant join_ip_variants[] = { ADDRS(JOIN_IP_AT, NO_SIZE), { 0 } };

static void join_fill(struct subject *s, uint8_t *req)
{
	union addr a = who(GROUP, s);

	put64(req, 8, 0x4444);
	put16(req, 20, addr_size(&a));
	put_addr(req, JOIN_AT, &a);
}

static const struct variant join_variants[] = {
	ADDRS(JOIN_AT, 20), SIZES(20), SET16("send only", 22, 1), SET16("flags 2", 22, 2),
	SET16("flags 0xffff", 22, 0xffff), { 0 }
};

static void leave_fill(struct subject *s, uint8_t *req)
{
	put32(req, 8, s->group);
}

/* --- the rest --- */

static void migrate_fill(struct subject *s, uint8_t *req)
{
	put32(req, 12, s->fd);
}

static void migrate_fd(struct subject *s, uint8_t *req, long arg)
{
	put32(req, 12, arg == 0 ? s->other : arg == 1 ? STDIN_FILENO : 1000000);
}

static const struct variant migrate_variants[] = {
	{ "from the same file", migrate_fd, 0 }, { "from a file of another kind", migrate_fd, 1 },
	{ "from no file", migrate_fd, 2 }, { 0 }
};

static const struct variant service_variants[] = {
	SET32("by id", 80, 1), SET32("by name", 80, 2), SET32("by both", 80, 3),
	SET32("flags 4", 80, 4), { 0 }
};

static void write_fill(struct subject *s, uint8_t *req)
{
	put32(req, 8, 18);
	put64(req, 16, 0x1122334455667788);
}

static const struct variant write_variants[] = {
	SET32("INTERNAL", 8, 19), SET32("0", 8, 0), SET32("17", 8, 17), SET32("20", 8, 20),
	SET32("status -1", 12, -1), { 0 }
};

const struct command commands[] = {
	{ "CREATE_ID", 0, 24, 4, -1, 8, .fill = create_fill, .variants = create_variants,
	  .blank = blank_number,
	  .fields = { F("uid", 0, 8), F("ps", 16, 2), F("type", 18, 1), R("reserved", 19, 5) } },
	{ "DESTROY_ID", 1, 16, 4, 8, 0, .closely = "established_active",
	  .fields = { R("reserved", 12, 4) } },
	{ "BIND_IP", 2, 40, 0, 36, -1, .fill = bind_ip_fill, .variants = bind_ip_variants,
	  .fields = { R("response", 0, 8), F("family", 8, 2), F("port", 10, 2), F("address", 12, 4),
		      F("zero", 16, 8) } },
	{ "RESOLVE_IP", 3, 64, 0, 56, -1, .asks = true, .fill = resolve_ip_fill,
	  .variants = resolve_ip_variants,
	  .fields = { F("source", 0, 28), F("family", 28, 2), F("port", 30, 2),
		      F("address", 32, 4), F("timeout", 60, 4) } },
	{ "RESOLVE_ROUTE", 4, 8, 0, 0, -1, .asks = true, .fill = route_fill,
	  .fields = { F("timeout", 4, 4) } },
	{ "QUERY_ROUTE", 5, 16, 200, 8, 0, true, .blank = blank_route,
	  .closely = "route_resolved",
	  .fields = { R("option", 12, 4) } },
	{ "CONNECT", 6, 288, 0, 272, -1, .fill = connect_fill, .variants = connect_variants,
	  .closely = "route_resolved ud_route_resolved uc_route_resolved xrc_route_resolved",
	  .fields = { F("QPN", 0, 4), F("Q_Key", 4, 4), F("data length", 264, 1), F("srq", 265, 1),
		      F("responder", 266, 1), F("initiator", 267, 1), F("flow", 268, 1),
		      F("retry", 269, 1), F("rnr retry", 270, 1), F("valid", 271, 1),
		      R("reserved", 276, 4), F("vendor", 280, 4), F("modifier", 284, 4) } },
	{ "LISTEN", 7, 8, 0, 0, -1, .fill = listen_fill, .variants = listen_variants,
	  .closely = "bound",
	  .fields = { F("backlog", 4, 4) } },
	{ "ACCEPT", 8, 296, 0, 280, -1, .fill = accept_fill, .variants = accept_variants,
	  .closely = "req_received rep_received ud_req_received uc_req_received xrc_req_received",
	  .fields = { F("uid", 0, 8), F("QPN", 8, 4), F("Q_Key", 12, 4), F("data length", 272, 1),
		      F("srq", 273, 1), F("responder", 274, 1), F("initiator", 275, 1),
		      F("flow", 276, 1), F("retry", 277, 1), F("rnr retry", 278, 1),
		      F("valid", 279, 1), R("reserved", 284, 4), F("vendor", 288, 4),
		      F("modifier", 292, 4) } },
	{ "REJECT", 9, 264, 0, 0, -1, .variants = reject_variants,
	  .closely = "req_received ud_req_received",
	  .fields = { F("data length", 4, 1), F("reason", 5, 1), R("reserved", 6, 2) } },
	{ "DISCONNECT", 10, 4, 0, 0, -1 },
	{ "INIT_QP_ATTR", 11, 16, 144, 8, 0, true, .fill = attr_fill, .blank = blank_attr,
	  .variants = attr_variants, .closely = "established_active",
	  .fields = { F("state", 12, 4) } },
	{ "GET_EVENT", 12, 8, 324, -1, 0, .blank = blank_event, .closely = "event_waiting" },
	{ "GET_OPTION", 13, 24, 0, 8, 0, true },
	{ "SET_OPTION", 14, 24, 0, 8, -1, .fill = option_fill, .variants = option_variants,
	  .closely = "addr_resolved uc_route_resolved xrc_route_resolved xrc_tgt_route_resolved",
	  .fields = { P("value", 0), F("level", 12, 4), F("option", 16, 4), F("length", 20, 4) } },
	{ "NOTIFY", 15, 8, 0, 0, -1, .fill = notify_fill, .variants = notify_variants,
	  .closely = "rep_sent established_active",
	  .fields = { F("event", 4, 4) } },
	{ "JOIN_IP_MCAST", 16, 48, 4, 44, 0, .asks = true, .fill = join_ip_fill,
	  .variants = join_ip_variants,
	  .blank = blank_number, .closely = "ud_joined",
	  .fields = { F("uid", 8, 8), F("family", 16, 2), F("port", 18, 2), F("address", 20, 4) } },
	{ "LEAVE_MCAST", 17, 16, 4, 8, 0, .fill = leave_fill, .closely = "ud_joined",
	  .fields = { R("reserved", 12, 4) } },
	{ "MIGRATE_ID", 18, 16, 4, 8, 0, .elsewhere = true, .fill = migrate_fill,
	  .variants = migrate_variants, .closely = "route_resolved",
	  .fields = { F("fd", 12, 4) } },
	{ "QUERY", 19, 16, 272, 8, 0, true, .blank = blank_query, .variants = query_variants,
	  .closely = "route_resolved ud_joined",
	  .fields = { F("option", 12, 4) } },
	{ "BIND", 20, 136, 0, 0, -1, .fill = bind_fill, .variants = bind_variants,
	  .fields = { F("size", 4, 2), R("reserved", 6, 2), F("family", 8, 2), F("port", 10, 2),
		      F("address", 12, 4), F("zero", 16, 8) } },
	{ "RESOLVE_ADDR", 21, 272, 0, 0, -1, .asks = true, .fill = resolve_addr_fill,
	  .variants = resolve_addr_variants,
	  .closely = "bound",
	  .fields = { F("timeout", 4, 4), F("source size", 8, 2), F("size", 10, 2),
		      R("reserved", 12, 4), F("source", 16, 128), F("family", 144, 2),
		      F("port", 146, 2), F("address", 148, 4) } },
	{ "JOIN_MCAST", 22, 152, 4, 16, 0, .asks = true, .fill = join_fill, .variants = join_variants,
	  .blank = blank_number, .closely = "ud_joined",
	  .fields = { F("uid", 8, 8), F("size", 20, 2), F("flags", 22, 2), F("family", 24, 2),
		      F("port", 26, 2), F("address", 28, 4) } },
	{ "RESOLVE_IB_SERVICE", 23, 88, 0, 0, -1, .asks = true, .variants = service_variants,
	  .closely = "bound",
	  .fields = { R("reserved", 4, 4), F("service", 8, 8), F("name", 16, 64), F("flags", 80, 4),
		      R("reserved 2", 84, 4) } },
	{ "WRITE_CM_EVENT", 24, 320, 0, 0, -1, .fill = write_fill, .variants = write_variants,
	  .closely = "bound",
	  .fields = { R("reserved", 4, 4), F("event", 8, 4), F("status", 12, 4),
		      F("argument", 16, 8) } },
	{ "command 25", 25, 16, 0, 8, -1, true },
};
const size_t nr_commands = sizeof(commands) / sizeof(commands[0]);
