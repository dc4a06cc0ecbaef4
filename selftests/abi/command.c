// SPDX-License-Identifier: GPL-2.0
/* One function per command of the device. */
#include <ifaddrs.h>
#include <net/if.h>

#include <rust_rdma_cm.h>
#include "abi.h"

uint64_t ptr(const void *p)
{
	return (uintptr_t)p;
}

int cm_open(int flags)
{
	int fd = open(DEVICE, flags | O_CLOEXEC);

	if (fd < 0) {
		fail(__FILE__, __LINE__, "open(" DEVICE "): %s", strerror(errno));
		stop();
	}
	return fd;
}

long cm_raw(int fd, const void *buf, size_t len)
{
	ssize_t ret = write(fd, buf, len);

	return ret < 0 ? -errno : ret;
}

long cm_cmd(int fd, uint32_t cmd, const void *req, uint16_t in, uint16_t out)
{
	struct rdma_ucm_cmd_hdr h = { .cmd = cmd, .in = in, .out = out };
	size_t len = sizeof(h) + in;
	char *buf = edge(len);
	long ret;

	memcpy(buf, &h, sizeof(h));
	if (in)
		memcpy(buf + sizeof(h), req, in);
	ret = cm_raw(fd, buf, len);
	if (ret < 0)
		return ret;
	/* Success is always the whole length. */
	if ((size_t)ret != len) {
		fail(__FILE__, __LINE__, "command %u: write of %zu bytes returned %ld",
		     cmd, len, ret);
		return -EPROTO;
	}
	return 0;
}

/* --- addresses --- */

union addr addr4(const char *ip, uint16_t port)
{
	union addr a = { 0 };

	a.in.sin_family = AF_INET;
	a.in.sin_port = htons(port);
	inet_pton(AF_INET, ip, &a.in.sin_addr);
	return a;
}

union addr addr6(const char *ip, uint16_t port)
{
	union addr a = { 0 };

	a.in6.sin6_family = AF_INET6;
	a.in6.sin6_port = htons(port);
	inet_pton(AF_INET6, ip, &a.in6.sin6_addr);
	return a;
}

union addr addr_ib(uint64_t sid, uint64_t mask)
{
	union addr a = { 0 };

	a.ib.family = AF_IB;
	a.ib.sid = htobe64(sid);
	a.ib.sid_mask = htobe64(mask);
	return a;
}

size_t addr_size(const union addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return sizeof(a->in);
	case AF_INET6:
		return sizeof(a->in6);
	case AF_IB:
		return sizeof(a->ib);
	default:
		return 0;
	}
}

uint16_t addr_port(const union addr *a)
{
	switch (a->sa.sa_family) {
	case AF_INET:
		return ntohs(a->in.sin_port);
	case AF_INET6:
		return ntohs(a->in6.sin6_port);
	case AF_IB:
		return be64toh(a->ib.sid) & 0xffff;
	default:
		return 0;
	}
}

static bool find6(bool linklocal, union addr *found)
{
	struct ifaddrs *all, *i;
	const char *netdev = NULL;
	union addr want = addr4(ADDR4, 0);
	bool ok = false;

	if (getifaddrs(&all))
		return false;
	for (i = all; i; i = i->ifa_next) {
		const union addr *a = (const void *)i->ifa_addr;

		if (a && a->sa.sa_family == AF_INET &&
		    a->in.sin_addr.s_addr == want.in.sin_addr.s_addr)
			netdev = i->ifa_name;
	}
	for (i = all; i && netdev && !ok; i = i->ifa_next) {
		const union addr *a = (const void *)i->ifa_addr;

		if (!a || a->sa.sa_family != AF_INET6 || strcmp(i->ifa_name, netdev))
			continue;
		if (!!IN6_IS_ADDR_LINKLOCAL(&a->in6.sin6_addr) != linklocal)
			continue;
		*found = (union addr){ 0 };
		found->in6 = a->in6;
		if (!linklocal)
			found->in6.sin6_scope_id = 0;
		ok = true;
	}
	freeifaddrs(all);
	return ok;
}

union addr global6(uint16_t port)
{
	union addr a;

	if (!find6(false, &a))
		skip("no IPv6 address on the device's netdev");
	a.in6.sin6_port = htons(port);
	return a;
}

union addr linklocal6(uint16_t port)
{
	union addr a;

	if (!find6(true, &a))
		skip("no link-local address on the device's netdev");
	a.in6.sin6_port = htons(port);
	return a;
}

union addr absent4(uint16_t port)
{
	return addr4(ABSENT4, port);
}

/* --- commands --- */

long create_id_type(int fd, uint16_t ps, uint8_t qp_type, uint64_t uid)
{
	struct rdma_ucm_create_id_resp *resp = edge(sizeof(*resp));
	struct rdma_ucm_create_id req = {
		.uid = uid, .response = ptr(resp), .ps = ps, .qp_type = qp_type,
	};
	long ret = cm_cmd(fd, RDMA_USER_CM_CMD_CREATE_ID, &req, sizeof(req), sizeof(*resp));

	return ret < 0 ? ret : (long)resp->id;
}

