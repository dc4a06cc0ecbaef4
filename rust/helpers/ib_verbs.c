// SPDX-License-Identifier: GPL-2.0

#include <rdma/ib_verbs.h>

#include "rust_rdma_cm_ib.h"

bool rust_rdma_cap_ib_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_ib_cm(device, port_num);
}

bool rust_rdma_cap_iw_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_iw_cm(device, port_num);
}

bool rust_rdma_cap_opa_ah(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_opa_ah((struct ib_device *)device, port_num);
}

bool rust_rdma_cap_ib_sa(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_ib_sa(device, port_num);
}

bool rust_rdma_cap_af_ib(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_af_ib(device, port_num);
}

bool rust_rdma_cap_eth_ah(const struct ib_device *device, u32 port_num)
{
	return rdma_cap_eth_ah(device, port_num);
}

bool rust_rdma_protocol_ib(const struct ib_device *device, u32 port_num)
{
	return rdma_protocol_ib(device, port_num);
}

bool rust_rdma_protocol_roce(const struct ib_device *device, u32 port_num)
{
	return rdma_protocol_roce(device, port_num);
}

bool rust_rdma_protocol_roce_udp_encap(const struct ib_device *device,
				       u32 port_num)
{
	return rdma_protocol_roce_udp_encap(device, port_num);
}

u32 rust_rdma_ah_find_type(struct ib_device *device, u32 port_num)
{
	return rdma_ah_find_type(device, port_num);
}

int rust_rdma_gid_tbl_len(const struct ib_device *device, u32 port_num)
{
	return device->port_data[port_num].immutable.gid_tbl_len;
}
