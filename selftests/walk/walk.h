/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Every command, with every class of argument, in every state of an id: what the
 * connection manager that is loaded does. Nothing is judged here; the lines of two
 * connection managers are compared.
 *
 * commands.c says what a command looks like and what makes a request of it special;
 * states.c brings an id into a state; cases.c makes the classes; record.c puts down what
 * happened, without what differs from run to run (blank.c). Programs: walk.c walks; race.c gives
 * commands to one id from two threads.
 */
#ifndef WALK_H
#define WALK_H

#include <net/if.h>

#include "../abi/abi.h"

/* An interface with link-local addresses, and another device or none (walk.sh). */
#ifdef OVER_IB
#define ELSEWHERE "v0"
#else
#define ELSEWHERE "elsewhere0"
#endif

#define MAX_REQUEST 512
#define ANSWER_ROOM 1024	/* more than any answer */
#define MAX_FIELDS 20

/* An id in some state, and what belongs to it. */
struct subject {
	struct pair p;
	int fd;			/* the file of the id */
	uint32_t id;
	uint32_t group;		/* a multicast group that it has joined, or ~0 */
	int other;		/* another file, with another id */
	uint32_t foreign;
};

struct state {
	const char *name;
	void (*enter)(struct subject *s);
	bool wide;	/* all classes of arguments, not only the main ones */
	bool rare;	/* not in the short walk */
	uint8_t qp_type;	/* in the port space PS_IB; 0 is RC in PS_TCP */
};

extern const struct state states[];
extern const size_t nr_states;
const struct state *state_named(const char *name);
/* stopped() is called if it cannot be entered. */
void enter(const struct state *state, struct subject *s);
void leave(struct subject *s);

/*
 * Makes the first id and the first membership, and keeps them: so that number 0, which a
 * request has that names none, is not by chance that of the subject.
 */
void take_zero(void);

/* Ends a program at this point; it does not return. */
void stopped(const char *why);

enum kind {
	NUMBER,		/* any value */
	RESERVED,	/* zero, or ignored */
	ADDRESS,	/* pointer to user memory that is read */
};

struct field {
	const char *name;
	uint16_t at, size;
	enum kind kind;
};

/* A modification of a request. */
struct variant {
	const char *name;
	void (*change)(struct subject *s, uint8_t *req, long arg);
	long arg;
	bool wide;	/* only where all classes are tried */
};

struct command {
	const char *name;
	uint32_t number;
	uint16_t in, out;	/* of a whole request, and the least answer */
	int16_t id_at, answer_at;	/* -1 if it has none */
	bool pure;	/* never changes an id */
	bool elsewhere;	/* to be written to the other file */
	bool asks;	/* if it succeeds, an event follows, however long somebody takes to answer */
	void (*fill)(struct subject *s, uint8_t *req);
	struct field fields[MAX_FIELDS];
	const struct variant *variants;
	/* States in which all cases of it are in the short walk; in the first state all are. */
	const char *closely;
	/* Blanks what differs from run to run in an answer. */
	void (*blank)(uint8_t *answer, const bool *written);
};

extern const struct command commands[];
extern const size_t nr_commands;

bool hangs_on_c(const struct state *state, const struct command *c);

void put16(uint8_t *req, size_t at, uint16_t value);
void put32(uint8_t *req, size_t at, uint32_t value);
void put64(uint8_t *req, size_t at, uint64_t value);

/* --- cases.c --- */

enum class {
	GOOD, ID_BAD, ID_HUGE, ID_FOREIGN, IN_ZERO, IN_HALF, IN_LESS, IN_MORE, IN_BEYOND,
	IN_UNMAPPED, OUT_ZERO, OUT_LESS, OUT_MORE, OUT_MOST, ANSWER_NULL, ANSWER_UNMAPPED,
	ANSWER_READONLY, ANSWER_KERNEL, ANSWER_CROSSING, ANSWER_ODD, FIELD_ZERO, FIELD_ONE,
	FIELD_MOST, VARIANT, CLASSES
};

struct tcase {
	char name[96];
	const struct command *command;
	enum class class;
	int index;	/* of a field or variant */
};

/* The cases of a command in a state; returns how many there are. */
size_t cases_of(const struct command *c, const struct state *s, struct tcase *cases, size_t max);

/* Returns true if the case is one of those that are walked each time. */
bool is_short(const struct state *s, const struct tcase *t);

/* Memory that C then goes on using after it was freed. */
bool breaks_c(const struct state *state, const struct tcase *t);

/* A request as it is to be written. */
struct call {
	uint8_t *write;		/* header and request */
	size_t len;
	uint8_t *answer;	/* ANSWER_ROOM bytes of the pattern, or NULL */
};

void make_call(const struct tcase *t, struct subject *s, uint8_t pattern, struct call *call);
long issue(const struct tcase *t, struct subject *s, const struct call *call);

/* --- blank.c: each of an answer, of which some bytes were written --- */

void blank_number(uint8_t *answer, const bool *written);
void blank_route(uint8_t *answer, const bool *written);
void blank_query(uint8_t *answer, const bool *written);
void blank_attr(uint8_t *answer, const bool *written);
void blank_event(uint8_t *answer, const bool *written);

/* --- record.c --- */

/* A line of text that grows. */
struct line {
	char text[16384];
	size_t len;
};

void add(struct line *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The bytes of an answer, from calls with two patterns. */
void add_answer(struct line *l, const struct command *c, uint8_t *one, uint8_t one_pattern,
		uint8_t *two, uint8_t two_pattern);
/* Events by the file on which they came. The files are told apart, because their order says nothing. */
struct events {
	struct line of[3];
};

/* Adds the events that come while the id settles: one within the first time, and others within the second. */
void read_events(struct events *events, struct subject *s, int first_ms, int quiet_ms);
void add_events(struct line *l, const struct events *events);
/* Returns the visible state of an id. */
uint64_t view(struct subject *s);
void add_view(struct line *l, struct subject *s);

extern bool verbose;

#endif
