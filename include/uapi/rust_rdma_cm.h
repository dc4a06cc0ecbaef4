/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * What rust_rdma_cm has at /dev/infiniband/rdma_cm beyond <rdma/rdma_user_cm.h>.
 *
 * RDMA_USER_CM_CMD_SET_OPTION with this level tunes one id, or the requests to it if it listens,
 * and the ids of these, from then on. With librdmacm:
 *
 *	unsigned int ms = 500;
 *	rdma_set_option(id, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_DEADLINE, &ms, sizeof(ms));
 *
 * The value is an unsigned int. What is not set is that of the port, in configfs under
 * rdma_cm/<device>/ports/<port>/. ENOSYS: another name, or C's rdma_ucm. EINVAL: another length, or
 * more than the largest value, which is in brackets; nothing has changed then. None has a meaning
 * over iWARP.
 *
 * A time code t stands for 1 << (t - 8) milliseconds, and for 1 ms below 8: 20 for 4.1 s, 22 for
 * 16.4 s.
 */
#ifndef _UAPI_RUST_RDMA_CM_H
#define _UAPI_RUST_RDMA_CM_H

#define RDMA_OPTION_TUNING 0x52434d00

enum {
	/*
	 * cm_response_timeout, a time code: how long the peer may take to answer a request, beside
	 * the time that packets take there and back (0.5 s on RoCE). It is sent again after both
	 * [31], usually 20.
	 */
	RDMA_OPTION_TUNING_RESPONSE_TIMEOUT,
	/*
	 * cm_max_retries, a number: how often a request that is not answered is sent again, but for
	 * early retries [15], usually 15. The peer is asked to do the same.
	 */
	RDMA_OPTION_TUNING_MAX_RETRIES,
	/*
	 * cm_deadline_ms, in milliseconds: the longest time from the call that connects, accepts or
	 * disconnects until the event that says how it ended, whatever retries are left and however
	 * long the peer asks to wait. 0: as long as there are retries [3600000], usually 0.
	 */
	RDMA_OPTION_TUNING_DEADLINE,
	/*
	 * cm_timewait, a time code: the longest time from the end of a connection until
	 * RDMA_CM_EVENT_TIMEWAIT_EXIT [31], usually 22. On RoCE the time is 0.5 s unless this is
	 * less.
	 */
	RDMA_OPTION_TUNING_TIMEWAIT,
	/*
	 * cm_early_retry_ms, in milliseconds: the shortest time after which a request that is not
	 * answered is sent again before its time, which is longer where the peer's answers take
	 * longer. 0: never, as C [10000], usually 20.
	 */
	RDMA_OPTION_TUNING_EARLY_RETRY,
	/*
	 * cm_backlog_parking, a number: how many requests to a listener wait when its backlog is
	 * full, instead of being dropped. 0: none, as C [2048], usually 1024.
	 */
	RDMA_OPTION_TUNING_PARKING,
};

#endif
