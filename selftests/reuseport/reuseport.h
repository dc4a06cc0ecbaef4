/* SPDX-License-Identifier: GPL-2.0 */
/* Servers of several processes at one address, and the clients that connect to it. */
#ifndef REUSEPORT_H
#define REUSEPORT_H

#include "../abi/abi.h"

#define MOST_WORKERS 64
#define BACKLOG 1024
/* The reason of the workers that refuse: "vendor option not supported", which nobody else gives. */
#define REFUSED 35

/* The way in which a worker serves. */
struct role {
	int index;		/* its place in the shared state */
	int backlog;
	bool shares;		/* its listener shares the address */
	bool sleeps;		/* it reads no request */
	bool dawdles;		/* it reads requests, and does nothing about them */
	bool refuses;		/* it accepts no request */
};

/* The state that all processes share. */
struct shared {
	struct {
		unsigned int listens, requests;
	} worker[MOST_WORKERS];
};

extern struct shared *shared;

/* Starts a worker in the namespace "peer", which listens when this returns. */
pid_t start_worker(const struct role *role, const union addr *address);
/* Ends a worker: it stops to listen, goes on with the connections that it has accepted, and exits. */
void retire_worker(pid_t pid);
/* Kills a worker. */
void kill_worker(pid_t pid);

/* Clients that connect and disconnect, some at a time. */
struct clients {
	int fd;
	union addr address;
	unsigned int begun;	/* connections that were begun */
	unsigned int connected;	/* accepted by the server, and by the client */
	unsigned int refused;	/* by a worker that refuses all */
	unsigned int failed;	/* that no server has accepted, for another reason */
	unsigned int lost;	/* that a server has accepted and that ended before the client knew */
};

/*
 * Connects up to as many as "total" and "at_a_time" say, until there is nothing to do or a moment (of now_ms()) has come.
 * Returns whether all have ended.
 */
bool run_clients(struct clients *clients, unsigned int total, unsigned int at_a_time, uint64_t until);

#endif
