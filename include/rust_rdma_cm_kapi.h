/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions of rust/kernel_api/ffi/export.rs that rust/helpers/rdma_cm.c calls. bindgen reads
 * these prototypes, so that both sides agree.
 */
#ifndef RUST_RDMA_CM_KAPI_H
#define RUST_RDMA_CM_KAPI_H

#include <linux/types.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>

struct rdma_cm_id *rust_cma_create_id(struct net *net,
				      rdma_cm_event_handler event_handler,
				      void *context, enum rdma_ucm_port_space ps,
				      enum ib_qp_type qp_type, const char *owner);
void rust_cma_destroy_id(struct rdma_cm_id *id);
int rust_cma_restrict_node_type(struct rdma_cm_id *id, u8 node_type);
int rust_cma_bind_addr(struct rdma_cm_id *id, const struct sockaddr *addr);
int rust_cma_resolve_addr(struct rdma_cm_id *id, const struct sockaddr *src,
			  const struct sockaddr *dst, unsigned long timeout_ms);
int rust_cma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms);
int rust_cma_resolve_ib_service(struct rdma_cm_id *id,
				const struct rdma_ucm_ib_service *ibs);
int rust_cma_set_ib_path(struct rdma_cm_id *id, const struct sa_path_rec *path);
int rust_cma_create_qp(struct rdma_cm_id *id, struct ib_pd *pd,
		       struct ib_qp_init_attr *attr);
void rust_cma_destroy_qp(struct rdma_cm_id *id);
int rust_cma_init_qp_attr(struct rdma_cm_id *id, struct ib_qp_attr *attr, int *mask);
int rust_cma_connect(struct rdma_cm_id *id, const struct rdma_conn_param *param,
		     const struct rdma_ucm_ece *ece);
int rust_cma_connect_locked(struct rdma_cm_id *id, const struct rdma_conn_param *param);
int rust_cma_listen(struct rdma_cm_id *id, u32 backlog);
int rust_cma_accept(struct rdma_cm_id *id, const struct rdma_conn_param *param,
		    const struct rdma_ucm_ece *ece);
void rust_cma_lock_handler(struct rdma_cm_id *id);
void rust_cma_unlock_handler(struct rdma_cm_id *id);
int rust_cma_notify(struct rdma_cm_id *id, u32 event);
int rust_cma_reject(struct rdma_cm_id *id, const void *private_data,
		    u8 private_data_len, u8 reason);
int rust_cma_disconnect(struct rdma_cm_id *id);
int rust_cma_join_multicast(struct rdma_cm_id *id, const struct sockaddr *addr,
			    u8 join_state, void *context);
void rust_cma_leave_multicast(struct rdma_cm_id *id, const struct sockaddr *addr);
void rust_cma_set_service_type(struct rdma_cm_id *id, u8 tos);
int rust_cma_set_reuseaddr(struct rdma_cm_id *id, bool reuse);
int rust_cma_set_afonly(struct rdma_cm_id *id, bool afonly);
int rust_cma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout);
int rust_cma_set_min_rnr_timer(struct rdma_cm_id *id, u8 min_rnr_timer);
u64 rust_cma_get_service_id(struct rdma_cm_id *id, const struct sockaddr *addr);
void rust_cma_read_gids(struct rdma_cm_id *id, union ib_gid *sgid, union ib_gid *dgid);
const char *rust_cma_reject_msg(int reason);
const char *rust_cma_event_msg(u32 event);

#endif /* RUST_RDMA_CM_KAPI_H */
