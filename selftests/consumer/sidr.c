// SPDX-License-Identifier: GPL-2.0
/* Questions to a service, and answers. */
#include "ibcm.h"

static int answer_question(struct side *side)
{
	IS(side->last.event, IB_CM_SIDR_REQ_RECEIVED);
	CHECK(side->last.param.sidr_req_rcvd.listen_id == l.id);
	CHECK(side->last.param.sidr_req_rcvd.sgid_attr == gid);
	IS(side->last.param.sidr_req_rcvd.port, gid->port_num);
	IS(side->last.param.sidr_req_rcvd.pkey, 0xffff);
	CHECK(side->last.param.sidr_req_rcvd.service_id == cpu_to_be64(service));
	CHECK(!memcmp(side->data, "question", 9));
	IS(send_sidr_rep(side), 0);
	IS(send_sidr_rep(side), -EINVAL);
	return 0;
}

void questions(void)
{
	struct ib_cm_sidr_rep_event_param *rep = &a.last.param.sidr_rep_rcvd;

	if (!start())
		return;
	b.on = IB_CM_SIDR_REQ_RECEIVED;
	b.act = answer_question;
	IS(send_sidr_req(&a), 0);
	if (expect(&a, IB_CM_SIDR_REP_RECEIVED)) {
		IS(rep->status, IB_SIDR_SUCCESS);
		IS(rep->qpn, b.qpn);
		IS(rep->qkey, 0x1234567);
		CHECK(rep->sgid_attr == gid);
		CHECK(!memcmp(a.info, "info", 5));
		CHECK(!memcmp(a.data, "answer", 7));
	}
	IS(a.id->state, IB_CM_IDLE);
	stop();

	/* Asked and refused by destruction. */
	if (!start())
		return;
	IS(send_sidr_req(&a), 0);
	if (expect(&b, IB_CM_SIDR_REQ_RECEIVED)) {
		is_in(&a, SIDR_REQ_SENT);
		is_in(&b, SIDR_REQ_RCVD);
		end(&b);
		if (expect(&a, IB_CM_SIDR_REP_RECEIVED))
			IS(rep->status, IB_SIDR_REJECT);
	}
	stop();

	/* By what the callback returns. */
	if (!start())
		return;
	b.on = IB_CM_SIDR_REQ_RECEIVED;
	b.act = refuse;
	IS(send_sidr_req(&a), 0);
	if (expect(&a, IB_CM_SIDR_REP_RECEIVED))
		IS(rep->status, IB_SIDR_REJECT);
	stop();

	/* Of nobody. */
	if (IS(create(&a), 0)) {
		IS(send_sidr_req(&a), 0);
		if (expect(&a, IB_CM_SIDR_REP_RECEIVED))
			IS(rep->status, IB_SIDR_UNSUPPORTED);
	}
	end(&a);
}
