/* SPDX-License-Identifier: GPL-2.0 */
/* The wire between the namespaces, with the frames of RoCE v2 that pass there. */
#ifndef WIRE_H
#define WIRE_H

#include "ends.h"
#include "mad.h"

/* The device at one end of the wire. */
#define DEVICE_AT(far) ((far) ? "rxe1" : "rxe0")

/* Opens a socket for all frames that pass one end: that in the namespace "peer" if "far" is set, else that here. */
int wire(bool far);

/* A sender at one end of the wire, to the device at the other end. */
struct forger {
	bool far;
	int fd;
	uint64_t before, sent;
};

void forger_init(struct forger *f, bool far);
/* Sends a message from an address of anybody. It waits until most of the messages before have been received. */
void forge(struct forger *f, const uint8_t *src, const uint8_t *dst, const uint8_t *mad);
/* Sends a request, of which the source is set to the address that is "number" after this first one. */
void forge_req(struct forger *f, struct forged_req *req, const char *first, uint32_t number);
/*
 * Starts a process that forges one message after the other, as fast as they are received, until kill_child(). "next"
 * sends the one with this number. Returns when so many have been sent. share() comes before it.
 */
pid_t flooder(bool far, void (*next)(struct forger *f, const struct hosts *h, uint32_t number), const struct hosts *h,
	      uint64_t sent);
/* Returns the number of messages that have got lost. It waits for those that may still come. */
int forger_lost(const struct forger *f);

/* A message that has passed. */
struct seen {
	bool outgoing;		/* it was sent at this end */
	uint8_t dst[16];
	enum attribute attribute;
	uint32_t local_id;
};

/* Reads the next message, if there is one. */
bool sniff(int fd, struct seen *seen);

#endif
