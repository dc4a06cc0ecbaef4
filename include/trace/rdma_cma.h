/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of the RDMA CM. Their names, fields and printed form are those of the C connection
 * manager, so that scripts keep working. rust/ib/trace.rs calls them.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rdma_cma
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH trace

#if !defined(RUST_RDMA_CM_TRACE_RDMA_CMA_H) || defined(TRACE_HEADER_MULTI_READ)
#define RUST_RDMA_CM_TRACE_RDMA_CMA_H

#include <linux/in6.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#include "core_private.h"

/* Each event of an identifier begins with its number and has its addresses. */
#define cma_trace_addrs							\
	__array(unsigned char, srcaddr, sizeof(struct sockaddr_in6))	\
	__array(unsigned char, dstaddr, sizeof(struct sockaddr_in6))

#define cma_trace_id(ident) do {						\
	__entry->cm_id = (ident)->res.id;				\
	memcpy(__entry->srcaddr, &(ident)->id.route.addr.src_addr,	\
	       sizeof(__entry->srcaddr));				\
	memcpy(__entry->dstaddr, &(ident)->id.route.addr.dst_addr,	\
	       sizeof(__entry->dstaddr));				\
} while (0)

/* Events of an identifier. */

/*
 * Repeats: drivers/infiniband/core/cma_trace.h cma_fsm_class ce58349c4b4b
 * Repeats: drivers/infiniband/core/cma_trace.h DEFINE_CMA_FSM_EVENT 8f0ee1d9c147
 */
DECLARE_EVENT_CLASS(cma_fsm_class,
	TP_PROTO(const struct rdma_id_private_head *ident, u8 tos),
	TP_ARGS(ident, tos),
	TP_STRUCT__entry(
		__field(u32, cm_id)
		__field(u32, tos)
		cma_trace_addrs
	),
	TP_fast_assign(
		cma_trace_id(ident);
		__entry->tos = tos;
	),
	TP_printk("cm.id=%u src=%pISpc dst=%pISpc tos=%u",
		__entry->cm_id, __entry->srcaddr, __entry->dstaddr, __entry->tos
	)
);

#define cma_fsm_event(name)						\
	DEFINE_EVENT(cma_fsm_class, name,				\
		TP_PROTO(const struct rdma_id_private_head *ident, u8 tos), \
		TP_ARGS(ident, tos))

cma_fsm_event(cm_send_rtu);
cma_fsm_event(cm_send_rej);
cma_fsm_event(cm_prepare_mra);
cma_fsm_event(cm_send_sidr_req);
cma_fsm_event(cm_send_sidr_rep);
cma_fsm_event(cm_disconnect);
cma_fsm_event(cm_sent_drep);
cma_fsm_event(cm_sent_dreq);
cma_fsm_event(cm_id_destroy);

/* Repeats: drivers/infiniband/core/cma_trace.h cm_id_attach 8f29173edf3d */
TRACE_EVENT(cm_id_attach,
	TP_PROTO(const struct rdma_id_private_head *ident,
		 const struct ib_device *device),
	TP_ARGS(ident, device),
	TP_STRUCT__entry(
		__field(u32, cm_id)
		cma_trace_addrs
		__string(devname, device->name)
	),
	TP_fast_assign(
		cma_trace_id(ident);
		__assign_str(devname);
	),
	TP_printk("cm.id=%u src=%pISpc dst=%pISpc device=%s",
		__entry->cm_id, __entry->srcaddr, __entry->dstaddr,
		__get_str(devname)
	)
);

/*
 * Events like those of cma_fsm_class, with the number of the queue pair.
 *
 * Repeats: drivers/infiniband/core/cma_trace.h cma_qp_class 278d3444c52a
 * Repeats: drivers/infiniband/core/cma_trace.h DEFINE_CMA_QP_EVENT 5d5a65c624a8
 */
