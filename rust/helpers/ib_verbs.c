// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>
#include <linux/sched.h>
#include <rdma/ib_verbs.h>
#include <rdma/restrack.h>

#include "rust_rdma_cm_ib.h"

struct net *rust_rdma_ib_device_net(const struct ib_device *device)
{
	return read_pnet(&device->coredev.rdma_net);
}

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

/*
 * A thread that has ended is in no group of threads, and another process may have got the number of
 * its process. That one has begun later.
 */
static bool is_of_current_process(const struct task_struct *task)
{
	return task->tgid == current->tgid &&
	       task->start_time >= current->group_leader->start_time;
}

enum rust_rdma_qp_maker rust_rdma_named_qp(struct ib_device *device, u32 number,
					   struct rust_rdma_named_qp *found)
{
	enum rust_rdma_qp_maker maker = RUST_RDMA_QP_MAKER_PROCESS;
	struct rdma_restrack_entry *res;

	res = rdma_restrack_get_byid(device, RDMA_RESTRACK_QP, number);
	if (IS_ERR(res))
		return RUST_RDMA_QP_MAKER_NONE;
	/* The entry, its task and the queue pair stay as long as the entry is held. */
	if (rdma_is_kernel_res(res) || !res->task) {
		maker = RUST_RDMA_QP_MAKER_KERNEL;
	} else if (is_of_current_process(res->task)) {
		maker = RUST_RDMA_QP_MAKER_CALLER;
	} else {
		const struct ib_qp *qp = container_of(res, struct ib_qp, res);

		found->user = from_kuid(&init_user_ns, task_cred_xxx(res->task, euid));
		found->is_shared_target = qp->qp_type == IB_QPT_XRC_TGT && qp->xrcd &&
					  qp->xrcd->inode;
	}
	rdma_restrack_put(res);
	return maker;
}

int rust_rdma_gid_tbl_len(const struct ib_device *device, u32 port_num)
{
	return device->port_data[port_num].immutable.gid_tbl_len;
}
