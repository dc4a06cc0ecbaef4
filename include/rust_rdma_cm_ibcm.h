/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions of rust/kernel_api/ffi/cm that rust/helpers/ib_cm.c calls. bindgen reads these
 * prototypes, so that both sides agree. Service ids are in host byte order.
 */
#ifndef RUST_RDMA_CM_IBCM_H
#define RUST_RDMA_CM_IBCM_H

#include <linux/types.h>
#include <rdma/ib_cm.h>

/* The identifier of a consumer, and a pointer to its owner in Rust. */
struct rust_ib_cm_id {
	struct ib_cm_id id;
	void *owner;
};

struct ib_cm_id *rust_ib_create_cm_id(struct ib_device *device, ib_cm_handler handler,
				      void *context);
void rust_ib_destroy_cm_id(struct ib_cm_id *id);
int rust_ib_cm_listen(struct ib_cm_id *id, u64 service_id);
struct ib_cm_id *rust_ib_cm_insert_listen(struct ib_device *device,
					  ib_cm_handler handler, u64 service_id);
int rust_ib_send_cm_req(struct ib_cm_id *id, const struct ib_cm_req_param *param);
int rust_ib_send_cm_rep(struct ib_cm_id *id, const struct ib_cm_rep_param *param);
int rust_ib_send_cm_rtu(struct ib_cm_id *id, const void *private_data, u8 len);
int rust_ib_send_cm_dreq(struct ib_cm_id *id, const void *private_data, u8 len);
int rust_ib_send_cm_drep(struct ib_cm_id *id, const void *private_data, u8 len);
int rust_ib_send_cm_rej(struct ib_cm_id *id, u32 reason, const void *ari, u8 ari_len,
			const void *private_data, u8 len);
int rust_ib_prepare_cm_mra(struct ib_cm_id *id);
int rust_ib_cm_init_qp_attr(struct ib_cm_id *id, struct ib_qp_attr *attr, int *mask);
int rust_ib_send_cm_sidr_req(struct ib_cm_id *id,
			     const struct ib_cm_sidr_req_param *param);
int rust_ib_send_cm_sidr_rep(struct ib_cm_id *id,
			     const struct ib_cm_sidr_rep_param *param);
int rust_ib_cm_notify(struct ib_cm_id *id, u32 event);

/*
 * The bit fields of event parameters, which rust/kernel_api/ffi/cm sets by these functions: bindgen
 * lays out bit fields that cross a word differently from the C compiler.
 */
struct rust_ib_cm_bits {
	u8 local_cm_response_timeout;
	u8 remote_cm_response_timeout;
	u8 flow_control;
	u8 retry_count;
	u8 rnr_retry_count;
	u8 srq;
	u8 target_ack_delay;
	u8 failover_accepted;
};

void rust_ib_cm_req_bits(struct ib_cm_req_event_param *param,
			 const struct rust_ib_cm_bits *bits);
void rust_ib_cm_rep_bits(struct ib_cm_rep_event_param *param,
			 const struct rust_ib_cm_bits *bits);

#endif /* RUST_RDMA_CM_IBCM_H */