DECLARE_EVENT_CLASS(cma_qp_class,
	TP_PROTO(const struct rdma_id_private_head *ident, u8 tos),
	TP_ARGS(ident, tos),
	TP_STRUCT__entry(
		__field(u32, cm_id)
		__field(u32, tos)
		__field(u32, qp_num)
		cma_trace_addrs
	),
	TP_fast_assign(
		cma_trace_id(ident);
		__entry->tos = tos;
		__entry->qp_num = ident->qp_num;
	),
	TP_printk("cm.id=%u src=%pISpc dst=%pISpc tos=%u qp_num=%u",
		__entry->cm_id, __entry->srcaddr, __entry->dstaddr, __entry->tos,
		__entry->qp_num
	)
);

#define cma_qp_event(name)						\
	DEFINE_EVENT(cma_qp_class, name,				\
		TP_PROTO(const struct rdma_id_private_head *ident, u8 tos), \
		TP_ARGS(ident, tos))

cma_qp_event(cm_send_req);
cma_qp_event(cm_send_rep);
cma_qp_event(cm_qp_destroy);

/* Repeats: drivers/infiniband/core/cma_trace.h IB_QP_TYPE_LIST 9c5a04c1b256 */
#define IB_QP_TYPE_LIST			\
	ib_qp_type(SMI)			\
	ib_qp_type(GSI)			\
	ib_qp_type(RC)			\
	ib_qp_type(UC)			\
	ib_qp_type(UD)			\
	ib_qp_type(RAW_IPV6)		\
	ib_qp_type(RAW_ETHERTYPE)	\
	ib_qp_type(RAW_PACKET)		\
	ib_qp_type(XRC_INI)		\
	ib_qp_type_end(XRC_TGT)

#undef ib_qp_type
#undef ib_qp_type_end
#define ib_qp_type(x) TRACE_DEFINE_ENUM(IB_QPT_##x);
#define ib_qp_type_end(x) TRACE_DEFINE_ENUM(IB_QPT_##x);
IB_QP_TYPE_LIST

#undef ib_qp_type
#undef ib_qp_type_end
#define ib_qp_type(x) { IB_QPT_##x, #x },
#define ib_qp_type_end(x) { IB_QPT_##x, #x }

/*
 * A queue pair was created for the identifier, or the creation failed with the error rc.
 *
 * Repeats: drivers/infiniband/core/cma_trace.h cm_qp_create 214ddaf507d7
 */
TRACE_EVENT(cm_qp_create,
	TP_PROTO(const struct rdma_id_private_head *ident, u8 tos,
		 const struct ib_pd *pd,
		 const struct ib_qp_init_attr *qp_init_attr, int rc),
	TP_ARGS(ident, tos, pd, qp_init_attr, rc),
	TP_STRUCT__entry(
		__field(u32, cm_id)
		__field(u32, pd_id)
		__field(u32, tos)
		__field(u32, qp_num)
		__field(u32, send_wr)
		__field(u32, recv_wr)
		__field(int, rc)
		__field(unsigned long, qp_type)
		cma_trace_addrs
	),
	TP_fast_assign(
		cma_trace_id(ident);
		__entry->pd_id = pd->res.id;
		__entry->tos = tos;
		__entry->qp_num = rc ? 0 : ident->qp_num;
		__entry->send_wr = qp_init_attr->cap.max_send_wr;
		__entry->recv_wr = qp_init_attr->cap.max_recv_wr;
		__entry->rc = rc;
		__entry->qp_type = rc ? 0 : ident->id.qp_type;
	),
	TP_printk("cm.id=%u src=%pISpc dst=%pISpc tos=%u pd.id=%u qp_type=%s"
		" send_wr=%u recv_wr=%u qp_num=%u rc=%d",
		__entry->cm_id, __entry->srcaddr, __entry->dstaddr,
		__entry->tos, __entry->pd_id,
		__print_symbolic(__entry->qp_type, IB_QP_TYPE_LIST), __entry->send_wr,
		__entry->recv_wr, __entry->qp_num, __entry->rc
	)
);

