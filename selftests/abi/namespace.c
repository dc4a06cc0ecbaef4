// SPDX-License-Identifier: GPL-2.0
/* The network namespaces of this process. */
#include <sched.h>

#include "abi.h"

static int home = -1;

void in_peer(void)
{
	int peer = open("/run/netns/peer", O_RDONLY | O_CLOEXEC);

	if (home < 0)
		home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	REQUIRE(peer >= 0);
	REQUIRE_EQ(0, setns(peer, CLONE_NEWNET));
	close(peer);
}

void at_home(void)
{
	REQUIRE_EQ(0, setns(home, CLONE_NEWNET));
}
