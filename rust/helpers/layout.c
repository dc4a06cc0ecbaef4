// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the layout that ib_core sees with the source of ib_core, if the build has that. A build
 * without it compares the numbers in layout_numbers.c with the type information of ib_core.
 */
#include <linux/build_bug.h>
#include <linux/stddef.h>

#include "core_private.h"

#ifdef HAVE_CMA_PRIV_H
#include "cma_priv.h"

static_assert(offsetof(struct rdma_id_private, id) == 0);
static_assert(offsetof(struct rdma_id_private, state) == RDMA_ID_PRIVATE_STATE);
static_assert(offsetof(struct rdma_id_private, qp_num) == RDMA_ID_PRIVATE_QP_NUM);
static_assert(offsetof(struct rdma_id_private, res) == RDMA_ID_PRIVATE_RES);
#endif
