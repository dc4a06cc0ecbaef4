// SPDX-License-Identifier: GPL-2.0
/* The classes of arguments: which cases a command has, and what makes each. */
#include <sys/mman.h>

#include "walk.h"

static const char *const class_names[CLASSES] = {
	[GOOD] = "good", [ID_BAD] = "an id that is not there", [ID_HUGE] = "id 0xffffffff",
	[ID_FOREIGN] = "an id of another file", [IN_ZERO] = "in 0", [IN_HALF] = "in half",
	[IN_LESS] = "in one less", [IN_MORE] = "in 8 more", [IN_BEYOND] = "in beyond the write",
	[IN_UNMAPPED] = "request not mapped", [OUT_ZERO] = "out 0", [OUT_LESS] = "out one less",
	[OUT_MORE] = "out 64 more", [OUT_MOST] = "out 65535", [ANSWER_NULL] = "answer to NULL",
	[ANSWER_UNMAPPED] = "answer not mapped", [ANSWER_READONLY] = "answer read-only",
	[ANSWER_KERNEL] = "answer to the kernel", [ANSWER_CROSSING] = "answer half mapped",
	[ANSWER_ODD] = "answer at an odd address",
};

static void push(struct tcase *cases, size_t max, size_t *n, struct tcase t)
{
	if (*n < max)
		cases[*n] = t;
	(*n)++;
}

/* A word of a list with blanks between its words. */
static bool is_listed(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at && (at = strstr(at, word)); at += len)
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

static bool applies(const struct command *c, enum class class)
{
	switch (class) {
	case ID_BAD:
	case ID_HUGE:
	case ID_FOREIGN:
		return c->id_at >= 0;
	case OUT_ZERO ... ANSWER_ODD:
		return c->answer_at >= 0;
	default:
		return true;
	}
}

size_t cases_of(const struct command *c, const struct state *s, struct tcase *cases, size_t max)
{
	static const char *const what[] = { "zero", "one", "most" };
	bool wide = s->wide || is_listed(c->closely, s->name);
	struct tcase t = { .command = c };
	size_t n = 0;

	/* It knows no other id. */
	if (c->number == RDMA_USER_CM_CMD_CREATE_ID && s != states)
		return 0;
	for (t.class = GOOD; t.class <= ANSWER_ODD; t.class++) {
		if (!applies(c, t.class) || (t.class != GOOD && !wide))
			continue;
		snprintf(t.name, sizeof(t.name), "%s", class_names[t.class]);
		push(cases, max, &n, t);
	}
	for (t.index = 0; wide && c->fields[t.index].name; t.index++) {
		const struct field *f = &c->fields[t.index];

		for (t.class = FIELD_ZERO; t.class <= FIELD_MOST; t.class++) {
			snprintf(t.name, sizeof(t.name), "%s %s", f->name,
				 what[t.class - FIELD_ZERO]);
			push(cases, max, &n, t);
		}
	}
	t.class = VARIANT;
	for (t.index = 0; c->variants && c->variants[t.index].name; t.index++) {
		if (c->variants[t.index].wide && !wide)
			continue;
		snprintf(t.name, sizeof(t.name), "%s", c->variants[t.index].name);
		push(cases, max, &n, t);
	}
	return n;
}

bool is_short(const struct state *s, const struct tcase *t)
{
	if (s->rare)
		return false;
	/* Checks that come before the lookup of the id are the same in every state. */
	if (s == states || t->class == GOOD || (t->command->pure && t->class == VARIANT))
		return true;
	return is_listed(t->command->closely, s->name);
}

static void set_field(const struct field *f, enum class class, uint8_t *req)
{
	memset(req + f->at, class == FIELD_MOST ? 0xff : 0, f->size);
	/* Little endian. */
	if (class == FIELD_ONE)
		req[f->at] = 1;
	if (class == FIELD_MOST && f->kind == ADDRESS)
		put64(req, f->at, 0xffff888000000000);
}

/* Where the answer goes: ANSWER_ROOM bytes, and what is said to be there. */
static uint64_t answer_place(enum class class, uint8_t *room, const struct command *c)
{
	uint8_t *p;

	switch (class) {
	case ANSWER_NULL:
		return 0;
	case ANSWER_UNMAPPED:
		return ptr(unmapped());
	case ANSWER_READONLY:
		return ptr(readonly(ANSWER_ROOM));
	case ANSWER_KERNEL:
		return 0xffff888000000000;
	case ANSWER_CROSSING:
		p = edge(c->out / 2);
		return ptr(p);
	case ANSWER_ODD:
		return ptr(room + 1);
	default:
		return ptr(room);
	}
}

void make_call(const struct tcase *t, struct subject *s, uint8_t pattern, struct call *call)
{
	const struct command *c = t->command;
	uint8_t req[MAX_REQUEST] = { 0 };
	struct rdma_ucm_cmd_hdr h = { .cmd = c->number, .in = c->in };
	size_t mapped;

	/* Answers that can be longer than the least have room for that. */
	h.out = c->answer_at < 0 ? 0 : c->out == 4 ? 4 : ANSWER_ROOM / 2;
	if (c->fill)
		c->fill(s, req);
	if (c->id_at >= 0 && c->number != RDMA_USER_CM_CMD_LEAVE_MCAST)
		put32(req, c->id_at, s->id);
	call->answer = c->answer_at < 0 ? NULL : edge_fill(ANSWER_ROOM, pattern);
	if (call->answer)
		put64(req, c->answer_at, answer_place(t->class, call->answer, c));

	switch (t->class) {
	case ID_BAD:
		put32(req, c->id_at, 0x7ffffff0);
		break;
	case ID_HUGE:
		put32(req, c->id_at, 0xffffffff);
		break;
	case ID_FOREIGN:
		put32(req, c->id_at, c->elsewhere ? s->id : s->foreign);
		if (c->elsewhere)
			put32(req, 12, s->other);
		break;
	case IN_ZERO:
		h.in = 0;
		break;
	case IN_HALF:
		h.in = c->in / 2;
		break;
	case IN_LESS:
		h.in = c->in - 1;
		break;
	case IN_MORE:
		h.in = c->in + 8;
		break;
	case OUT_ZERO:
		h.out = 0;
		break;
	case OUT_LESS:
		h.out = c->out - 1;
		break;
	case OUT_MORE:
		h.out = c->out + 64;
		break;
	case OUT_MOST:
		h.out = 0xffff;
		break;
	case FIELD_ZERO ... FIELD_MOST:
		set_field(&c->fields[t->index], t->class, req);
		break;
	case VARIANT:
		c->variants[t->index].change(s, req, c->variants[t->index].arg);
		break;
	default:
		break;
	}

	/*
	 * Behind a request that is said to be shorter there are zeros: C reads them, and
	 * to Rust what is not there is zero.
	 */
	call->len = sizeof(h) + h.in;
	mapped = t->class == IN_UNMAPPED ? sizeof(h) : sizeof(h) + MAX_REQUEST;
	call->write = edge(mapped);
	if (t->class == IN_BEYOND)
		h.in++;
	memcpy(call->write, &h, sizeof(h));
	if (t->class != IN_UNMAPPED)
		memcpy(call->write + sizeof(h), req, call->len - sizeof(h));
}

long issue(const struct tcase *t, struct subject *s, const struct call *call)
{
	return cm_raw(t->command->elsewhere ? s->other : s->fd, call->write, call->len);
}
