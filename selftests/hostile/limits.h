/* SPDX-License-Identifier: GPL-2.0 */
/* The limits of a user: the functions that the acts of limits.c and wire_limits.c share. */
#ifndef LIMITS_H
#define LIMITS_H

#include <semaphore.h>

#include "hostile.h"

/* A user beside NOBODY. */
#define SOMEBODY 1000

/* The state that the processes of an act share. */
extern struct shared {
	sem_t ready, go, unmapped;
	int made, error;
} *shared;

void share(void);
pid_t child(void);
/* Ends a child whose output is complete. */
void finished(void);
/* Returns the exit status of a child. */
int reap(pid_t pid);
/* Waits for another process, which may have failed. */
void wait_for(sem_t *s);

/* Returns a number of /proc/self/fdinfo of a new file of the user; -1 if it has none. */
int shown(unsigned int user, const char *name);
/* Returns the number that stays shown for some seconds; 0 as soon as it is 0. */
int left(unsigned int user, const char *name);

#endif
