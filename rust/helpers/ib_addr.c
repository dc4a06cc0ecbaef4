// SPDX-License-Identifier: GPL-2.0

#include <rdma/ib_addr.h>

#include "rust_rdma_cm_ib.h"

u32 rust_rdma_iboe_get_mtu(int mtu)
{
	return iboe_get_mtu(mtu);
}
