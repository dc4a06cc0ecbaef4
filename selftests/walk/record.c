// SPDX-License-Identifier: GPL-2.0
/* The results, as text, without the parts that differ from run to run. */
#include <stdarg.h>

#include "walk.h"

bool verbose;

void add(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->text + l->len, sizeof(l->text) - l->len, format, args);
	va_end(args);
	if (n > 0)
		l->len += n;
	if (l->len >= sizeof(l->text))
		l->len = sizeof(l->text) - 1;
}

static uint64_t hash(uint64_t h, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

/* Bytes in runs: value, times how often. */
static void add_bytes(struct line *l, const uint8_t *bytes, const bool *written, size_t len)
{
	for (size_t i = 0, n; i < len; i += n) {
		n = 1;
		while (i + n < len && written[i + n] == written[i] &&
		       (!written[i] || bytes[i + n] == bytes[i]))
			n++;
		if (written[i])
			add(l, "%02x", bytes[i]);
		else
			add(l, "-");
		if (n > 1)
			add(l, "*%zu", n);
		add(l, i + n < len ? " " : "");
	}
}

void add_answer(struct line *l, const struct command *c, uint8_t *one, uint8_t one_pattern,
		uint8_t *two, uint8_t two_pattern)
{
	bool written[ANSWER_ROOM];
	size_t len = ANSWER_ROOM;

	/* Bytes that keep both patterns were not written. */
	for (size_t i = 0; i < ANSWER_ROOM; i++)
		written[i] = one[i] != one_pattern || two[i] != two_pattern;
	if (c->blank) {
		/* At an odd address it begins with the second byte. */
		size_t from = written[0] ? 0 : 1;

		c->blank(one + from, written + from);
		c->blank(two + from, written + from);
	}
	while (len > 0 && !written[len - 1])
		len--;
	if (len == 0)
		return;
	add(l, " answer[%zu]=", len);
	add_bytes(l, one, written, len);
	/* The request is made twice, and the answers differ: memory that nobody wrote. */
	for (size_t i = 0; i < len; i++)
		if (written[i] && one[i] != two[i])
			add(l, " !%zu:%02x/%02x", i, one[i], two[i]);
}

static const char *whose(struct subject *s, const struct rdma_ucm_event_resp *ev)
{
	uint32_t id = ev->id;

	/* Memberships have numbers of their own. */
	if (ev->event == EV_MULTICAST_JOIN || ev->event == EV_MULTICAST_ERROR)
		return s->group != ~0u && id == s->group ? "group" : "another group";
	if (id == s->id)
		return "id";
	if (s->p.sfd && id == s->p.listener)
		return "listener";
	if (s->p.sfd && s->p.server && id == s->p.server)
		return "server";
	if (s->p.cfd && id == s->p.client)
		return "client";
	return "new";
}

static void add_event(struct line *l, struct subject *s, const char *where,
		      const struct rdma_ucm_event_resp *ev)
{
	struct rdma_ucm_event_resp copy = *ev;
	bool written[sizeof(copy)];

	memset(written, true, sizeof(written));
	blank_event((uint8_t *)&copy, written);
	add(l, " %s:%s/%d of %s uid=%llx", where, event_name(ev->event), (int)ev->status,
	    whose(s, ev), (unsigned long long)ev->uid);
	if (verbose) {
		add(l, " {");
		add_bytes(l, (uint8_t *)&copy, written, sizeof(copy));
		add(l, "}");
	} else {
		add(l, " %08x", (uint32_t)hash(0xcbf29ce484222325, &copy, sizeof(copy)));
	}
}

void read_events(struct events *events, struct subject *s, int first_ms, int quiet_ms)
{
	int fds[] = { s->p.cfd, s->p.sfd, s->other };
	static const char *const names[] = { "client", "server", "other" };
	struct pollfd p[3];

	for (int i = 0; i < 3; i++)
		p[i] = (struct pollfd){ .fd = fds[i] > 0 ? fds[i] : -1, .events = POLLIN };
	for (int wait_ms = first_ms; poll(p, 3, wait_ms) > 0; wait_ms = quiet_ms) {
		bool any = false;

		for (int i = 0; i < 3; i++) {
			struct rdma_ucm_event_resp ev;

			if (!(p[i].revents & POLLIN) || get_event(fds[i], &ev) < 0)
				continue;
			any = true;
			if (events->of[i].len < 4000)
				add_event(&events->of[i], s, names[i], &ev);
		}
		if (!any)
			break;
	}
}

void add_events(struct line *l, const struct events *events)
{
	for (int i = 0; i < 3; i++)
		if (events->of[i].len)
			add(l, "%s", events->of[i].text);
}

/* Addresses, route and attributes, without what is chosen in each run; their bytes go to l. */
static uint64_t look(struct subject *s, struct line *l)
{
	static const struct {
		uint32_t number, option;
		uint16_t out;
	} asks[] = {
		{ 19, 0, 280 }, { 19, 1, 152 }, { 19, 2, 280 }, { 5, 0, 208 }, { 11, 1, 144 },
		{ 11, 2, 144 }, { 11, 3, 144 },
	};
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
		uint8_t answer[ANSWER_ROOM] = { 0 };
		bool written[ANSWER_ROOM];
		struct {
			struct rdma_ucm_cmd_hdr header;
			struct rdma_ucm_query query;
		} req = {
			.header = { asks[i].number, sizeof(req.query), asks[i].out },
			.query = { ptr(answer), s->id, asks[i].option },
		};
		long ret = cm_raw(s->fd, &req, sizeof(req));

		memset(written, false, sizeof(written));
		memset(written, true, asks[i].out);
		for (size_t c = 0; c < nr_commands; c++)
			if (commands[c].number == asks[i].number && commands[c].blank)
				commands[c].blank(answer, written);
		/* The number of an id that is gone may be that of another file's. */
		if (ret == -ENOENT)
			ret = -EINVAL;
		h = hash(h, &ret, sizeof(ret));
		h = hash(h, answer, asks[i].out);
		if (l) {
			add(l, " %u/%u{", asks[i].number, asks[i].option);
			add_bytes(l, answer, written, ret < 0 ? 0 : asks[i].out);
			add(l, "}");
		}
	}
	return h;
}

uint64_t view(struct subject *s)
{
	return look(s, NULL);
}

void add_view(struct line *l, struct subject *s)
{
	add(l, " changed=%08x", (uint32_t)look(s, NULL));
	if (verbose)
		look(s, l);
}
