/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of the IB CM. Their names, fields and printed form are those of the C connection
 * manager, so that scripts keep working. rust/ib/trace.rs calls them.
 *
 * Communication ids are in host byte order.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_cma
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH trace

#if !defined(RUST_RDMA_CM_TRACE_IB_CMA_H) || defined(TRACE_HEADER_MULTI_READ)
#define RUST_RDMA_CM_TRACE_IB_CMA_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

/*
 * The names of the enums; the last of each list has no comma.
 *
 * Repeats: drivers/infiniband/core/cm_trace.h IB_CM_STATE_LIST 0b08e40a37b3
 * Repeats: drivers/infiniband/core/cm_trace.h IB_CM_LAP_STATE_LIST 00d280829c35
 * Repeats: drivers/infiniband/core/cm_trace.h IB_CM_REJ_REASON_LIST ffe3e298290c
 */
#define IB_CM_STATE_LIST		\
	icm_name(IDLE)			\
	icm_name(LISTEN)		\
	icm_name(REQ_SENT)		\
	icm_name(REQ_RCVD)		\
	icm_name(MRA_REQ_SENT)		\
	icm_name(MRA_REQ_RCVD)		\
	icm_name(REP_SENT)		\
	icm_name(REP_RCVD)		\
	icm_name(MRA_REP_SENT)		\
	icm_name(MRA_REP_RCVD)		\
	icm_name(ESTABLISHED)		\
	icm_name(DREQ_SENT)		\
	icm_name(DREQ_RCVD)		\
	icm_name(TIMEWAIT)		\
	icm_name(SIDR_REQ_SENT)		\
	icm_last_name(SIDR_REQ_RCVD)

#define IB_CM_LAP_STATE_LIST		\
	icm_name(LAP_UNINIT)		\
	icm_name(LAP_IDLE)		\
	icm_name(LAP_SENT)		\
	icm_name(LAP_RCVD)		\
	icm_name(MRA_LAP_SENT)		\
	icm_last_name(MRA_LAP_RCVD)

#define IB_CM_REJ_REASON_LIST				\
	icm_name(REJ_NO_QP)				\
	icm_name(REJ_NO_EEC)				\
	icm_name(REJ_NO_RESOURCES)			\
	icm_name(REJ_TIMEOUT)				\
	icm_name(REJ_UNSUPPORTED)			\
	icm_name(REJ_INVALID_COMM_ID)			\
	icm_name(REJ_INVALID_COMM_INSTANCE)		\
	icm_name(REJ_INVALID_SERVICE_ID)		\
	icm_name(REJ_INVALID_TRANSPORT_TYPE)		\
	icm_name(REJ_STALE_CONN)			\
	icm_name(REJ_RDC_NOT_EXIST)			\
	icm_name(REJ_INVALID_GID)			\
	icm_name(REJ_INVALID_LID)			\
	icm_name(REJ_INVALID_SL)			\
	icm_name(REJ_INVALID_TRAFFIC_CLASS)		\
	icm_name(REJ_INVALID_HOP_LIMIT)			\
	icm_name(REJ_INVALID_PACKET_RATE)		\
	icm_name(REJ_INVALID_ALT_GID)			\
	icm_name(REJ_INVALID_ALT_LID)			\
	icm_name(REJ_INVALID_ALT_SL)			\
	icm_name(REJ_INVALID_ALT_TRAFFIC_CLASS)		\
	icm_name(REJ_INVALID_ALT_HOP_LIMIT)		\
	icm_name(REJ_INVALID_ALT_PACKET_RATE)		\
	icm_name(REJ_PORT_CM_REDIRECT)			\
	icm_name(REJ_PORT_REDIRECT)			\
	icm_name(REJ_INVALID_MTU)			\
	icm_name(REJ_INSUFFICIENT_RESP_RESOURCES)	\
	icm_name(REJ_CONSUMER_DEFINED)			\
	icm_name(REJ_INVALID_RNR_RETRY)			\
	icm_name(REJ_DUPLICATE_LOCAL_COMM_ID)		\
	icm_name(REJ_INVALID_CLASS_VERSION)		\
	icm_name(REJ_INVALID_FLOW_LABEL)		\
	icm_name(REJ_INVALID_ALT_FLOW_LABEL)		\
	icm_last_name(REJ_VENDOR_OPTION_NOT_SUPPORTED)

/* Export the numbers of the names to user space, then define the tables for printing. */
#undef icm_name
#undef icm_last_name
#define icm_name(x) TRACE_DEFINE_ENUM(IB_CM_##x);
#define icm_last_name(x) TRACE_DEFINE_ENUM(IB_CM_##x);

