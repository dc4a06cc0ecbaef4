// SPDX-License-Identifier: GPL-2.0
/*
 * The in-kernel API of the RDMA connection manager, with the names and prototypes of
 * <rdma/rdma_cm.h>. It is implemented in rust/kernel_api/ffi.
 */
#include <linux/compiler.h>
#include <linux/container_of.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <rdma/ib_cm.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>

#include "core_private.h"
#include "rust_rdma_cm_kapi.h"

struct rdma_cm_id *
__rdma_create_kernel_id(struct net *net, rdma_cm_event_handler event_handler,
			void *context, enum rdma_ucm_port_space ps,
			enum ib_qp_type qp_type, const char *caller)
{
	return rust_cma_create_id(net, event_handler, context, ps, qp_type, caller);
}
EXPORT_SYMBOL(__rdma_create_kernel_id);

struct rdma_cm_id *rdma_create_user_id(rdma_cm_event_handler event_handler,
				       void *context, enum rdma_ucm_port_space ps,
				       enum ib_qp_type qp_type)
{
	return rust_cma_create_id(current->nsproxy->net_ns, event_handler, context,
				  ps, qp_type, NULL);
}
EXPORT_SYMBOL(rdma_create_user_id);

void rdma_destroy_id(struct rdma_cm_id *id)
{
	rust_cma_destroy_id(id);
}
EXPORT_SYMBOL(rdma_destroy_id);

int rdma_restrict_node_type(struct rdma_cm_id *id, u8 node_type)
{
	return rust_cma_restrict_node_type(id, node_type);
}
EXPORT_SYMBOL(rdma_restrict_node_type);

int rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return rust_cma_bind_addr(id, addr);
}
EXPORT_SYMBOL(rdma_bind_addr);

int rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *src_addr,
		      const struct sockaddr *dst_addr, unsigned long timeout_ms)
{
	return rust_cma_resolve_addr(id, src_addr, dst_addr, timeout_ms);
}
EXPORT_SYMBOL(rdma_resolve_addr);

int rdma_resolve_route(struct rdma_cm_id *id, unsigned long timeout_ms)
{
	return rust_cma_resolve_route(id, timeout_ms);
}
EXPORT_SYMBOL(rdma_resolve_route);

int rdma_resolve_ib_service(struct rdma_cm_id *id, struct rdma_ucm_ib_service *ibs)
{
	return rust_cma_resolve_ib_service(id, ibs);
}
EXPORT_SYMBOL(rdma_resolve_ib_service);

int rdma_set_ib_path(struct rdma_cm_id *id, struct sa_path_rec *path_rec)
{
	return rust_cma_set_ib_path(id, path_rec);
}
EXPORT_SYMBOL(rdma_set_ib_path);

int rdma_create_qp(struct rdma_cm_id *id, struct ib_pd *pd,
		   struct ib_qp_init_attr *qp_init_attr)
{
	return rust_cma_create_qp(id, pd, qp_init_attr);
}
EXPORT_SYMBOL(rdma_create_qp);

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	rust_cma_destroy_qp(id);
}
EXPORT_SYMBOL(rdma_destroy_qp);

int rdma_init_qp_attr(struct rdma_cm_id *id, struct ib_qp_attr *qp_attr,
		      int *qp_attr_mask)
{
	return rust_cma_init_qp_attr(id, qp_attr, qp_attr_mask);
}
EXPORT_SYMBOL(rdma_init_qp_attr);

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return rust_cma_connect(id, conn_param, NULL);
}
EXPORT_SYMBOL(rdma_connect);

int rdma_connect_locked(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return rust_cma_connect_locked(id, conn_param);
}
EXPORT_SYMBOL(rdma_connect_locked);

int rdma_connect_ece(struct rdma_cm_id *id, struct rdma_conn_param *conn_param,
		     struct rdma_ucm_ece *ece)
{
	return rust_cma_connect(id, conn_param, ece);
}
EXPORT_SYMBOL(rdma_connect_ece);

/* Only iWARP uses the backlog; with InfiniBand and RoCE the consumer applies its own limit. */
int rdma_listen(struct rdma_cm_id *id, int backlog)
{
	return rust_cma_listen(id, max(backlog, 0));
}
EXPORT_SYMBOL(rdma_listen);

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *conn_param)
{
	return rust_cma_accept(id, conn_param, NULL);
}
EXPORT_SYMBOL(rdma_accept);

int rdma_accept_ece(struct rdma_cm_id *id, struct rdma_conn_param *conn_param,
		    struct rdma_ucm_ece *ece)
{
	return rust_cma_accept(id, conn_param, ece);
}
EXPORT_SYMBOL(rdma_accept_ece);

