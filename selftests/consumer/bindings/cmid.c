// SPDX-License-Identifier: GPL-2.0
/* The helpers of cmid. */
#include "device.h"

static char *ipv4 = "10.0.0.1";
module_param(ipv4, charp, 0);
MODULE_PARM_DESC(ipv4, "its address");

const char *rust_test_ipv4(void)
{
	return ipv4;
}

static uint removal;
module_param(removal, uint, 0);
MODULE_PARM_DESC(removal, "the error where the device goes; 0: it does not");

unsigned int rust_test_removal(void)
{
	return removal;
}

bool rust_test_is_iwarp(struct ib_device *device, u32 port_num)
{
	return rdma_protocol_iwarp(device, port_num);
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
