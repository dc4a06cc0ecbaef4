// SPDX-License-Identifier: GPL-2.0
/*
 * The in-kernel API of the InfiniBand connection manager, with the names and prototypes of
 * <rdma/ib_cm.h>. It is implemented in rust/kernel_api/ffi/cm, except for access to bit fields.
 */
#include <linux/export.h>
#include <rdma/ib_cm.h>

#include "rust_rdma_cm_ibcm.h"
#include "rust_rdma_cm_kapi.h"

struct ib_cm_id *ib_create_cm_id(struct ib_device *device, ib_cm_handler cm_handler,
				 void *context)
{
	return rust_ib_create_cm_id(device, cm_handler, context);
}
EXPORT_SYMBOL(ib_create_cm_id);

void ib_destroy_cm_id(struct ib_cm_id *cm_id)
{
	rust_ib_destroy_cm_id(cm_id);
}
EXPORT_SYMBOL(ib_destroy_cm_id);

int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id)
{
	return rust_ib_cm_listen(cm_id, be64_to_cpu(service_id));
}
EXPORT_SYMBOL(ib_cm_listen);

struct ib_cm_id *ib_cm_insert_listen(struct ib_device *device, ib_cm_handler cm_handler,
				     __be64 service_id)
{
	return rust_ib_cm_insert_listen(device, cm_handler, be64_to_cpu(service_id));
}
EXPORT_SYMBOL(ib_cm_insert_listen);

int ib_send_cm_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param)
{
	return rust_ib_send_cm_req(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_req);

int ib_send_cm_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param)
{
	return rust_ib_send_cm_rep(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_rep);

int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return rust_ib_send_cm_rtu(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_rtu);

int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return rust_ib_send_cm_dreq(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_dreq);

int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
	return rust_ib_send_cm_drep(cm_id, private_data, private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_drep);

int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari,
		   u8 ari_length, const void *private_data, u8 private_data_len)
{
	return rust_ib_send_cm_rej(cm_id, reason, ari, ari_length, private_data,
				   private_data_len);
}
EXPORT_SYMBOL(ib_send_cm_rej);

int ib_prepare_cm_mra(struct ib_cm_id *cm_id)
{
	return rust_ib_prepare_cm_mra(cm_id);
}
EXPORT_SYMBOL(ib_prepare_cm_mra);

int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr, int *qp_attr_mask)
{
	return rust_ib_cm_init_qp_attr(cm_id, qp_attr, qp_attr_mask);
}
EXPORT_SYMBOL(ib_cm_init_qp_attr);

int ib_send_cm_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param)
{
	return rust_ib_send_cm_sidr_req(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_sidr_req);

int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param)
{
	return rust_ib_send_cm_sidr_rep(cm_id, param);
}
EXPORT_SYMBOL(ib_send_cm_sidr_rep);

int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event)
{
	return rust_ib_cm_notify(cm_id, event);
}
EXPORT_SYMBOL(ib_cm_notify);

void rust_ib_cm_req_bits(struct ib_cm_req_event_param *param,
			 const struct rust_ib_cm_bits *bits)
{
	param->local_cm_response_timeout = bits->local_cm_response_timeout;
	param->remote_cm_response_timeout = bits->remote_cm_response_timeout;
	param->flow_control = bits->flow_control;
	param->retry_count = bits->retry_count;
	param->rnr_retry_count = bits->rnr_retry_count;
	param->srq = bits->srq;
}

void rust_ib_cm_rep_bits(struct ib_cm_rep_event_param *param,
			 const struct rust_ib_cm_bits *bits)
{
	param->target_ack_delay = bits->target_ack_delay;
	param->failover_accepted = bits->failover_accepted;
	param->flow_control = bits->flow_control;
	param->rnr_retry_count = bits->rnr_retry_count;
	param->srq = bits->srq;
}

const char *__attribute_const__ ibcm_reject_msg(int reason)
{
	return rust_cma_reject_msg(reason);
}
EXPORT_SYMBOL(ibcm_reject_msg);
