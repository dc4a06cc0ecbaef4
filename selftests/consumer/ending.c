// SPDX-License-Identifier: GPL-2.0
/* Rejected, or destroyed. */
#include "ibcm.h"

int refuse(struct side *side)
{
	return -1;
}

static int reject_and_destroy(struct side *side)
{
	IS(send_rej(side), 0);
	return 1;
}

void rejections(void)
{
	struct ib_cm_rej_event_param *rej = &a.last.param.rej_rcvd;

	/* By what the callback returns. */
	if (!start())
		return;
	b.on = IB_CM_REQ_RECEIVED;
	b.act = refuse;
	IS(send_req(&a), 0);
	if (expect(&a, IB_CM_REJ_RECEIVED))
		IS(rej->reason, IB_CM_REJ_CONSUMER_DEFINED);
	is_in(&a, IDLE);
	stop();

	/* In words. */
	if (!start())
		return;
	b.on = IB_CM_REQ_RECEIVED;
	b.act = reject_and_destroy;
	IS(send_req(&a), 0);
	if (expect(&a, IB_CM_REJ_RECEIVED)) {
		IS(rej->reason, IB_CM_REJ_UNSUPPORTED);
		IS(rej->ari_length, 3);
		CHECK(!memcmp(a.info, "ari", 4));
		CHECK(!memcmp(a.data, "rej", 4));
	}
	stop();

	/* Of a REP, and by the passive end after its REP. */
	if (until_rep()) {
		IS(send_rej(&a), 0);
		IS(a.id->state, IB_CM_IDLE);
		expect(&b, IB_CM_REJ_RECEIVED);
		IS(b.id->state, IB_CM_IDLE);
	}
	stop();
	if (until_rep()) {
		IS(send_rej(&b), 0);
		is_in(&b, TIMEWAIT);
		if (expect(&a, IB_CM_REJ_RECEIVED))
			is_in(&a, TIMEWAIT);
		expect(&b, IB_CM_TIMEWAIT_EXIT);
	}
	stop();
}

/* Whoever destroys an identifier is not told of it; the peer is. */
void destruction(void)
{
	if (start() && IS(send_req(&a), 0) && expect(&b, IB_CM_REQ_RECEIVED)) {
		end(&a);
		if (expect(&b, IB_CM_REJ_RECEIVED))
			IS(b.last.param.rej_rcvd.reason, IB_CM_REJ_TIMEOUT);
	}
	stop();
	if (start() && IS(send_req(&a), 0) && expect(&b, IB_CM_REQ_RECEIVED)) {
		/* The listener may go before. */
		end(&l);
		end(&b);
		if (expect(&a, IB_CM_REJ_RECEIVED))
			IS(a.last.param.rej_rcvd.reason, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	if (until_rep()) {
		end(&a);
		if (expect(&b, IB_CM_REJ_RECEIVED))
			IS(b.last.param.rej_rcvd.reason, IB_CM_REJ_CONSUMER_DEFINED);
	}
	stop();
	if (until_rep()) {
		end(&b);
		expect(&a, IB_CM_REJ_RECEIVED);
	}
	stop();
	if (until_established()) {
		end(&a);
		if (expect(&b, IB_CM_DREQ_RECEIVED))
			is_in(&b, DREQ_RCVD);
	}
	stop();
	if (until_established() && IS(send_dreq(&a), 0)) {
		end(&a);
		expect(&b, IB_CM_DREQ_RECEIVED);
	}
	stop();
	if (until_established() && IS(send_dreq(&a), 0) && expect(&b, IB_CM_DREQ_RECEIVED)) {
		end(&b);
		expect(&a, IB_CM_DREP_RECEIVED);
		is_in(&a, TIMEWAIT);
	}
	stop();
}

/* The peer may have gone. */
static int try_rep(struct side *side)
{
	send_rep(side);
	return 0;
}

static int try_rtu(struct side *side)
{
	send_rtu(side);
	return 0;
}

/* Connections that are made and destroyed at once, while messages are on their way. */
void haste(void)
{
	int i;

	for (i = 0; i < 200 && good; i++) {
		if (!start())
			return;
		b.on = IB_CM_REQ_RECEIVED;
		b.act = try_rep;
		a.on = IB_CM_REP_RECEIVED;
		a.act = try_rtu;
		IS(send_req(&a), 0);
		usleep_range(i * 20, i * 20 + 50);
		end(&l);
		end(&a);
		/* Whoever has seen the request has it to the end. */
		end(&b);
	}
}
