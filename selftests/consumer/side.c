// SPDX-License-Identifier: GPL-2.0
/* One end of a conversation: what it is told, and what it says. */
#include "ibcm.h"

static u32 next_qpn = 0x1000;

void init_side(struct side *side)
{
	memset(side, 0, sizeof(*side));
	init_waitqueue_head(&side->wait);
	side->on = -1;
	side->qpn = next_qpn++;
	side->psn = side->qpn + 0x100000;
}

static int data_len(enum ib_cm_event_type event)
{
	switch (event) {
	case IB_CM_REQ_RECEIVED: return IB_CM_REQ_PRIVATE_DATA_SIZE;
	case IB_CM_REP_RECEIVED: return IB_CM_REP_PRIVATE_DATA_SIZE;
	case IB_CM_RTU_RECEIVED: return IB_CM_RTU_PRIVATE_DATA_SIZE;
	case IB_CM_DREQ_RECEIVED: return IB_CM_DREQ_PRIVATE_DATA_SIZE;
	case IB_CM_DREP_RECEIVED: return IB_CM_DREP_PRIVATE_DATA_SIZE;
	case IB_CM_REJ_RECEIVED: return IB_CM_REJ_PRIVATE_DATA_SIZE;
	case IB_CM_SIDR_REQ_RECEIVED: return IB_CM_SIDR_REQ_PRIVATE_DATA_SIZE;
	case IB_CM_SIDR_REP_RECEIVED: return IB_CM_SIDR_REP_PRIVATE_DATA_SIZE;
	default: return 0;
	}
}

int handler(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	struct side *side = id->context;
	bool request = event->event == IB_CM_REQ_RECEIVED ||
		       event->event == IB_CM_SIDR_REQ_RECEIVED;
	int len = data_len(event->event), ret = 0;

	if (request) {
		CHECK(!side->gone);
		/* Nobody waits for it, or it is a copy that was late: whoever had the first has gone. */
		if (!side->child || side->child->id)
			return 1;
		side = side->child;
		side->id = id;
		id->context = side;
	}
	CHECK(side->id == id);
	CHECK(!side->gone);
	IS(atomic_inc_return(&side->inside), 1);
	side->last = *event;
	if (len)
		memcpy(side->data, event->private_data, len);
	if (event->event == IB_CM_REQ_RECEIVED)
		side->path = *event->param.req_rcvd.primary_path;
	if (event->event == IB_CM_REJ_RECEIVED)
		memcpy(side->info, event->param.rej_rcvd.ari, sizeof(side->info));
	if (event->event == IB_CM_SIDR_REP_RECEIVED)
		memcpy(side->info, event->param.sidr_rep_rcvd.info, sizeof(side->info));
	if (side->on == event->event)
		ret = side->act(side);
	/* Whoever comes in at the same time is seen. */
	usleep_range(500, 1000);
	if (ret)
		side->gone = true;
	if (!WARN_ON(side->told == EVENTS))
		side->events[side->told] = event->event;
	smp_store_release(&side->told, side->told + 1);
	wake_up_all(&side->wait);
	atomic_dec(&side->inside);
	return ret;
}

/* The next event of a side is this one. */
bool expect_at(struct side *side, enum ib_cm_event_type event, int line)
{
	if (!wait_event_timeout(side->wait, smp_load_acquire(&side->told) > side->seen,
				20 * HZ)) {
		pr_err("ibcm: line %d: no event %d\n", line, event);
		good = false;
		return false;
	}
	if (side->events[side->seen] != event) {
		pr_err("ibcm: line %d: event %d, not %d\n", line, side->events[side->seen], event);
		good = false;
		return false;
	}
	side->seen++;
	return true;
}
void end(struct side *side)
{
	if (IS_ERR_OR_NULL(side->id))
		return;
	if (side->gone) {
		/* The callback that ended it may not have come to its own end. */
		while (atomic_read(&side->inside))
			usleep_range(100, 200);
		return;
	}
	ib_destroy_cm_id(side->id);
	side->gone = true;
}

int create(struct side *side)
{
	init_side(side);
	side->id = ib_create_cm_id(dev, handler, side);
	return PTR_ERR_OR_ZERO(side->id);
}

