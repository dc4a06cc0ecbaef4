// SPDX-License-Identifier: GPL-2.0
/* Real queue pairs. */
#include "cmstorm.h"

#include <pthread.h>
#include <stdlib.h>

/* One per device: ids of one process meet few devices. */
static struct {
	struct ibv_context *verbs;
	struct ibv_cq *cq;
} queues[8];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct ibv_cq *shared_cq(struct ibv_context *verbs)
{
	struct ibv_cq *cq = NULL;

	pthread_mutex_lock(&lock);
	for (unsigned int i = 0; i < sizeof(queues) / sizeof(*queues); i++) {
		if (!queues[i].verbs) {
			queues[i].verbs = verbs;
			queues[i].cq = ibv_create_cq(verbs, 64, NULL, NULL, 0);
		}
		if (queues[i].verbs == verbs) {
			cq = queues[i].cq;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return cq;
}

int make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_all = 1,
	};

	attr.send_cq = attr.recv_cq = shared_cq(id->verbs);
	return attr.send_cq ? rdma_create_qp(id, NULL, &attr) : -1;
}

static struct {
	struct ibv_qp **qps;
	uint32_t count;
} named;

void make_numbers(struct ibv_context *verbs, int count)
{
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	attr.send_cq = attr.recv_cq = shared_cq(verbs);
	named.qps = calloc(count, sizeof(*named.qps));
	if (!pd || !attr.send_cq || !named.qps)
		die("no memory for %d queue pairs", count);
	for (int i = 0; i < count; i++) {
		named.qps[i] = ibv_create_qp(pd, &attr);
		if (!named.qps[i])
			die_errno("cannot make queue pair %d", i);
	}
	named.count = count;
}

uint32_t number_of(uint32_t i, uint32_t imagined)
{
	return named.count ? named.qps[i % named.count]->qp_num : imagined;
}
