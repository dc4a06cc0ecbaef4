// SPDX-License-Identifier: GPL-2.0
/* Listeners that share their address over InfiniBand, of which one goes. */
#include "ib.h"
#include "members.h"

#define PORT 7650
#define RECEIVED "/sys/class/infiniband/ib_b/ports/1/cm_rx_msgs/"

/* The first of two goes, and its requests with it: with its file or alone. */
static void member_goes(uint16_t ps, const union addr *a, const union addr *src, bool closes)
{
	struct members m = {
		.ps = ps, .addr = *a, .backlog = REQUESTS,
		.received = ps == PS_UDP ? RECEIVED "sidr_req" : RECEIVED "req",
	};

	/* Requests to native addresses are of the first namespace. */
	if (!src)
		in_peer();
	members_listen(&m);
	if (!src)
		at_home();
	members_asked(&m, src);
	members_move(&m, closes);
}

TEST(ib, shared_ipv4)
{
	union addr a = addr4(PEER4, PORT);

	need_ib();
	member_goes(PS_TCP, &a, NULL, true);
}

TEST(ib, shared_ipv6_datagrams)
{
	union addr a = addr6(PEER6, PORT);

	need_ib();
	member_goes(PS_UDP, &a, NULL, false);
}

TEST(ib, shared_native)
{
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_TCP + PORT, PKEY);
	src = native("ib_a", SID_TCP, PKEY);
	member_goes(PS_TCP, &a, &src, false);
}

TEST(ib, shared_native_datagrams)
{
	union addr a, src;

	need_ib();
	a = native("ib_b", SID_UDP + PORT, PKEY);
	src = native("ib_a", SID_UDP, PKEY);
	member_goes(PS_UDP, &a, &src, true);
}
