/* SPDX-License-Identifier: GPL-2.0 */
/* Listeners that share their address (REUSEPORT), and clients that ask these. */
#ifndef MEMBERS_H
#define MEMBERS_H

#include "abi.h"

#define MEMBERS 2
/* Requests of a test: that all go to one member happens once in 30,000 times. */
#define REQUESTS 16

struct members {
	uint16_t ps;
	union addr addr;
	int backlog;		/* of the first member; REQUESTS for the others */
	const char *received;	/* counter of the requests that the members' port has received */
	int sfd[MEMBERS], cfd;
	uint32_t listener[MEMBERS];
	int told;		/* requests that the second member was told of */
};

/* An id that shares its address. */
uint32_t sharer(int f, uint16_t ps, uint8_t qp_type);
long share(int f, uint32_t id, unsigned int on);

/* The members listen, in the namespace where the caller is, each with a file of its own. */
void members_listen(struct members *m);
/*
 * REQUESTS clients ask from "src", or from wherever it is; none repeats its request. When this returns all have arrived, and the
 * second member has read and accepted its own. There are some that the first one has not read.
 */
void members_asked(struct members *m, const union addr *src);
/*
 * The first member goes, with its file or alone. The second one is told of the requests, and accepts them; all clients are told
 * that, and nothing else.
 */
void members_move(struct members *m, bool closes);

#endif
