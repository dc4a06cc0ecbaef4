/* SPDX-License-Identifier: GPL-2.0 */
/* A consumer of <rdma/ib_cm.h>: what its tests share. */
#ifndef IBCM_TEST_H
#define IBCM_TEST_H

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/jiffies.h>
#include <linux/wait.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>

#include "check.h"

extern struct ib_device *dev;
extern const struct ib_gid_attr *gid;
extern u8 mac[ETH_ALEN];
/* Each listener has its own, so that no late request is for another. */
extern u64 service;

/* One end of a conversation. */
struct side {
	struct ib_cm_id *id;
	wait_queue_head_t wait;
	int told;
	int seen;
	enum ib_cm_event_type events[EVENTS];
	struct ib_cm_event last;
	struct sa_path_rec path;
	u8 data[256];
	u8 info[IB_CM_REJ_ARI_LENGTH];
	atomic_t inside;
	bool gone;
	/* What is to be done in the callback of this event. */
	int on;
	int (*act)(struct side *side);
	/* Which a request is for. */
	struct side *child;
	u32 qpn;
	u32 psn;
};

struct request {
	struct sa_path_rec path;
	struct ib_cm_req_param param;
	u8 data[256];
};

/* Two ends of a connection, and the listener of b. */
extern struct side a, b, l;

void init_side(struct side *side);
int handler(struct ib_cm_id *id, const struct ib_cm_event *event);
bool expect_at(struct side *side, enum ib_cm_event_type event, int line);
void end(struct side *side);
int create(struct side *side);
void fill_request(struct request *req, struct side *side);
int send_req(struct side *side);
int send_rep(struct side *side);
int send_sidr_req(struct side *side);
int send_sidr_rep(struct side *side);
int send_rtu(struct side *side);
int send_dreq(struct side *side);
int send_drep(struct side *side);
int send_rej(struct side *side);
int prepare_mra(struct side *side);
int established(struct side *side);
int migrated(struct side *side);
int listen(struct side *side);
int qp_attr(struct side *side, enum ib_qp_state state, struct ib_qp_attr *attr, int *mask);
int init_attr(struct side *side);
int rtr_attr(struct side *side);
bool start(void);
void stop(void);
bool until_rep(void);
bool until_established(void);
void is_in_at(struct side *side, enum ib_cm_state state, int line);
int refuse(struct side *side);

#define expect(side, event) expect_at(side, event, __LINE__)
#define is_in(side, state) is_in_at(side, IB_CM_##state, __LINE__)

void unused(void);
void listeners(void);
void connection(void);
void in_callbacks(void);
void rejections(void);
void notices(void);
void destruction(void);
void parameters(void);
void silence(void);
void questions(void);
void texts(void);
void haste(void);

#endif