IB_CM_STATE_LIST
IB_CM_LAP_STATE_LIST
IB_CM_REJ_REASON_LIST

#undef icm_name
#undef icm_last_name
#define icm_name(x) { IB_CM_##x, #x },
#define icm_last_name(x) { IB_CM_##x, #x }

/*
 * Events of a communication id. The pointer identifies it and must not be dereferenced; state is an
 * enum ib_cm_state. Path migration is not supported, so lap_state is constant.
 *
 * Repeats: drivers/infiniband/core/cm_trace.h icm_id_class 1dffc18d01e6
 * Repeats: drivers/infiniband/core/cm_trace.h DEFINE_CM_SEND_EVENT b6e816d07d5f
 * Repeats: drivers/infiniband/core/cm_trace.h DEFINE_CM_ERR_EVENT 843ef625ac3a
 * Repeats: drivers/infiniband/core/cm_trace.h icm_dreq_skipped 4aa03be2ed99
 */
DECLARE_EVENT_CLASS(icm_id_class,
	TP_PROTO(const void *cm_id, u32 local_id, u32 remote_id, u32 state),
	TP_ARGS(cm_id, local_id, remote_id, state),
	TP_STRUCT__entry(
		__field(const void *, cm_id)
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
		__field(unsigned long, state)
		__field(unsigned long, lap_state)
	),
	TP_fast_assign(
		__entry->cm_id = cm_id;
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
		__entry->state = state;
		__entry->lap_state = IB_CM_LAP_UNINIT;
	),
	TP_printk("local_id=%u remote_id=%u state=%s lap_state=%s",
		__entry->local_id, __entry->remote_id,
		__print_symbolic(__entry->state, IB_CM_STATE_LIST),
		__print_symbolic(__entry->lap_state, IB_CM_LAP_STATE_LIST)
	)
);

#define icm_id_event(name)						\
	DEFINE_EVENT(icm_id_class, name,				\
		TP_PROTO(const void *cm_id, u32 local_id, u32 remote_id, \
			 u32 state),					\
		TP_ARGS(cm_id, local_id, remote_id, state))

icm_id_event(icm_send_req);
icm_id_event(icm_send_rep);
icm_id_event(icm_send_dup_req);
icm_id_event(icm_send_dup_rep);
icm_id_event(icm_send_rtu);
icm_id_event(icm_send_mra);
icm_id_event(icm_send_sidr_req);
icm_id_event(icm_send_sidr_rep);
icm_id_event(icm_send_dreq);
icm_id_event(icm_send_drep);

icm_id_event(icm_send_cm_rtu_err);
icm_id_event(icm_establish_err);
icm_id_event(icm_no_listener_err);
icm_id_event(icm_send_drep_err);
icm_id_event(icm_dreq_unknown_err);
icm_id_event(icm_send_unknown_rej_err);
icm_id_event(icm_rej_unknown_err);
icm_id_event(icm_prepare_mra_unknown_err);
icm_id_event(icm_mra_unknown_err);
icm_id_event(icm_qp_init_err);
icm_id_event(icm_qp_rtr_err);
icm_id_event(icm_qp_rts_err);
icm_id_event(icm_dreq_skipped);

/*
 * A REJ is about to be sent; reason is an enum ib_cm_rej_reason.
 *
 * Repeats: drivers/infiniband/core/cm_trace.h icm_send_rej 3035d7c65893
 */
TRACE_EVENT(icm_send_rej,
	TP_PROTO(const void *cm_id, u32 local_id, u32 remote_id, u32 state,
		 u32 reason),
	TP_ARGS(cm_id, local_id, remote_id, state, reason),
	TP_STRUCT__entry(
		__field(const void *, cm_id)
		__field(u32, local_id)
		__field(u32, remote_id)
		__field(unsigned long, state)
		__field(unsigned long, reason)
	),
	TP_fast_assign(
		__entry->cm_id = cm_id;
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
		__entry->state = state;
		__entry->reason = reason;
	),
	TP_printk("local_id=%u remote_id=%u state=%s reason=%s",
		__entry->local_id, __entry->remote_id,
		__print_symbolic(__entry->state, IB_CM_STATE_LIST),
		__print_symbolic(__entry->reason, IB_CM_REJ_REASON_LIST)
	)
);

/*
 * Events of a message without a connection, with the communication ids in the message.
 *
 * Repeats: drivers/infiniband/core/cm_trace.h icm_local_class 95ada51b5bbb
 * Repeats: drivers/infiniband/core/cm_trace.h DEFINE_CM_LOCAL_EVENT 90474cd84155
 */