/*
 * A listener has received a connection request; event is an enum ib_cm_event_type.
 *
 * Repeats: drivers/infiniband/core/cma_trace.h cm_req_handler d21657dd9805
 */
TRACE_EVENT(cm_req_handler,
	TP_PROTO(const struct rdma_id_private_head *ident, u8 tos, u32 event),
	TP_ARGS(ident, tos, event),
	TP_STRUCT__entry(
		__field(u32, cm_id)
		__field(u32, tos)
		__field(unsigned long, event)
		cma_trace_addrs
	),
	TP_fast_assign(
		cma_trace_id(ident);
		__entry->tos = tos;
		__entry->event = event;
	),
	TP_printk("cm.id=%u src=%pISpc dst=%pISpc tos=%u %s (%lu)",
		__entry->cm_id, __entry->srcaddr, __entry->dstaddr, __entry->tos,
		rdma_show_ib_cm_event(__entry->event), __entry->event
	)
);

/*
 * The consumer is about to be told of an event, an enum rdma_cm_event_type.
 *
 * Repeats: drivers/infiniband/core/cma_trace.h cm_event_handler 3ef3eb83bc5c
 */
TRACE_EVENT(cm_event_handler,
	TP_PROTO(const struct rdma_id_private_head *ident, u8 tos, u32 event,
		 int status),
	TP_ARGS(ident, tos, event, status),
	TP_STRUCT__entry(
		__field(u32, cm_id)
		__field(u32, tos)
		__field(unsigned long, event)
		__field(int, status)
		cma_trace_addrs
	),
	TP_fast_assign(
		cma_trace_id(ident);
		__entry->tos = tos;
		__entry->event = event;
		__entry->status = status;
	),
	TP_printk("cm.id=%u src=%pISpc dst=%pISpc tos=%u %s (%lu/%d)",
		__entry->cm_id, __entry->srcaddr, __entry->dstaddr, __entry->tos,
		rdma_show_cm_event(__entry->event), __entry->event,
		__entry->status
	)
);

/*
 * The consumer was told of an event, and has returned result.
 *
 * Repeats: drivers/infiniband/core/cma_trace.h cm_event_done c30a2690a603
 */
TRACE_EVENT(cm_event_done,
	TP_PROTO(const struct rdma_id_private_head *ident, u8 tos, u32 event,
		 int result),
	TP_ARGS(ident, tos, event, result),
	TP_STRUCT__entry(
		__field(u32, cm_id)
		__field(u32, tos)
		__field(unsigned long, event)
		__field(int, result)
		cma_trace_addrs
	),
	TP_fast_assign(
		cma_trace_id(ident);
		__entry->tos = tos;
		__entry->event = event;
		__entry->result = result;
	),
	TP_printk("cm.id=%u src=%pISpc dst=%pISpc tos=%u %s consumer returns %d",
		__entry->cm_id, __entry->srcaddr, __entry->dstaddr, __entry->tos,
		rdma_show_cm_event(__entry->event), __entry->result
	)
);

/*
 * A device is added or removed.
 *
 * Repeats: drivers/infiniband/core/cma_trace.h cma_client_class 71acdf57770f
 * Repeats: drivers/infiniband/core/cma_trace.h DEFINE_CMA_CLIENT_EVENT 4c5371104ee8
 */
DECLARE_EVENT_CLASS(cma_client_class,
	TP_PROTO(const struct ib_device *device),
	TP_ARGS(device),
	TP_STRUCT__entry(
		__string(name, device->name)
	),
	TP_fast_assign(
		__assign_str(name);
	),
	TP_printk("device name=%s",
		__get_str(name)
	)
);

#define cma_client_event(name)						\
	DEFINE_EVENT(cma_client_class, name,				\
		TP_PROTO(const struct ib_device *device),		\
		TP_ARGS(device))

cma_client_event(cm_add_one);
cma_client_event(cm_remove_one);

#endif /* RUST_RDMA_CM_TRACE_RDMA_CMA_H */

#include <trace/define_trace.h>
