/* SPDX-License-Identifier: GPL-2.0 */
/* The limits of a user: the functions that the acts of limits.c and wire_limits.c share. */
#ifndef LIMITS_H
#define LIMITS_H

#include "hostile.h"

/* Returns a number of /proc/self/fdinfo of a new file of the user; -1 if it has none. */
int shown(unsigned int user, const char *name);
/* Returns the number that stays shown for some seconds; 0 as soon as it is 0. */
int left(unsigned int user, const char *name);

#endif