static void fill_path(struct sa_path_rec *path)
{
	memset(path, 0, sizeof(*path));
	path->rec_type = SA_PATH_REC_TYPE_ROCE_V2;
	path->sgid = gid->gid;
	path->dgid = gid->gid;
	path->pkey = cpu_to_be16(0xffff);
	path->hop_limit = 64;
	path->traffic_class = 8;
	path->reversible = 1;
	path->numb_path = 1;
	path->mtu_selector = 2;
	path->mtu = IB_MTU_1024;
	path->packet_life_time_selector = 2;
	path->packet_life_time = 14;
	path->roce.route_resolved = true;
	ether_addr_copy(path->roce.dmac, mac);
}

void fill_request(struct request *req, struct side *side)
{
	memset(req, 0, sizeof(*req));
	fill_path(&req->path);
	memset(req->data, 0xa1, sizeof(req->data));
	req->param = (struct ib_cm_req_param) {
		.primary_path = &req->path,
		.ppath_sgid_attr = gid,
		.service_id = cpu_to_be64(service),
		.qp_num = side->qpn,
		.qp_type = IB_QPT_RC,
		.starting_psn = side->psn,
		.private_data = req->data,
		.private_data_len = IB_CM_REQ_PRIVATE_DATA_SIZE,
		.responder_resources = 3,
		.initiator_depth = 5,
		.remote_cm_response_timeout = 18,
		.local_cm_response_timeout = 18,
		.retry_count = 6,
		.rnr_retry_count = 7,
		.max_cm_retries = 4,
	};
}

int send_req(struct side *side)
{
	struct request req;

	fill_request(&req, side);
	return ib_send_cm_req(side->id, &req.param);
}

int send_rep(struct side *side)
{
	u8 data[IB_CM_REP_PRIVATE_DATA_SIZE];
	struct ib_cm_rep_param param = {
		.qp_num = side->qpn,
		.starting_psn = side->psn,
		.private_data = data,
		.private_data_len = sizeof(data),
		.responder_resources = 4,
		.initiator_depth = 2,
		.rnr_retry_count = 6,
	};

	memset(data, 0xa2, sizeof(data));
	return ib_send_cm_rep(side->id, &param);
}

int send_sidr_req(struct side *side)
{
	struct sa_path_rec path;
	struct ib_cm_sidr_req_param param = {
		.path = &path,
		.sgid_attr = gid,
		.service_id = cpu_to_be64(service),
		.timeout_ms = 1000,
		.private_data = "question",
		.private_data_len = 8,
		.max_cm_retries = 3,
	};

	fill_path(&path);
	return ib_send_cm_sidr_req(side->id, &param);
}

int send_sidr_rep(struct side *side)
{
	struct ib_cm_sidr_rep_param param = {
		.qp_num = side->qpn,
		.qkey = 0x1234567,
		.status = IB_SIDR_SUCCESS,
		.info = "info",
		.info_length = 4,
		.private_data = "answer",
		.private_data_len = 6,
	};

	return ib_send_cm_sidr_rep(side->id, &param);
}

int send_rtu(struct side *side)
{
	return ib_send_cm_rtu(side->id, "rtu", 3);
}

int send_dreq(struct side *side)
{
	return ib_send_cm_dreq(side->id, "dreq", 4);
}

int send_drep(struct side *side)
{
	return ib_send_cm_drep(side->id, "drep", 4);
}

int send_rej(struct side *side)
{
	return ib_send_cm_rej(side->id, IB_CM_REJ_UNSUPPORTED, "ari", 3, "rej", 3);
}

int prepare_mra(struct side *side)
{
	return ib_prepare_cm_mra(side->id);
}

int established(struct side *side)
{
	return ib_cm_notify(side->id, IB_EVENT_COMM_EST);
}

int migrated(struct side *side)
{
	return ib_cm_notify(side->id, IB_EVENT_PATH_MIG);
}

int listen(struct side *side)
{
	return ib_cm_listen(side->id, cpu_to_be64(service + 0x10000));
}

int qp_attr(struct side *side, enum ib_qp_state state, struct ib_qp_attr *attr, int *mask)
{
	memset(attr, 0, sizeof(*attr));
	*mask = 0;
	attr->qp_state = state;
	return ib_cm_init_qp_attr(side->id, attr, mask);
}

int init_attr(struct side *side)
{
	struct ib_qp_attr attr;
	int mask;

	return qp_attr(side, IB_QPS_INIT, &attr, &mask);
}

int rtr_attr(struct side *side)
{
	struct ib_qp_attr attr;
	int mask;

	return qp_attr(side, IB_QPS_RTR, &attr, &mask);
}
