/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of the connection manager, as they are sent (IBTA 12.6). */
#ifndef MAD_H
#define MAD_H

#include <stdbool.h>
#include <stdint.h>

#define MAD_LEN 256
#define BODY 24
#define LOCAL_ID BODY
#define REMOTE_ID (BODY + 4)

enum attribute {
	REQ = 0x10, MRA, REJ, REP, RTU, DREQ, DREP,
};

/* A number in the order of the network. */
void put(uint8_t *to, uint64_t value, int bytes);
uint64_t get(const uint8_t *from, int bytes);

/* The GID of an IP address. */
void gid_of(uint8_t *gid, const char *address);
bool is_v4(const uint8_t *gid);

/* A message with these communication ids, and no other fields. */
void mad_init(uint8_t *mad, enum attribute attribute, uint32_t local, uint32_t remote);

struct forged_req {
	const uint8_t *src, *dst;
	uint32_t comm_id, qpn;
	uint64_t guid;
	uint16_t port;
	uint8_t timeout;	/* the time code for the REP */
};

void req_init(uint8_t *mad, const struct forged_req *req);

#endif
