// SPDX-License-Identifier: GPL-2.0
/* The netlink requests of the rdma tool to ib_core, without the tool. */
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

#include "abi.h"

#define NL_TYPE(op) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op)

struct request {
	struct nlmsghdr h;
	char attrs[256];
};

static void put(struct request *r, int type, const void *data, size_t len)
{
	struct nlattr *a = (void *)((char *)r + NLMSG_ALIGN(r->h.nlmsg_len));

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, data, len);
	r->h.nlmsg_len = NLMSG_ALIGN(r->h.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

static const struct nlattr *find(const void *start, size_t len, int type)
{
	const struct nlattr *a = start;

	while (len >= NLA_HDRLEN && a->nla_len >= NLA_HDRLEN && a->nla_len <= len) {
		size_t step = NLA_ALIGN(a->nla_len);

		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		if (step > len)
			break;
		len -= step;
		a = (const void *)((const char *)a + step);
	}
	return NULL;
}

static const void *body(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static size_t body_len(const struct nlattr *a)
{
	return a->nla_len - NLA_HDRLEN;
}

/* Send, and give each answer to fn; its non-zero return value ends that. */
static int ask(struct request *r, int (*fn)(const void *attrs, size_t len, void *arg), void *arg)
{
	static char buf[1 << 16] __attribute__((aligned(8)));
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	struct timeval limit = { .tv_sec = 10 };
	int ret = 0;
	bool more = true;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, r, r->h.nlmsg_len, 0) < 0) {
		ret = -errno;
		more = false;
	}
	while (more) {
		ssize_t len = recv(fd, buf, sizeof(buf), 0);

		if (len < 0) {
			ret = -errno;
			break;
		}
		for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			if (h->nlmsg_type == NLMSG_DONE) {
				more = false;
			} else if (h->nlmsg_type == NLMSG_ERROR) {
				ret = ((struct nlmsgerr *)NLMSG_DATA(h))->error;
				more = false;
			} else {
				ret = fn(NLMSG_DATA(h), h->nlmsg_len - NLMSG_HDRLEN, arg);
				if (ret || !(h->nlmsg_flags & NLM_F_MULTI))
					more = false;
			}
		}
	}
	close(fd);
	return ret;
}

static int add_summary(const void *attrs, size_t len, void *arg)
{
	const struct nlattr *summary = find(attrs, len, RDMA_NLDEV_ATTR_RES_SUMMARY);
	const char *p;
	size_t left;

	if (!summary)
		return 0;
	p = body(summary);
	left = body_len(summary);
	while (left >= NLA_HDRLEN) {
		const struct nlattr *entry = (const void *)p;
		const struct nlattr *name, *count;
		size_t step;

		if (entry->nla_len < NLA_HDRLEN || entry->nla_len > left)
			break;
		name = find(body(entry), body_len(entry), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_NAME);
		count = find(body(entry), body_len(entry), RDMA_NLDEV_ATTR_RES_SUMMARY_ENTRY_CURR);
		if (name && count && strcmp(body(name), "cm_id") == 0) {
			uint64_t n;

			memcpy(&n, body(count), sizeof(n));
			*(long *)arg += n;
		}
		step = NLA_ALIGN(entry->nla_len);
		left -= step < left ? step : left;
		p += step;
	}
	return 0;
}

long count_cm_ids(void)
{
	struct request r = {
		.h = {
			.nlmsg_len = NLMSG_HDRLEN,
			.nlmsg_type = NL_TYPE(RDMA_NLDEV_CMD_RES_GET),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP,
		},
	};
	long total = 0;
	int ret = ask(&r, add_summary, &total);

	return ret ? ret : total;
}

/* The attributes with which an id is shown, and which do not change by themselves. */
static const int shown_attrs[] = {
	RDMA_NLDEV_ATTR_RES_CM_IDN, RDMA_NLDEV_ATTR_RES_LQPN, RDMA_NLDEV_ATTR_PORT_INDEX,
	RDMA_NLDEV_ATTR_RES_STATE, RDMA_NLDEV_ATTR_RES_PS, RDMA_NLDEV_ATTR_RES_TYPE,
	RDMA_NLDEV_ATTR_RES_SRC_ADDR, RDMA_NLDEV_ATTR_RES_DST_ADDR,
};

static uint64_t hash_shown(const void *start, size_t len, const struct nlattr *device)
{
	uint64_t h = 0xcbf29ce484222325;

	if (device)
		h = (h ^ *(const uint32_t *)body(device)) * 0x100000001b3;
	for (size_t i = 0; i < sizeof(shown_attrs) / sizeof(shown_attrs[0]); i++) {
		const struct nlattr *a = find(start, len, shown_attrs[i]);
		const uint8_t *p = a ? body(a) : NULL;

		h = (h ^ shown_attrs[i]) * 0x100000001b3;
		for (size_t n = 0; a && n < body_len(a); n++)
			h = (h ^ p[n]) * 0x100000001b3;
	}
	return h;
}

