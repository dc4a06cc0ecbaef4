/* SPDX-License-Identifier: GPL-2.0 */
/* Connections of real queue pairs between the namespaces. */
#ifndef ENDS_H
#define ENDS_H

#include <infiniband/verbs.h>

#include "hostile.h"

struct ibv_context *open_device(const char *name);

/* The addresses of the two hosts: here, and in the namespace "peer". */
struct hosts {
	uint8_t gid[2][16];
	uint64_t guid[2];
};

/* Returns the hosts with their addresses of a family, "4" or "6". */
struct hosts hosts(const char *family);
/* Creates a listener at one of the hosts. Returns its address. */
union addr listen_at(int fd, const struct hosts *h, bool far);
/* Creates an id at one of the hosts, with a route to an address. */
uint32_t client_at(int fd, const union addr *dst, bool far);
/* Creates an id in the namespace "peer", with a route from an address of it to another one. */
uint32_t client_from(int fd, const union addr *src, const union addr *dst);
/* Returns when a host has handled the messages that it has received: a request to it comes after them. */
void settle(const struct hosts *h, bool far);

/* An end of a connection. The passive end is here, and the active one, the second of two, in the namespace "peer". */
struct end {
	int fd;
	uint32_t id;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t buffer[2];
};

/* Connects two ends. Returns the address of the listener. */
union addr connect_ends(struct end ends[2], const struct hosts *h);
/* Sends data from each end to the other. Returns whether it arrives. */
bool exchange_data(struct end ends[2]);
/* Returns the number of ends that have an unread event. */
int ended(struct end ends[2]);
/* Disconnects one end, and then the other. Returns whether each is told of the other. */
bool close_ends(struct end ends[2]);

#endif
