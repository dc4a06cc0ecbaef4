/* SPDX-License-Identifier: GPL-2.0 */
/* A consumer of <rdma/rdma_cm.h>: what its tests share. */
#ifndef CMID_TEST_H
#define CMID_TEST_H

#include <linux/delay.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/wait.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>

#include "../consumer/check.h"

#define REQ_DATA 56
#define REP_DATA 196
#define REJ_DATA 148
#define SIDR_REQ_DATA 180
#define SIDR_REP_DATA 136

extern struct ib_device *dev;
extern struct ib_pd *pd;
extern struct ib_cq *cq;
/* The address of the device. */
extern u32 address;

/* How far an identifier has come. */
enum situation {
	NEW, BOUND, QUERY, RESOLVED, ROUTE_QUERY, ROUTE_RESOLVED, LISTENING, REQ_SENT, REQ_RCVD,
	RESPONSE, ACCEPTED, ESTABLISHED, DISCONNECTING, DISCONNECTED, REJECTED, UNREACHABLE, ANY
};

/* One end of a conversation. */
struct side {
	struct rdma_cm_id *id;
	wait_queue_head_t wait;
	int told;
	int seen;
	struct {
		enum rdma_cm_event_type event;
		int status;
	} events[EVENTS];
	struct rdma_cm_event last;
	u8 data[256];
	atomic_t inside;
	bool gone;
	/* Whether all functions are called in each callback. */
	bool calls;
	/* What is to be done in the callback of this event. */
	int on;
	int (*act)(struct side *side);
	/* Which a request is for. */
	struct side *child;
	u32 qpn;
	bool active;
};

/* Two ends of a connection, and the listener of b. */
extern struct side a, b, l;

/* side.c */
void init_side(struct side *side);
int create(struct side *side, enum rdma_ucm_port_space ps, enum ib_qp_type type);
void end(struct side *side);
bool expect_at(struct side *side, enum rdma_cm_event_type event, int status, int line);
bool comes(struct side *side, enum rdma_cm_event_type event);
bool is_quiet(struct side *side);
struct sockaddr *at(u32 address, u16 port);
struct rdma_conn_param param_of(struct side *side);
int bind(struct side *side);
int resolve(struct side *side);
int resolve_route(struct side *side);
int connect(struct side *side);
int connect_locked(struct side *side);
int connect_ece(struct side *side);
int accept(struct side *side);
int accept_ece(struct side *side);
int accept_locked(struct side *side);
int accept_nothing(struct side *side);
int confirm(struct side *side);
int reject(struct side *side);
int disconnect(struct side *side);
int create_qp(struct side *side);
int listen(struct side *side);
int refuse(struct side *side);

#define expect(side, event) expect_at(side, RDMA_CM_EVENT_##event, 0, __LINE__)
#define expect_status(side, event, status) \
	expect_at(side, RDMA_CM_EVENT_##event, status, __LINE__)

/* pair.c */
extern u16 port;
bool listener(enum rdma_ucm_port_space ps, enum ib_qp_type type);
bool start(void);
void stop(void);
bool until_resolved(void);
bool until_route(void);
bool until_request(void);
bool until_response(void);
bool until_accepted(void);
bool until_established(void);
bool until_disconnected(void);

/* states.c */
void calls_at(struct side *side, enum situation situation, bool inside, int line);
#define is_in(side, situation) calls_at(side, situation, false, __LINE__)

/* queue_pair.c */
bool qp_is(struct side *side, enum ib_qp_state state);
bool prepared(void);
bool routed(void);
bool words_begin(void);
int word_receive(struct side *side);
int word_send(struct side *side);
void words_end(void);
void exchange(struct side *from, struct side *to);

/* Tests. */
void unused(void);
void texts(void);
void addresses(void);
void options(void);
void resolution(void);
void listeners(void);
void connection(void);
void in_callbacks(void);
void parameters(void);
void rejections(void);
void extensions(void);
void early_data(void);
void handler_lock(void);
void queue_pairs(void);
void queue_pair_states(void);
void returns(void);
void destruction(void);
void silence_begins(void);
void silence_ends(void);
void haste(void);
void datagrams(void);
void groups(void);
void iwarp_connection(void);
void iwarp_at_once(void);
void iwarp_rejections(void);
void iwarp_wildcard(void);
void iwarp_ends(void);
void iwarp_haste(void);

#endif