void rdma_lock_handler(struct rdma_cm_id *id)
{
	rust_cma_lock_handler(id);
}
EXPORT_SYMBOL(rdma_lock_handler);

void rdma_unlock_handler(struct rdma_cm_id *id)
{
	rust_cma_unlock_handler(id);
}
EXPORT_SYMBOL(rdma_unlock_handler);

int rdma_notify(struct rdma_cm_id *id, enum ib_event_type event)
{
	return rust_cma_notify(id, event);
}
EXPORT_SYMBOL(rdma_notify);

int rdma_reject(struct rdma_cm_id *id, const void *private_data,
		u8 private_data_len, u8 reason)
{
	return rust_cma_reject(id, private_data, private_data_len, reason);
}
EXPORT_SYMBOL(rdma_reject);

int rdma_disconnect(struct rdma_cm_id *id)
{
	return rust_cma_disconnect(id);
}
EXPORT_SYMBOL(rdma_disconnect);

int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr,
			u8 join_state, void *context)
{
	return rust_cma_join_multicast(id, addr, join_state, context);
}
EXPORT_SYMBOL(rdma_join_multicast);

void rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
	rust_cma_leave_multicast(id, addr);
}
EXPORT_SYMBOL(rdma_leave_multicast);

void rdma_set_service_type(struct rdma_cm_id *id, int tos)
{
	rust_cma_set_service_type(id, tos);
}
EXPORT_SYMBOL(rdma_set_service_type);

int rdma_set_reuseaddr(struct rdma_cm_id *id, int reuse)
{
	return rust_cma_set_reuseaddr(id, reuse);
}
EXPORT_SYMBOL(rdma_set_reuseaddr);

int rdma_set_afonly(struct rdma_cm_id *id, int afonly)
{
	return rust_cma_set_afonly(id, afonly);
}
EXPORT_SYMBOL(rdma_set_afonly);

int rdma_set_ack_timeout(struct rdma_cm_id *id, u8 timeout)
{
	return rust_cma_set_ack_timeout(id, timeout);
}
EXPORT_SYMBOL(rdma_set_ack_timeout);

int rdma_set_min_rnr_timer(struct rdma_cm_id *id, u8 min_rnr_timer)
{
	return rust_cma_set_min_rnr_timer(id, min_rnr_timer);
}
EXPORT_SYMBOL(rdma_set_min_rnr_timer);

__be64 rdma_get_service_id(struct rdma_cm_id *id, struct sockaddr *addr)
{
	return cpu_to_be64(rust_cma_get_service_id(id, addr));
}
EXPORT_SYMBOL(rdma_get_service_id);

static bool is_iwarp(const struct rdma_cm_id *id)
{
	return id->device && rdma_protocol_iwarp(id->device, id->port_num);
}

/* Repeats: drivers/infiniband/core/cma.c rdma_reject_msg 0170d9551526 */
const char *__attribute_const__ rdma_reject_msg(struct rdma_cm_id *id, int reason)
{
	if (is_iwarp(id))
		return iwcm_reject_msg(reason);
	return rust_cma_reject_msg(reason);
}
EXPORT_SYMBOL(rdma_reject_msg);

const char *__attribute_const__ rdma_event_msg(enum rdma_cm_event_type event)
{
	return rust_cma_event_msg(event);
}
EXPORT_SYMBOL(rdma_event_msg);

/*
 * Repeats: drivers/infiniband/core/cma.c rdma_is_consumer_reject 3ab12253f88b
 * Repeats: drivers/infiniband/core/cma.c rdma_consumer_reject_data df4f5bf51aed
 */
const void *rdma_consumer_reject_data(struct rdma_cm_id *id,
				      struct rdma_cm_event *ev, u8 *data_len)
{
	bool by_consumer = ev->status == (is_iwarp(id) ? -ECONNREFUSED :
					  IB_CM_REJ_CONSUMER_DEFINED);

	*data_len = by_consumer ? ev->param.conn.private_data_len : 0;
	return by_consumer ? ev->param.conn.private_data : NULL;
}
EXPORT_SYMBOL(rdma_consumer_reject_data);

void rdma_read_gids(struct rdma_cm_id *cm_id, union ib_gid *sgid, union ib_gid *dgid)
{
	rust_cma_read_gids(cm_id, sgid, dgid);
}
EXPORT_SYMBOL(rdma_read_gids);

/* Drivers call this for any identifier that is listed at their device. */
struct iw_cm_id *rdma_iw_cm_id(struct rdma_cm_id *cm_id)
{
	return READ_ONCE(container_of(cm_id, struct rdma_id_private_head, id)->iw);
}
EXPORT_SYMBOL(rdma_iw_cm_id);
