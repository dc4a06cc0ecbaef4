/* SPDX-License-Identifier: GPL-2.0 */
/* The wire between the namespaces, with the frames of RoCE v2 that pass there. */
#ifndef WIRE_H
#define WIRE_H

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