long create_id(int fd, uint16_t ps, uint64_t uid)
{
	return create_id_type(fd, ps, QPT_RC, uid);
}

long destroy_id(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp *resp = edge(sizeof(*resp));
	struct rdma_ucm_destroy_id req = { .response = ptr(resp), .id = id };
	long ret = cm_cmd(fd, RDMA_USER_CM_CMD_DESTROY_ID, &req, sizeof(req), sizeof(*resp));

	return ret < 0 ? ret : (long)resp->events_reported;
}

long bind_ip(int fd, uint32_t id, const union addr *a)
{
	struct rdma_ucm_bind_ip req = { .addr = a->in6, .id = id };

	return cm_cmd(fd, RDMA_USER_CM_CMD_BIND_IP, &req, sizeof(req), 0);
}

long bind_addr(int fd, uint32_t id, const union addr *a)
{
	struct rdma_ucm_bind req = { .id = id, .addr_size = addr_size(a) };

	memcpy(&req.addr, a, sizeof(*a));
	return cm_cmd(fd, RDMA_USER_CM_CMD_BIND, &req, sizeof(req), 0);
}

long bind4(int fd, uint32_t id, const char *ip, uint16_t port)
{
	union addr a = addr4(ip, port);

	return bind_addr(fd, id, &a);
}

long resolve_ip(int fd, uint32_t id, const union addr *src, const union addr *dst, int ms)
{
	struct rdma_ucm_resolve_ip req = { .dst_addr = dst->in6, .id = id, .timeout_ms = ms };

	if (src)
		req.src_addr = src->in6;
	return cm_cmd(fd, RDMA_USER_CM_CMD_RESOLVE_IP, &req, sizeof(req), 0);
}

long resolve_addr(int fd, uint32_t id, const union addr *src, const union addr *dst, int ms)
{
	struct rdma_ucm_resolve_addr req = {
		.id = id,
		.timeout_ms = ms,
		.src_size = src ? addr_size(src) : 0,
		.dst_size = addr_size(dst),
	};

	if (src)
		memcpy(&req.src_addr, src, sizeof(*src));
	memcpy(&req.dst_addr, dst, sizeof(*dst));
	return cm_cmd(fd, RDMA_USER_CM_CMD_RESOLVE_ADDR, &req, sizeof(req), 0);
}

long resolve_route(int fd, uint32_t id, int ms)
{
	struct rdma_ucm_resolve_route req = { .id = id, .timeout_ms = ms };

	return cm_cmd(fd, RDMA_USER_CM_CMD_RESOLVE_ROUTE, &req, sizeof(req), 0);
}

long listen_id(int fd, uint32_t id, int backlog)
{
	struct rdma_ucm_listen req = { .id = id, .backlog = backlog };

	return cm_cmd(fd, RDMA_USER_CM_CMD_LISTEN, &req, sizeof(req), 0);
}

long connect_id(int fd, uint32_t id, const struct rdma_ucm_conn_param *p)
{
	struct rdma_ucm_connect req = { .conn_param = *p, .id = id };

	return cm_cmd(fd, RDMA_USER_CM_CMD_CONNECT, &req, sizeof(req), 0);
}

long accept_id(int fd, uint32_t id, uint64_t uid, const struct rdma_ucm_conn_param *p)
{
	struct rdma_ucm_accept req = { .uid = uid, .id = id };

	if (p)
		req.conn_param = *p;
	return cm_cmd(fd, RDMA_USER_CM_CMD_ACCEPT, &req, sizeof(req), 0);
}

long reject_id(int fd, uint32_t id, const void *data, uint8_t len, uint8_t reason)
{
	struct rdma_ucm_reject req = { .id = id, .private_data_len = len, .reason = reason };

	if (data)
		memcpy(req.private_data, data, len);
	return cm_cmd(fd, RDMA_USER_CM_CMD_REJECT, &req, sizeof(req), 0);
}

long disconnect_id(int fd, uint32_t id)
{
	struct rdma_ucm_disconnect req = { .id = id };

	return cm_cmd(fd, RDMA_USER_CM_CMD_DISCONNECT, &req, sizeof(req), 0);
}

long notify_id(int fd, uint32_t id, uint32_t event)
{
	struct rdma_ucm_notify req = { .id = id, .event = event };

	return cm_cmd(fd, RDMA_USER_CM_CMD_NOTIFY, &req, sizeof(req), 0);
}

long set_option(int fd, uint32_t id, uint32_t level, uint32_t name,
		const void *value, uint32_t len)
{
	struct rdma_ucm_set_option req = {
		.optval = ptr(value), .id = id, .level = level, .optname = name, .optlen = len,
	};

	return cm_cmd(fd, RDMA_USER_CM_CMD_SET_OPTION, &req, sizeof(req), 0);
}

