/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Connections over InfiniBand: the devices ib_a (LID 1, here) and ib_b (LID 2), whose IPoIB
 * interface is in the namespace "peer", and a subnet administrator, which selftests/lib/softib.sh
 * makes.
 */
#ifndef IB_H
#define IB_H

#include "mcast.h"

#define IB4 "10.78.0.1"		/* of ib_a's IPoIB */
#define IB6 "fd78::1"
#define PEER4 "10.78.0.2"	/* of ib_b's */
#define PEER6 "fd78::2"
#define PKEY 0xffff
#define OTHER_PKEY 0x8001	/* at the index 1 of each port; no device of soft-RoCE has it */
#define IPOIB_QKEY 0x0b1b	/* of the broadcast group */
#define SID_IB 0x013f0000ull
#define SID_TCP 0x01060000ull
#define SID_UDP 0x01110000ull

#define EV_ADDRINFO_RESOLVED 16
#define EV_ADDRINFO_ERROR 17

/* enum ib_qp_state */
enum { RESET, INIT, RTR, RTS, SQD, SQE, ERR };

static inline int fd(void)
{
	return cm_open(O_RDWR | O_NONBLOCK);
}

/* The devices are there, and everything is answered; or the test is skipped. */
void need_ib(void);
/* Sets the treatment of requests to the administrator: lines as sa.py has them, none for answers. */
void sa(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The addresses of the only port of a device. */
struct port {
	uint8_t gid[16];
	uint64_t guid;		/* of the node, as in an answer */
	uint32_t lid;
	uint8_t path_bits;	/* the bits that choose one of its LIDs */
};
struct port port_of(const char *device);
/* The name of its IPoIB interface here. */
const char *ipoib_of(const char *device);
/* The address of a port. */
union addr native(const char *device, uint64_t sid, uint16_t pkey);

/* A path as a packed record of the administrator: what sa.py answers. */
struct record {
	uint8_t r[64];
};
struct record record_of(const char *src, const char *dst, uint64_t sid, uint16_t pkey);
long set_path(int f, uint32_t id, const struct record *r);
struct record path_shown(int f, uint32_t id);
/* A route that is shown, both ways, as this path. */
void check_path(const char *file, int line, int f, uint32_t id, const struct record *want);
#define CHECK_PATH(f, id, want) check_path(__FILE__, __LINE__, f, id, want)
/* No path is shown, but both ends. */
void check_ends(const char *file, int line, int f, uint32_t id, const uint8_t *sgid, const uint8_t *dgid,
		uint16_t pkey);
#define CHECK_ENDS(f, id, sgid, dgid, pkey) check_ends(__FILE__, __LINE__, f, id, sgid, dgid, pkey)
/* The device is that, and the ends are as QUERY has them for an address of IP. */
void check_port(const char *file, int line, int f, uint32_t id, const char *device, const uint8_t *dgid,
		uint64_t sid, uint64_t dsid);
#define CHECK_PORT(f, id, device, dgid, sid, dsid) \
	check_port(__FILE__, __LINE__, f, id, device, dgid, sid, dsid)

/* The event as a whole: nothing but this, and no parameters. */
void need_plain(const char *file, int line, int f, uint32_t event, uint32_t id, uint64_t uid, int status);
#define NEED_PLAIN(f, event, id, uid, status) need_plain(__FILE__, __LINE__, f, event, id, uid, status)
/* All commands that need more than a bound id, and that make nothing of this one. */
void check_refused(const char *file, int line, int f, uint32_t id);
#define CHECK_REFUSED(f, id) check_refused(__FILE__, __LINE__, f, id)

/* As those of pair.c, with a listener in the other namespace and a source. */
void ib_listen(struct pair *p, const union addr *a);
void ib_resolved(struct pair *p, const union addr *src);
void ib_routed(struct pair *p, const union addr *src);
void ib_requested(struct pair *p);
void ib_accepted(struct pair *p);
void ib_established(struct pair *p);
/* All of them, up to the route or to the connection, with a listener at this address. */
void ib_pair_routed(struct pair *p, const union addr *a, const union addr *src);
void ib_pair_established(struct pair *p, const union addr *a, const union addr *src);

static inline uint32_t ib_id(int f)
{
	return REQUIRE_ID(create_id(f, PS_TCP, 0x77));
}
/* A listener of its own. */
int ib_listener(uint16_t ps, const union addr *a);
struct ib_uverbs_qp_attr qp_attr(int f, uint32_t id, uint32_t state);
/* The way to a port. */
struct ib_uverbs_ah_attr way_to(const char *device);
/* Private data that no header of addresses begins like. */
void fill_data(struct rdma_ucm_conn_param *param, uint8_t len);
/* The request came as it was sent. */
void check_request(const char *file, int line, const struct pair *p, uint8_t len);
#define CHECK_REQUEST(p, len) check_request(__FILE__, __LINE__, p, len)
/* The active side gets this answer. */
void check_rejected(const char *file, int line, const union addr *dst, const union addr *src, uint16_t ps,
		    int reason);
#define CHECK_REJECTED(dst, src, ps, reason) check_rejected(__FILE__, __LINE__, dst, src, ps, reason)

/* A device of its own that can go, ib_c (LID 3), without and with its interface. */
#define PLUG_IB4 "10.79.0.1"
#define PLUG_IB6 "fd79::1"
void plug_ib(void);
void unplug_ib(void);

/* Services. */
struct service {
	uint32_t id, reserved;
	uint64_t service_id;
	char name[64];
	uint32_t flags, reserved2;
};
#define BY_ID 1
#define BY_NAME 2
long resolve_service(int f, uint32_t id, uint64_t sid, const char *name, uint32_t flags);

#endif