static int add_shown(const void *attrs, size_t len, void *arg)
{
	const struct nlattr *ids = find(attrs, len, RDMA_NLDEV_ATTR_RES_CM_ID);
	const struct nlattr *device = find(attrs, len, RDMA_NLDEV_ATTR_DEV_INDEX);
	size_t left = ids ? body_len(ids) : 0;
	const char *p = ids ? body(ids) : NULL;

	while (left >= NLA_HDRLEN) {
		const struct nlattr *entry = (const void *)p, *pid;
		size_t step;

		if (entry->nla_len < NLA_HDRLEN || entry->nla_len > left)
			break;
		pid = find(body(entry), body_len(entry), RDMA_NLDEV_ATTR_RES_PID);
		/* The order says nothing. */
		if (pid && *(const uint32_t *)body(pid) == (uint32_t)getpid())
			*(uint64_t *)arg += hash_shown(body(entry), body_len(entry), device);
		step = NLA_ALIGN(entry->nla_len);
		left -= step < left ? step : left;
		p += step;
	}
	return 0;
}

#define MOST_DEVICES 64

struct devices {
	uint32_t indexes[MOST_DEVICES];
	size_t count;
};

static int add_device(const void *attrs, size_t len, void *arg)
{
	const struct nlattr *index = find(attrs, len, RDMA_NLDEV_ATTR_DEV_INDEX);
	struct devices *devices = arg;

	if (index && devices->count < MOST_DEVICES)
		devices->indexes[devices->count++] = *(const uint32_t *)body(index);
	return 0;
}

static int ask_devices(int (*fn)(const void *attrs, size_t len, void *arg), void *arg)
{
	struct request all = {
		.h = {
			.nlmsg_len = NLMSG_HDRLEN,
			.nlmsg_type = NL_TYPE(RDMA_NLDEV_CMD_GET),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP,
		},
	};

	return ask(&all, fn, arg);
}

struct wanted {
	int attr;
	const void *value;
	size_t len;
	long index;
};

static int find_device(const void *attrs, size_t len, void *arg)
{
	struct wanted *wanted = arg;
	const struct nlattr *index = find(attrs, len, RDMA_NLDEV_ATTR_DEV_INDEX);
	const struct nlattr *attr = find(attrs, len, wanted->attr);

	if (index && attr && body_len(attr) == wanted->len &&
	    memcmp(body(attr), wanted->value, wanted->len) == 0)
		wanted->index = *(const uint32_t *)body(index);
	return 0;
}

static long index_of(int attr, const void *value, size_t len)
{
	struct wanted wanted = { .attr = attr, .value = value, .len = len, .index = -ENODEV };
	int ret = ask_devices(find_device, &wanted);

	return ret ? ret : wanted.index;
}

long device_index(const char *name)
{
	return index_of(RDMA_NLDEV_ATTR_DEV_NAME, name, strlen(name) + 1);
}

long device_index_of_guid(uint64_t node_guid)
{
	uint64_t guid = be64toh(node_guid);

	return index_of(RDMA_NLDEV_ATTR_NODE_GUID, &guid, sizeof(guid));
}

uint64_t shown_cm_ids(void)
{
	struct devices devices = { .count = 0 };
	uint64_t sum = 0;

	ask_devices(add_device, &devices);
	for (size_t i = 0; i < devices.count; i++) {
		struct request r = {
			.h = {
				.nlmsg_len = NLMSG_HDRLEN,
				.nlmsg_type = NL_TYPE(RDMA_NLDEV_CMD_RES_CM_ID_GET),
				.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP,
			},
		};

		put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &devices.indexes[i], sizeof(uint32_t));
		ask(&r, add_shown, &sum);
	}
	return sum;
}

static int read_chardev(const void *attrs, size_t len, void *arg)
{
	const struct nlattr *devt = find(attrs, len, RDMA_NLDEV_ATTR_CHARDEV);
	const struct nlattr *abi = find(attrs, len, RDMA_NLDEV_ATTR_CHARDEV_ABI);
	const struct nlattr *name = find(attrs, len, RDMA_NLDEV_ATTR_CHARDEV_NAME);
	struct chardev *c = arg;

	if (!devt || !abi || !name)
		return -EBADMSG;
	memcpy(&c->devt, body(devt), sizeof(c->devt));
	memcpy(&c->abi, body(abi), sizeof(c->abi));
	snprintf(c->name, sizeof(c->name), "%s", (const char *)body(name));
	return 0;
}

int get_chardev(struct chardev *c, int dev_index)
{
	struct request r = {
		.h = {
			.nlmsg_len = NLMSG_HDRLEN,
			.nlmsg_type = NL_TYPE(RDMA_NLDEV_CMD_GET_CHARDEV),
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		},
	};

	put(&r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "rdma_cm", sizeof("rdma_cm"));
	if (dev_index >= 0)
		put(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &dev_index, sizeof(uint32_t));
	return ask(&r, read_chardev, c);
}
