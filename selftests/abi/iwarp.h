/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections over iWARP: device siw0 over interface w0, which the suite iwarp
 * makes. The iWARP CM takes queue pairs by number, so these are real ones.
 */
#ifndef IWARP_H
#define IWARP_H

#include <infiniband/verbs.h>

#include "mcast.h"

#define IWARP4 "10.80.0.1"
#define IWARP6 "fd80::1"

/* A connection, step by step. */
struct ends {
	int s, c;
	uint32_t listener, server, client;
	struct rdma_ucm_conn_param sparam, cparam;
	struct rdma_ucm_event_resp request, sev, cev;
};

/* Open for verbs after need_device(). */
extern struct ibv_context *device;

static inline int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

void need_device(void);
struct ibv_qp *new_qp(void);
/* The removal of a device waits for those who have it open for verbs, also by memory. */
void release_device(void);
/* Parameters with a queue pair of one's own. */
struct rdma_ucm_conn_param with_qp(void);
void set_data(struct rdma_ucm_conn_param *param, uint8_t len);
void check_data(const struct rdma_ucm_event_resp *ev, uint8_t len);
/* The GID of an interface: its hardware address. */
void mac_gid(const char *name, uint8_t gid[16]);
uint32_t bound(int f, uint16_t ps, uint16_t port);
uint32_t listening(int f, uint16_t port, int backlog);
uint32_t listening_anywhere(int f, uint16_t port);
/* A client that has asked for a connection. */
uint32_t asking(int f, uint16_t port);
void asked(struct ends *e, uint16_t port);
void established(struct ends *e, uint16_t port);

#endif
