// SPDX-License-Identifier: GPL-2.0
/* Identifiers, listeners and connections. */
#include "ibcm.h"

void unused(void)
{
	if (!IS(create(&a), 0))
		return;
	CHECK(a.id->device == dev);
	CHECK(a.id->context == &a);
	IS(a.id->remote_cm_qpn, 1);
	is_in(&a, IDLE);
	end(&a);
	IS(a.told, 0);
}

static int other_handler(struct ib_cm_id *id, const struct ib_cm_event *event)
{
	return 1;
}

void listeners(void)
{
	struct ib_cm_id *one, *two;
	struct side other;

	if (!start() || !IS(create(&other), 0))
		return;
	IS(be64_to_cpu(l.id->service_id), service);
	is_in(&l, LISTEN);
	IS(ib_cm_listen(other.id, cpu_to_be64(service)), -EBUSY);
	IS(ib_cm_listen(other.id, IB_CM_ASSIGN_SERVICE_ID | cpu_to_be64(7)), -EINVAL);
	IS(other.id->state, IB_CM_IDLE);
	IS(ib_cm_listen(other.id, IB_CM_ASSIGN_SERVICE_ID), 0);
	CHECK((other.id->service_id & IB_SERVICE_ID_AGN_MASK) == IB_CM_ASSIGN_SERVICE_ID);
	end(&other);
	IS(PTR_ERR(ib_cm_insert_listen(dev, handler, cpu_to_be64(service))), -EINVAL);
	IS(PTR_ERR(ib_cm_insert_listen(dev, handler, IB_CM_ASSIGN_SERVICE_ID | cpu_to_be64(7))),
	   -EINVAL);
	stop();

	one = ib_cm_insert_listen(dev, other_handler, cpu_to_be64(service));
	two = ib_cm_insert_listen(dev, other_handler, cpu_to_be64(service));
	if (!CHECK(!IS_ERR(one)) || !CHECK(one == two))
		return;
	IS(PTR_ERR(ib_cm_insert_listen(dev, handler, cpu_to_be64(service))), -EINVAL);
	ib_destroy_cm_id(two);
	/* Refused by the one that is left. */
	if (IS(create(&a), 0) && IS(send_req(&a), 0) && expect(&a, IB_CM_REJ_RECEIVED))
		IS(a.last.param.rej_rcvd.reason, IB_CM_REJ_CONSUMER_DEFINED);
	end(&a);
	ib_destroy_cm_id(one);
	if (IS(create(&a), 0) && IS(send_req(&a), 0) && expect(&a, IB_CM_REJ_RECEIVED))
		IS(a.last.param.rej_rcvd.reason, IB_CM_REJ_INVALID_SERVICE_ID);
	/* What was refused may ask again. */
	is_in(&a, IDLE);
	if (IS(send_req(&a), 0))
		expect(&a, IB_CM_REJ_RECEIVED);
	end(&a);
}

