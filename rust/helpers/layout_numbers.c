// SPDX-License-Identifier: GPL-2.0
/*
 * The layout in include/core_private.h as numbers. This file is compiled to assembler, from which
 * Kbuild takes the numbers, and is never linked.
 */
#include <linux/kbuild.h>

#include "core_private.h"

int main(void)
{
	DEFINE(RDMA_ID_PRIVATE_ID_SIZE, RDMA_ID_PRIVATE_ID_SIZE);
	DEFINE(RDMA_ID_PRIVATE_STATE, RDMA_ID_PRIVATE_STATE);
	DEFINE(RDMA_ID_PRIVATE_QP_NUM, RDMA_ID_PRIVATE_QP_NUM);
	DEFINE(RDMA_ID_PRIVATE_RES, RDMA_ID_PRIVATE_RES);
	DEFINE(RDMA_ID_PRIVATE_RES_SIZE, RDMA_ID_PRIVATE_RES_SIZE);
	DEFINE(RDMA_CM_ID_DEVICE, RDMA_CM_ID_DEVICE);
	DEFINE(RDMA_CM_ID_ROUTE, RDMA_CM_ID_ROUTE);
	DEFINE(RDMA_CM_ID_PS, RDMA_CM_ID_PS);
	DEFINE(RDMA_CM_ID_QP_TYPE, RDMA_CM_ID_QP_TYPE);
	DEFINE(RDMA_CM_ID_PORT_NUM, RDMA_CM_ID_PORT_NUM);
	return 0;
}
