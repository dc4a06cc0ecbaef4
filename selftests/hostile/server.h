/* SPDX-License-Identifier: GPL-2.0 */
/* A server that accepts all requests. */
#ifndef SERVER_H
#define SERVER_H

#include "hostile.h"

struct server {
	int fd;
	unsigned int pause_us;	/* before it accepts a request */
	_Atomic unsigned int accepted;
};

/* Accepts all requests to the listeners of the server's file, until the process ends. */
void accept_from(struct server *server);

#endif
