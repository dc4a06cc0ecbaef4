// SPDX-License-Identifier: GPL-2.0
/* One end of a conversation: what it is told, and what it does. */
#include "cmid.h"

static u32 next_qpn = 0x2000;

void init_side(struct side *side)
{
	memset(side, 0, sizeof(*side));
	init_waitqueue_head(&side->wait);
	side->on = -1;
	side->qpn = next_qpn++;
}

static int data_len(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	bool is_datagram = id->qp_type == IB_QPT_UD;

	/* As much as was said, not as much as could be. */
	if (id->device && rdma_protocol_iwarp(id->device, id->port_num))
		return event->param.conn.private_data_len;
	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST: return is_datagram ? SIDR_REQ_DATA : REQ_DATA;
	case RDMA_CM_EVENT_CONNECT_RESPONSE: return REP_DATA;
	case RDMA_CM_EVENT_REJECTED: return REJ_DATA;
	default: return 0;
	}
}

/* Where an identifier is when it is told of an event. */
static enum situation situation_of(struct side *side, enum rdma_cm_event_type event)
{
	if (side->id->qp_type == IB_QPT_UD)
		return ANY;
	switch (event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED: return RESOLVED;
	case RDMA_CM_EVENT_ADDR_ERROR: return BOUND;
	case RDMA_CM_EVENT_ROUTE_RESOLVED: return ROUTE_RESOLVED;
	case RDMA_CM_EVENT_CONNECT_REQUEST: return REQ_RCVD;
	case RDMA_CM_EVENT_CONNECT_RESPONSE: return RESPONSE;
	case RDMA_CM_EVENT_ESTABLISHED: return ESTABLISHED;
	case RDMA_CM_EVENT_DISCONNECTED: return DISCONNECTING;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT: return DISCONNECTED;
	case RDMA_CM_EVENT_REJECTED: return REJECTED;
	case RDMA_CM_EVENT_UNREACHABLE: return UNREACHABLE;
	default: return ANY;
	}
}

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct side *side = id->context;
	int len = data_len(id, event), ret = 0;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		CHECK(side->id != id);
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
	wake_up_all(&side->wait);
	side->last = *event;
	if (len) {
		IS(event->param.conn.private_data_len, len);
		memcpy(side->data, event->param.conn.private_data, len);
	}
	if (side->calls)
		calls_at(side, situation_of(side, event->event), true, __LINE__);
	if (side->on == event->event)
		ret = side->act(side);
	/* Whoever comes in at the same time is seen. */
	usleep_range(500, 1000);
	if (ret)
		side->gone = true;
	if (!WARN_ON(side->told == EVENTS)) {
		side->events[side->told].event = event->event;
		side->events[side->told].status = event->status;
	}
	smp_store_release(&side->told, side->told + 1);
	wake_up_all(&side->wait);
	atomic_dec(&side->inside);
	return ret;
}

int create(struct side *side, enum rdma_ucm_port_space ps, enum ib_qp_type type)
{
	init_side(side);
	side->id = rdma_create_id(&init_net, handler, side, ps, type);
	return PTR_ERR_OR_ZERO(side->id);
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
	if (side->id->qp)
		rdma_destroy_qp(side->id);
	rdma_destroy_id(side->id);
	side->gone = true;
}

/* Longer than the connection manager tries. */
static bool is_told(struct side *side)
{
	int seen = side->seen;

	/* Not as a task that hangs. */
	wait_event_idle_timeout(side->wait, smp_load_acquire(&side->told) > seen, 120 * HZ);
	return smp_load_acquire(&side->told) > seen;
}

/* Whether the next event of a side is this one, which another message may have overtaken. */
bool comes(struct side *side, enum rdma_cm_event_type event)
{
	return is_told(side) && side->events[side->seen].event == event;
}

/* The next event of a side is this one. */
bool expect_at(struct side *side, enum rdma_cm_event_type event, int status, int line)
{
	int seen = side->seen;

	if (!is_told(side)) {
		pr_err("cmid: line %d: no event %d\n", line, event);
		good = false;
		return false;
	}
	side->seen++;
	if (side->events[seen].event != event || side->events[seen].status != status) {
		pr_err("cmid: line %d: event %d, status %d, not %d, %d\n", line,
		       side->events[seen].event, side->events[seen].status, event, status);
		good = false;
		return false;
	}
	return true;
}

/* Nothing has happened that was not expected. */
bool is_quiet(struct side *side)
{
	msleep(20);
	return IS(side->told, side->seen);
}

struct sockaddr *at(u32 address, u16 port)
{
	static struct sockaddr_in places[4];
	static unsigned int next;
	struct sockaddr_in *place = &places[next++ % ARRAY_SIZE(places)];

	*place = (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(address),
	};
	return (struct sockaddr *)place;
}

struct rdma_conn_param param_of(struct side *side)
{
	return (struct rdma_conn_param) {
		.private_data = "said",
		.private_data_len = 5,
		.responder_resources = side->active ? 3 : 4,
		.initiator_depth = side->active ? 5 : 2,
		.flow_control = 1,
		.retry_count = 6,
		.rnr_retry_count = 7,
		.qp_num = side->qpn,
	};
}

int bind(struct side *side)
{
	return rdma_bind_addr(side->id, at(address, 0));
}

int resolve(struct side *side)
{
	return rdma_resolve_addr(side->id, NULL, at(address, port), 2000);
}

int resolve_route(struct side *side)
{
	return rdma_resolve_route(side->id, 2000);
}

int connect(struct side *side)
{
	struct rdma_conn_param param = param_of(side);

	return rdma_connect(side->id, &param);
}

/* With the lock of the handler held, as it is in a callback. */
int connect_locked(struct side *side)
{
	struct rdma_conn_param param = param_of(side);

	return rdma_connect_locked(side->id, &param);
}

int connect_ece(struct side *side)
{
	struct rdma_conn_param param = param_of(side);
	struct rdma_ucm_ece ece = { .vendor_id = 0x123456, .attr_mod = 0x9abcdef0 };

	return rdma_connect_ece(side->id, &param, &ece);
}

int accept(struct side *side)
{
	struct rdma_conn_param param = param_of(side);

	return rdma_accept(side->id, &param);
}

int accept_ece(struct side *side)
{
	struct rdma_conn_param param = param_of(side);
	struct rdma_ucm_ece ece = { .vendor_id = 0x654321, .attr_mod = 0xfedcba9 };

	return rdma_accept_ece(side->id, &param, &ece);
}

int accept_locked(struct side *side)
{
	int ret;

	rdma_lock_handler(side->id);
	ret = accept(side);
	rdma_unlock_handler(side->id);
	return ret;
}

int accept_nothing(struct side *side)
{
	return rdma_accept(side->id, NULL);
}

/* The answer to an answer. */
int confirm(struct side *side)
{
	int ret;

	rdma_lock_handler(side->id);
	ret = accept_nothing(side);
	rdma_unlock_handler(side->id);
	return ret;
}

int reject(struct side *side)
{
	return rdma_reject(side->id, "no", 3, IB_CM_REJ_CONSUMER_DEFINED);
}

int disconnect(struct side *side)
{
	return rdma_disconnect(side->id);
}

int create_qp(struct side *side)
{
	struct ib_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = side->id->qp_type,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
	};

	return rdma_create_qp(side->id, pd, &attr);
}

int listen(struct side *side)
{
	return rdma_listen(side->id, 4);
}

int refuse(struct side *side)
{
	return -1;
}
