/* SPDX-License-Identifier: GPL-2.0 */
/* The functions that both modules have. The parameter is here, as rust/macros knows only numbers. */
#include <linux/module.h>

#include "helpers.h"

static char *device = "rxe0";
module_param(device, charp, 0);
MODULE_PARM_DESC(device, "RoCE or InfiniBand device, or iWARP where there are tests for it");

static char *other = "rxe1";
module_param(other, charp, 0);
MODULE_PARM_DESC(other, "another device of the same kind");

const char *rust_test_device(void)
{
	return device;
}

const char *rust_test_other_device(void)
{
	return other;
}

bool rust_test_is_ib(struct ib_device *device, u32 port_num)
{
	return rdma_protocol_ib(device, port_num);
}

int rust_test_post_recv(struct ib_qp *qp, const struct ib_recv_wr *request)
{
	return ib_post_recv(qp, request, NULL);
}

int rust_test_post_send(struct ib_qp *qp, const struct ib_send_wr *request)
{
	return ib_post_send(qp, request, NULL);
}

u64 rust_test_dma_map(struct ib_device *device, void *memory, size_t size)
{
	return ib_dma_map_single(device, memory, size, DMA_BIDIRECTIONAL);
}

void rust_test_dma_sync(struct ib_device *device, u64 map, size_t size)
{
	ib_dma_sync_single_for_cpu(device, map, size, DMA_BIDIRECTIONAL);
}

void rust_test_dma_unmap(struct ib_device *device, u64 map, size_t size)
{
	ib_dma_unmap_single(device, map, size, DMA_BIDIRECTIONAL);
}
