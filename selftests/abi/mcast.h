/* SPDX-License-Identifier: GPL-2.0 */
/* The functions that the tests of multicast groups share. */
#ifndef MCAST_H
#define MCAST_H

#include "abi.h"

#define GROUP "239.1.2.3"
#define FULL 0
#define SEND_ONLY 1
#define QKEY 0x01234567	/* of datagrams that agreed on no other */
#define ENOTSUPP 524	/* of the kernel, not for programs */

/* A datagram id, bound to ADDR4. */
uint32_t datagram_id(int f, uint64_t uid);

/* Each gives the number of the membership. */
long join(int f, uint32_t id, uint64_t uid, const union addr *a, uint16_t flags);
long join4(int f, uint32_t id, uint64_t uid, const char *ip, uint16_t flags);
long join_ip(int f, uint32_t id, uint64_t uid, const union addr *a);
/* With any size of address and answer. */
long join_sized(int f, uint32_t id, uint64_t uid, const union addr *a, uint16_t size,
		uint16_t flags, void *resp, uint16_t out);
/* The number of events that were read from the membership. */
long leave(int f, uint32_t mc);

/* The netdev with ADDR4. */
const char *netdev4(void);
/* Returns the number of memberships of this interface, or another, in an IPv4 group. */
long igmp(const char *group);
long igmp_at(const char *netdev, const char *group);

/* Returns the number of memberships of an interface in an IPv6 group. */
long mld_at(const char *netdev, const char *group);

/* The event of having joined a group, to the last byte. */
void check_joined(const struct rdma_ucm_event_resp *ev, uint32_t mc, uint64_t uid,
		  const uint8_t *dgid);

#endif
