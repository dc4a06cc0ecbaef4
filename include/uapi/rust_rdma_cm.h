/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What rust_rdma_cm has at /dev/infiniband/rdma_cm beyond <rdma/rdma_user_cm.h>.
 *
 * RDMA_USER_CM_CMD_SET_OPTION with this level tunes one id, or the requests to it if it listens, from
 * then on. The value is an unsigned int. What is not set is that of the port, in configfs under
 * rdma_cm/<device>/ports/<port>/. ENOSYS: another name, or C's rdma_ucm. EINVAL: another length, or
 * more than the largest value, which is in brackets; nothing has changed then.
 */
#ifndef _UAPI_RUST_RDMA_CM_H
#define _UAPI_RUST_RDMA_CM_H

#define RDMA_OPTION_TUNING 0x52434d00

enum {
	/* cm_response_timeout: time that a peer may take to answer, a time code [31] */
	RDMA_OPTION_TUNING_RESPONSE_TIMEOUT,
	/* cm_max_retries: times that a request is sent again [15] */
	RDMA_OPTION_TUNING_MAX_RETRIES,
	/* cm_deadline_ms: most time that one request is sent again; 0: all retries [3600000] */
	RDMA_OPTION_TUNING_DEADLINE,
	/* cm_timewait: most time wait, a time code [31] */
	RDMA_OPTION_TUNING_TIMEWAIT,
	/* cm_early_retry_ms: least time until a request is sent early; 0: never, as C [10000] */
	RDMA_OPTION_TUNING_EARLY_RETRY,
	/* cm_backlog_parking: requests parked beyond a full backlog; 0: none, as C [2048] */
	RDMA_OPTION_TUNING_PARKING,
};

#endif