/* A command whose request is {response, id, word}; the answer goes to the edge. */
static long ask(int fd, uint32_t cmd, uint32_t id, uint32_t word, void *resp, uint16_t out)
{
	void *buf = edge_fill(out, 0xee);
	struct rdma_ucm_query req = { .response = ptr(buf), .id = id, .option = word };
	long ret = cm_cmd(fd, cmd, &req, sizeof(req), out);

	memcpy(resp, buf, out);
	return ret;
}

void as_c(int fd, uint32_t id)
{
	uint32_t none = 0;

	if (!is_rust())
		return;
	REQUIRE_OK(set_option(fd, id, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_EARLY_RETRY, &none, 4));
	REQUIRE_OK(set_option(fd, id, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_PARKING, &none, 4));
}

long init_qp_attr(int fd, uint32_t id, uint32_t state, struct ib_uverbs_qp_attr *attr)
{
	return ask(fd, RDMA_USER_CM_CMD_INIT_QP_ATTR, id, state, attr, sizeof(*attr));
}

long query_route(int fd, uint32_t id, struct rdma_ucm_query_route_resp *resp)
{
	return ask(fd, RDMA_USER_CM_CMD_QUERY_ROUTE, id, 0, resp, sizeof(*resp));
}

long query(int fd, uint32_t id, uint32_t option, void *resp, uint16_t out)
{
	return ask(fd, RDMA_USER_CM_CMD_QUERY, id, option, resp, out);
}

long query_addr(int fd, uint32_t id, struct rdma_ucm_query_addr_resp *resp)
{
	return query(fd, id, RDMA_USER_CM_QUERY_ADDR, resp, sizeof(*resp));
}

uint16_t bound_port(int fd, uint32_t id)
{
	struct rdma_ucm_query_addr_resp resp;
	union addr a;

	REQUIRE_OK(query_addr(fd, id, &resp));
	memcpy(&a, &resp.src_addr, sizeof(a));
	return addr_port(&a);
}

long query_gid(int fd, uint32_t id, struct rdma_ucm_query_addr_resp *resp)
{
	return query(fd, id, RDMA_USER_CM_QUERY_GID, resp, sizeof(*resp));
}

long migrate_id(int to, uint32_t id, int from)
{
	struct rdma_ucm_migrate_resp resp;
	long ret = ask(to, RDMA_USER_CM_CMD_MIGRATE_ID, id, from, &resp, sizeof(resp));

	return ret < 0 ? ret : (long)resp.events_reported;
}

/* --- events --- */

const char *event_name(uint32_t event)
{
	static const char *const names[] = {
		"ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED", "ROUTE_ERROR",
		"CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE",
		"REJECTED", "ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL",
		"MULTICAST_JOIN", "MULTICAST_ERROR", "ADDR_CHANGE", "TIMEWAIT_EXIT",
	};

	return event < sizeof(names) / sizeof(names[0]) ? names[event] : "?";
}

long get_event(int fd, struct rdma_ucm_event_resp *ev)
{
	void *buf = edge_fill(sizeof(*ev), 0xee);
	struct rdma_ucm_get_event req = { .response = ptr(buf) };
	long ret = cm_cmd(fd, RDMA_USER_CM_CMD_GET_EVENT, &req, sizeof(req), sizeof(*ev));

	memcpy(ev, buf, sizeof(*ev));
	return ret;
}

long wait_event(int fd, struct rdma_ucm_event_resp *ev, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int ret = poll(&p, 1, ms);

	if (ret < 0)
		return -errno;
	if (ret == 0)
		return -ETIMEDOUT;
	return get_event(fd, ev);
}

void need_event(const char *file, int line, int fd, enum event want,
		struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_event_resp local;
	long ret;

	ev = ev ?: &local;
	ret = wait_event(fd, ev, 10000 * patience());
	if (ret < 0) {
		fail(file, line, "waiting for %s: %s", event_name(want), errno_name(-ret));
		stop();
	}
	if (ev->event != (uint32_t)want) {
		fail(file, line, "want %s, got %s (%u) status %d", event_name(want),
		     event_name(ev->event), ev->event, (int)ev->status);
		stop();
	}
}

static void need_done(const char *file, int line, int fd, const char *what, long ret, enum event want)
{
	if (!check_err(file, line, what, 0, ret))
		stop();
	need_event(file, line, fd, want, NULL);
}

void need_addr(const char *file, int line, int fd, uint32_t id, const union addr *src, const union addr *dst)
{
	need_done(file, line, fd, "resolve_addr", resolve_addr(fd, id, src, dst, 2000), EV_ADDR_RESOLVED);
}

void need_route(const char *file, int line, int fd, uint32_t id)
{
	need_done(file, line, fd, "resolve_route", resolve_route(fd, id, 2000), EV_ROUTE_RESOLVED);
}

bool no_event(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}
