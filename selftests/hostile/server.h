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

/*
 * Returns a server that accepts all requests to the listeners of a file, each after a pause, until the process ends. Its
 * memory is never freed: at the end of the process it may still count a request whose client is served already.
 */
struct server *accept_from(int fd, unsigned int pause_us);

#endif
