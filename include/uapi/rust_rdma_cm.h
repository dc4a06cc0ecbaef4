/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The extensions of <rdma/rdma_user_cm.h> that rust_rdma_cm has at /dev/infiniband/rdma_cm.
 *
 * RDMA_USER_CM_CMD_SET_OPTION with the level RDMA_OPTION_TUNING tunes one id from then on. If the
 * id listens, the option applies to the requests that it receives and to the ids of these. With
 * librdmacm:
 *
 *	unsigned int ms = 500;
 *	rdma_set_option(id, RDMA_OPTION_TUNING, RDMA_OPTION_TUNING_DEADLINE, &ms, sizeof(ms));
 *
 * The value is an unsigned int. Options that are not set on the id take the value of the port, in
 * configfs under rdma_cm/<device>/ports/<port>/. The call fails with ENOSYS for an unknown option,
 * and for every option of this level with C's rdma_ucm. It fails with EINVAL for another length, or
 * a value above the maximum, which is in brackets; a failed call changes nothing. The options have
 * no effect over iWARP.
 *
 * A time code t stands for 1 << (t - 8) milliseconds, and for 1 ms below 8: 20 for 4.1 s, 22 for
 * 16.4 s.
 */
#ifndef _UAPI_RUST_RDMA_CM_H
#define _UAPI_RUST_RDMA_CM_H

#define RDMA_OPTION_TUNING 0x52434d00

enum {
	/*
	 * cm_response_timeout, a time code: the time that the peer may take to answer a request,
	 * in addition to the time that packets take there and back (0.5 s on RoCE). After both
	 * times the request is sent again [31], default 20.
	 */
	RDMA_OPTION_TUNING_RESPONSE_TIMEOUT,
	/*
	 * cm_max_retries, a number: how often a request that is not answered is sent again, not
	 * counting early retries [15], default 15. The peer is asked to do the same.
	 */
	RDMA_OPTION_TUNING_MAX_RETRIES,
	/*
	 * cm_deadline_ms, in milliseconds: the longest time from the call that connects, accepts or
	 * disconnects until the event that reports the result, however many retries are left and
	 * however long the peer asks to wait. 0: no limit but the retries [3600000], default 0.
	 */
	RDMA_OPTION_TUNING_DEADLINE,
	/*
	 * cm_timewait, a time code: the longest time from the end of a connection until
	 * RDMA_CM_EVENT_TIMEWAIT_EXIT [31], default 22. On RoCE the time is 0.5 s unless this is
	 * less.
	 */
	RDMA_OPTION_TUNING_TIMEWAIT,
	/*
	 * cm_early_retry_ms, in milliseconds: the shortest time after which a request that is not
	 * answered is sent again early; the time is longer if the peer's answers take longer. 0: no
	 * early retries, as in C [10000], default 20.
	 */
	RDMA_OPTION_TUNING_EARLY_RETRY,
	/*
	 * cm_backlog_parking, a number: how many requests to a listener wait when its backlog is
	 * full, instead of being dropped. 0: none, as in C [2048], default 1024.
	 */
	RDMA_OPTION_TUNING_PARKING,
	/*
	 * cm_reuseport: 1 if the id shares its address and port with other ids that set this, too,
	 * and are of the same user, port space and type of queue pair, and in the same network
	 * namespace, also of other processes. Up to 128 of them may listen. Each request goes to
	 * one of them. It fails with EINVAL when the id is bound [1], default 0, as in C.
	 */
	RDMA_OPTION_TUNING_REUSEPORT,
	/*
	 * cm_dead_link_ms, in milliseconds: how long the own interface (on InfiniBand the own port)
	 * may be down until connections over it end by RDMA_CM_EVENT_DISCONNECTED with the status
	 * -ENETDOWN. 0: they do not end by that, as in C [60000], default 0.
	 */
	RDMA_OPTION_TUNING_DEAD_LINK,
	/*
	 * cm_keepalive_s, in seconds: the longest time between two questions to the peer of an
	 * established connection whether it still has the connection. A peer that has restarted
	 * says no, which ends the connection by RDMA_CM_EVENT_DISCONNECTED. One that has gone says
	 * nothing, which ends nothing. 0: it is not asked, as in C [7200], default 0.
	 */
	RDMA_OPTION_TUNING_KEEPALIVE,
};

#endif