DECLARE_EVENT_CLASS(icm_local_class,
	TP_PROTO(u32 local_id, u32 remote_id),
	TP_ARGS(local_id, remote_id),
	TP_STRUCT__entry(
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
	),
	TP_fast_assign(
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
	),
	TP_printk("local_id=%u remote_id=%u",
		__entry->local_id, __entry->remote_id
	)
);

#define icm_local_event(name)						\
	DEFINE_EVENT(icm_local_class, name,				\
		TP_PROTO(u32 local_id, u32 remote_id),			\
		TP_ARGS(local_id, remote_id))

icm_local_event(icm_issue_rej);
icm_local_event(icm_issue_drep);
icm_local_event(icm_staleconn_err);
icm_local_event(icm_no_priv_err);

/*
 * Repeats: drivers/infiniband/core/cm_trace.h icm_remote_class c7209768e964
 * Repeats: drivers/infiniband/core/cm_trace.h DEFINE_CM_REMOTE_EVENT 4b600acdcf06
 */
DECLARE_EVENT_CLASS(icm_remote_class,
	TP_PROTO(u32 remote_id),
	TP_ARGS(remote_id),
	TP_STRUCT__entry(
		__field(u32, remote_id)
	),
	TP_fast_assign(
		__entry->remote_id = remote_id;
	),
	TP_printk("remote_id=%u",
		__entry->remote_id
	)
);

#define icm_remote_event(name)						\
	DEFINE_EVENT(icm_remote_class, name,				\
		TP_PROTO(u32 remote_id),				\
		TP_ARGS(remote_id))

icm_remote_event(icm_remote_no_priv_err);
icm_remote_event(icm_insert_failed_err);

/* Other errors. */

/* Repeats: drivers/infiniband/core/cm_trace.h icm_send_rep_err 20a8cfeaf9c8 */
TRACE_EVENT(icm_send_rep_err,
	TP_PROTO(u32 local_id, u32 state),
	TP_ARGS(local_id, state),
	TP_STRUCT__entry(
		__field(unsigned int, local_id)
		__field(unsigned long, state)
	),
	TP_fast_assign(
		__entry->local_id = local_id;
		__entry->state = state;
	),
	TP_printk("local_id=%u state=%s",
		__entry->local_id, __print_symbolic(__entry->state, IB_CM_STATE_LIST)
	)
);

/* Repeats: drivers/infiniband/core/cm_trace.h icm_rep_unknown_err 87db686133cc */
TRACE_EVENT(icm_rep_unknown_err,
	TP_PROTO(u32 local_id, u32 remote_id, u32 state),
	TP_ARGS(local_id, remote_id, state),
	TP_STRUCT__entry(
		__field(unsigned int, local_id)
		__field(unsigned int, remote_id)
		__field(unsigned long, state)
	),
	TP_fast_assign(
		__entry->local_id = local_id;
		__entry->remote_id = remote_id;
		__entry->state = state;
	),
	TP_printk("local_id=%u remote_id=%u state=%s",
		__entry->local_id, __entry->remote_id,
		__print_symbolic(__entry->state, IB_CM_STATE_LIST)
	)
);

/*
 * An event that no handler takes; event is an enum ib_cm_event_type.
 *
 * Repeats: drivers/infiniband/core/cm_trace.h icm_handler_err 0c6b959b1851
 */
TRACE_EVENT(icm_handler_err,
	TP_PROTO(u32 event),
	TP_ARGS(event),
	TP_STRUCT__entry(
		__field(unsigned long, event)
	),
	TP_fast_assign(
		__entry->event = event;
	),
	TP_printk("unhandled event=%s",
		rdma_show_ib_cm_event(__entry->event)
	)
);

/*
 * A message was not answered or not sent; wc_status is an enum ib_wc_status.
 *
 * Repeats: drivers/infiniband/core/cm_trace.h icm_mad_send_err 2a67c7ca8163
 */
TRACE_EVENT(icm_mad_send_err,
	TP_PROTO(u32 state, u32 wc_status),
	TP_ARGS(state, wc_status),
	TP_STRUCT__entry(
		__field(unsigned long, state)
		__field(unsigned long, wc_status)
	),
	TP_fast_assign(
		__entry->state = state;
		__entry->wc_status = wc_status;
	),
	TP_printk("state=%s completion status=%s",
		__print_symbolic(__entry->state, IB_CM_STATE_LIST),
		rdma_show_wc_status(__entry->wc_status)
	)
);

#endif /* RUST_RDMA_CM_TRACE_IB_CMA_H */

#include <trace/define_trace.h>
