/* SPDX-License-Identifier: GPL-2.0 */
/* The declarations that the parts of cmstorm share. */
#ifndef CMSTORM_H
#define CMSTORM_H

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdint.h>

/* The way in which the connections end, which is timed. */
enum finish {
	FINISH_NONE,		/* the process ends */
	FINISH_DISCONNECT,	/* each is disconnected and destroyed */
	FINISH_DESTROY,		/* each is destroyed */
	FINISH_CLOSE,		/* the channel is closed with all of them */
};

struct options {
	const char *address;	/* where the server listens */
	const char *source;	/* the client's own address; NULL: any */
	const char *dead;	/* a host that never answers; NULL: none */
	uint16_t port;		/* the first of them */
	int ports;
	int connections;	/* that are timed */
	int flight;		/* at most so many under way at once */
	int open;		/* that are made before, and stay */
	int dead_count;		/* connects to the dead host that are under way */
	int backlog;
	int accept_delay;	/* us before each accept */
	int resolve_timeout;	/* ms, per step */
	int seconds;		/* a round that takes longer is given up; 0: never */
	int pace;		/* us from one start to the next; 0: at once */
	uint32_t qpn;		/* the first number of the imagined QPs */
	bool qp;		/* real QPs */
	int numbers;		/* real QPs that are only named, one after the other; 0: imagined ones */
	bool quantiles;		/* report 101 of them */
	bool hold;		/* wait for a line of standard input before the end */
	bool steps;		/* what is counted is each message of a connection, apart */
	enum finish finish;
};

/* Times in ns by the monotonic clock. */
uint64_t now_ns(void);

/*
 * The code between these two is counted by the profiler of tools/guest --profile. It knows them by
 * their bytes; they are eight-byte nops.
 */
static inline void mark_begin(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x43, 0x4d, 0x53, 0x01" ::: "memory");
}

static inline void mark_end(void)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00, 0x43, 0x4d, 0x53, 0x02" ::: "memory");
}

/*
 * With --steps: what the last step has begun comes to its end, and what is counted apart ends; then
 * the next is begun.
 */
void end_step(const struct options *options);
void next_step(const struct options *options);

/* Say why and exit with status 1; with the error number's text. */
void die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
void die_errno(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Resolve "address" and "port", or die. */
void socket_address(const char *address, uint16_t port, struct sockaddr_storage *out);

/* A real RC QP for an id, on completion queues that all ids of a device share. */
int make_qp(struct rdma_cm_id *id);

/* Make real QPs of a device whose numbers are to be named, before what is timed begins. */
void make_numbers(struct ibv_context *verbs, int count);

/* The number that connection "i" names, or "imagined" if none were made. */
uint32_t number_of(uint32_t i, uint32_t imagined);

/* Returns the status of the process. */
int run_client(const struct options *options);
int run_server(const struct options *options);
int run_ids(const struct options *options);

/* Listen; returns when the listener is ready. Serves in a thread until the process ends. */
void start_server(const struct options *options);

#endif
