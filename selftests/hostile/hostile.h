/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The acts of a hostile user, one for each row of Documentation/security.rst. An act prints what it
 * has found as words NAME=VALUE, and the suite judges them: what is right depends on the connection
 * manager that is loaded.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <semaphore.h>

#include "../abi/abi.h"

/* A user who owns nothing, and another one. */
#define NOBODY 65534
#define SOMEBODY 1000

struct act {
	const char *name;
	const char *arguments;
	void (*run)(char **arguments);
	struct act *next;
};

void act_register(struct act *a);

#define ACT(what, words)							\
	static void act_##what(char **arguments);				\
	__attribute__((constructor)) static void act_##what##_register(void)	\
	{									\
		static struct act a = { #what, words, act_##what };		\
		act_register(&a);						\
	}									\
	static void act_##what(char **arguments)

/* From here on this process is that user, in no group of others, and without capabilities. */
void become(unsigned int uid);

/* A file of the device that does not wait. */
int file(void);

void write_file(const char *path, const char *text);

/* Returns a percentile of some values, which are sorted. */
uint64_t percentile(uint64_t *values, size_t number, unsigned int percent);

static inline int larger(int a, int b)
{
	return a > b ? a : b;
}

/* The state that the processes of an act share. */
extern struct shared {
	sem_t ready, go, done;
	uint32_t number;
	uint64_t took;
	int made, error;
} *shared;

void share(void);
pid_t child(void);
/* Ends a child whose output is complete. */
void finished(void);
/* Returns the exit status of a child. */
int reap(pid_t pid);
/* Kills a child, and waits for its end. */
void kill_child(pid_t pid);
/* Waits for another process, which may have failed. */
void wait_for(sem_t *s);

/*
 * Returns the number of events of this kind that come until none does for so long, or there are enough. Others, as the end
 * of an earlier connection's time wait, are passed over.
 */
int count_events(int fd, enum event kind, int enough, int ms, struct rdma_ucm_event_resp *last);

#endif