static void attributes(struct side *side, struct side *peer, u8 reads, u8 depth)
{
	struct ib_qp_attr attr;
	int mask;

	IS(qp_attr(side, IB_QPS_INIT, &attr, &mask), 0);
	IS(mask, IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT);
	IS(attr.port_num, gid->port_num);
	CHECK(attr.qp_access_flags & IB_ACCESS_REMOTE_WRITE);
	CHECK(attr.qp_access_flags & IB_ACCESS_REMOTE_READ);
	IS(qp_attr(side, IB_QPS_RTR, &attr, &mask), 0);
	IS(mask, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	IS(attr.dest_qp_num, peer->qpn);
	IS(attr.rq_psn, side->psn);
	IS(attr.path_mtu, IB_MTU_1024);
	IS(attr.max_dest_rd_atomic, reads);
	IS(attr.ah_attr.type, RDMA_AH_ATTR_TYPE_ROCE);
	IS(attr.ah_attr.grh.sgid_index, gid->index);
	CHECK(ether_addr_equal(attr.ah_attr.roce.dmac, mac));
	CHECK(!memcmp(&attr.ah_attr.grh.dgid, &gid->gid, sizeof(gid->gid)));
	IS(qp_attr(side, IB_QPS_RTS, &attr, &mask), 0);
	IS(mask, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
		 IB_QP_MAX_QP_RD_ATOMIC | IB_QP_TIMEOUT);
	IS(attr.sq_psn, peer->psn);
	IS(attr.retry_cnt, 6);
	IS(attr.max_rd_atomic, depth);
	IS(qp_attr(side, IB_QPS_ERR, &attr, &mask), -EINVAL);
}

void connection(void)
{
	struct ib_cm_req_event_param *req = &b.last.param.req_rcvd;
	struct ib_cm_rep_event_param *rep = &a.last.param.rep_rcvd;

	if (!start() || !IS(send_req(&a), 0))
		return stop();
	if (!expect(&b, IB_CM_REQ_RECEIVED))
		return stop();
	is_in(&a, REQ_SENT);
	is_in(&b, REQ_RCVD);
	CHECK(req->listen_id == l.id);
	CHECK(b.id->device == dev);
	CHECK(req->ppath_sgid_attr == gid);
	CHECK(!req->alternate_path);
	IS(be64_to_cpu(b.id->service_id), service);
	IS(req->port, gid->port_num);
	IS(req->bth_pkey, 0xffff);
	IS(req->remote_qpn, a.qpn);
	IS(req->qp_type, IB_QPT_RC);
	IS(req->starting_psn, a.psn);
	IS(req->responder_resources, 5);
	IS(req->initiator_depth, 3);
	IS(req->local_cm_response_timeout, 18);
	IS(req->remote_cm_response_timeout, 18);
	IS(req->retry_count, 6);
	IS(req->rnr_retry_count, 7);
	IS(req->srq, 0);
	CHECK(req->remote_ca_guid == dev->node_guid);
	IS(b.data[0], 0xa1);
	IS(b.data[IB_CM_REQ_PRIVATE_DATA_SIZE - 1], 0xa1);
	IS(b.path.rec_type, SA_PATH_REC_TYPE_ROCE_V2);
	IS(be16_to_cpu(b.path.pkey), 0xffff);
	IS(b.path.mtu, IB_MTU_1024);
	IS(b.path.traffic_class, 8);
	IS(be64_to_cpu(b.path.service_id), service);
	CHECK(!memcmp(&b.path.dgid, &gid->gid, sizeof(gid->gid)));
	CHECK(ether_addr_equal(b.path.roce.dmac, mac));

	IS(prepare_mra(&b), 0);
	is_in(&b, MRA_REQ_SENT);
	IS(send_rep(&b), 0);
	is_in(&b, REP_SENT);
	if (!expect(&a, IB_CM_REP_RECEIVED))
		return stop();
	IS(rep->remote_qpn, b.qpn);
	IS(rep->starting_psn, b.psn);
	IS(rep->responder_resources, 2);
	IS(rep->initiator_depth, 4);
	IS(rep->rnr_retry_count, 6);
	CHECK(rep->remote_ca_guid == dev->node_guid);
	IS(a.data[0], 0xa2);
	IS(a.data[IB_CM_REP_PRIVATE_DATA_SIZE - 1], 0xa2);
	is_in(&a, REP_RCVD);
	CHECK(a.id->remote_id == b.id->local_id);
	CHECK(b.id->remote_id == a.id->local_id);
	IS(prepare_mra(&a), 0);
	is_in(&a, MRA_REP_SENT);
	attributes(&a, &b, 2, 4);
	attributes(&b, &a, 4, 2);
	IS(send_rtu(&a), 0);
	if (!expect(&b, IB_CM_RTU_RECEIVED))
		return stop();
	CHECK(!memcmp(b.data, "rtu", 4));
	is_in(&a, ESTABLISHED);
	is_in(&b, ESTABLISHED);
	attributes(&a, &b, 2, 4);
	attributes(&b, &a, 4, 2);
	IS(send_dreq(&a), 0);
	is_in(&a, DREQ_SENT);
	if (!expect(&b, IB_CM_DREQ_RECEIVED))
		return stop();
	CHECK(!memcmp(b.data, "dreq", 5));
	is_in(&b, DREQ_RCVD);
	IS(send_drep(&b), 0);
	if (!expect(&a, IB_CM_DREP_RECEIVED))
		return stop();
	CHECK(!memcmp(a.data, "drep", 5));
	expect(&a, IB_CM_TIMEWAIT_EXIT);
	expect(&b, IB_CM_TIMEWAIT_EXIT);
	IS(a.id->state, IB_CM_IDLE);
	IS(b.id->state, IB_CM_IDLE);
	stop();
}

static int rep_at_once(struct side *side)
{
	IS(send_rep(side), 0);
	return 0;
}

static int rtu_at_once(struct side *side)
{
	IS(send_rtu(side), 0);
	return 0;
}

static int drep_and_destroy(struct side *side)
{
	IS(send_drep(side), 0);
	return 1;
}

/* All of it in callbacks; the passive end ends by what its callback returns. */
void in_callbacks(void)
{
	if (!start())
		return;
	b.on = IB_CM_REQ_RECEIVED;
	b.act = rep_at_once;
	a.on = IB_CM_REP_RECEIVED;
	a.act = rtu_at_once;
	IS(send_req(&a), 0);
	if (expect(&b, IB_CM_REQ_RECEIVED) && expect(&a, IB_CM_REP_RECEIVED) &&
	    expect(&b, IB_CM_RTU_RECEIVED)) {
		b.on = IB_CM_DREQ_RECEIVED;
		b.act = drep_and_destroy;
		IS(send_dreq(&a), 0);
		expect(&b, IB_CM_DREQ_RECEIVED);
		expect(&a, IB_CM_DREP_RECEIVED);
		expect(&a, IB_CM_TIMEWAIT_EXIT);
	}
	stop();
}

void notices(void)
{
	int i;

	if (until_rep()) {
		IS(established(&b), 0);
		/* At once, while the connection gets there, and then. */
		for (i = 0; i < 1000; i++)
			if (!IS(established(&b), -EISCONN))
				break;
		if (expect(&b, IB_CM_USER_ESTABLISHED))
			is_in(&b, ESTABLISHED);
		is_in(&a, REP_RCVD);
		IS(ib_cm_notify(b.id, IB_EVENT_PATH_MIG_ERR), -EINVAL);
	}
	stop();
}

void parameters(void)
{
	struct request req;
	u8 data[256] = {};

	if (!start())
		return;
	fill_request(&req, &a);
	req.param.private_data_len = IB_CM_REQ_PRIVATE_DATA_SIZE + 1;
	IS(ib_send_cm_req(a.id, &req.param), -EINVAL);
	fill_request(&req, &a);
	req.param.qp_type = IB_QPT_UD;
	IS(ib_send_cm_req(a.id, &req.param), -EINVAL);
	fill_request(&req, &a);
	req.param.primary_path = NULL;
	IS(ib_send_cm_req(a.id, &req.param), -EINVAL);
	is_in(&a, IDLE);
	/* The GID is found by the path, too; and a length without data means none. */
	fill_request(&req, &a);
	req.param.ppath_sgid_attr = NULL;
	req.param.private_data = NULL;
	req.param.private_data_len = 255;
	IS(ib_send_cm_req(a.id, &req.param), 0);
	if (expect(&b, IB_CM_REQ_RECEIVED)) {
		struct ib_cm_rep_param rep = {
			.qp_num = b.qpn,
			.private_data = data,
			.private_data_len = IB_CM_REP_PRIVATE_DATA_SIZE + 1,
		};

		IS(b.data[0], 0);
		IS(ib_send_cm_rep(b.id, &rep), -EINVAL);
		IS(ib_send_cm_rej(b.id, 28, data, IB_CM_REJ_ARI_LENGTH + 1, NULL, 0), -EINVAL);
		IS(ib_send_cm_rej(b.id, 28, NULL, 0, data, IB_CM_REJ_PRIVATE_DATA_SIZE + 1),
		   -EINVAL);
		is_in(&b, REQ_RCVD);
		IS(send_rep(&b), 0);
		if (expect(&a, IB_CM_REP_RECEIVED)) {
			IS(ib_send_cm_rtu(a.id, data, IB_CM_RTU_PRIVATE_DATA_SIZE + 1), -EINVAL);
			is_in(&a, REP_RCVD);
			IS(ib_send_cm_rtu(a.id, data, IB_CM_RTU_PRIVATE_DATA_SIZE), 0);
			expect(&b, IB_CM_RTU_RECEIVED);
			IS(ib_send_cm_dreq(a.id, data, IB_CM_DREQ_PRIVATE_DATA_SIZE + 1), -EINVAL);
			IS(ib_send_cm_dreq(a.id, NULL, 0), 0);
			if (expect(&b, IB_CM_DREQ_RECEIVED)) {
				IS(ib_send_cm_drep(b.id, data, IB_CM_DREP_PRIVATE_DATA_SIZE + 1),
				   -EINVAL);
				is_in(&b, DREQ_RCVD);
			}
		}
	}
	stop();
}

/* Nobody answers. */
void silence(void)
{
	struct request req;

	if (!IS(create(&a), 0))
		return;
	fill_request(&req, &a);
	ipv6_addr_set_v4mapped(cpu_to_be32(0x0a000063), (struct in6_addr *)&req.path.dgid);
	eth_zero_addr(req.path.roce.dmac);
	req.path.roce.dmac[0] = 2;
	req.path.packet_life_time = 8;
	req.param.remote_cm_response_timeout = 14;
	req.param.max_cm_retries = 1;
	IS(ib_send_cm_req(a.id, &req.param), 0);
	if (expect(&a, IB_CM_REQ_ERROR))
		IS(a.last.param.send_status, IB_WC_RESP_TIMEOUT_ERR);
	is_in(&a, IDLE);
	end(&a);
	/* Or not in time. */
	if (IS(create(&a), 0) && IS(ib_send_cm_req(a.id, &req.param), 0)) {
		is_in(&a, REQ_SENT);
		end(&a);
		IS(a.told, 0);
	}
	end(&a);
}

void texts(void)
{
	IS(strcmp(ibcm_reject_msg(IB_CM_REJ_CONSUMER_DEFINED), "consumer defined"), 0);
	IS(strcmp(ibcm_reject_msg(0), "unrecognized reason"), 0);
	IS(strcmp(ibcm_reject_msg(1 << 20), "unrecognized reason"), 0);
}
