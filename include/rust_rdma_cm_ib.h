/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers for rust/ib: inline functions and macros of the RDMA headers.
 *
 * A helper that only wraps a C function or macro is called rust_rdma_ and the name of that
 * function.
 */
#ifndef RUST_RDMA_CM_IB_H
#define RUST_RDMA_CM_IB_H

#include <linux/socket.h>
#include <linux/sysfs.h>
#include <linux/types.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

/* rust/helpers/debug.c */
enum rust_rdma_cm_failure {
	RUST_RDMA_CM_ADDR_UNRESOLVED,
	RUST_RDMA_CM_ADDR_WITHOUT_DEVICE,
	RUST_RDMA_CM_ADDR_QKEY,
	RUST_RDMA_CM_ROUTE_UNRESOLVED,
	RUST_RDMA_CM_SERVICE_UNRESOLVED,
	RUST_RDMA_CM_NOT_ESTABLISHED,
	RUST_RDMA_CM_REJECTED,
	RUST_RDMA_CM_SIDR_REFUSED,
	RUST_RDMA_CM_MULTICAST_FAILED,
};

void rust_rdma_cm_debug(struct rdma_cm_id *id, enum rust_rdma_cm_failure failure,
			int status);

/* rust/helpers/ib_verbs.c */
struct net *rust_rdma_ib_device_net(const struct ib_device *device);
bool rust_rdma_cap_ib_cm(const struct ib_device *device, u32 port_num);
bool rust_rdma_cap_iw_cm(const struct ib_device *device, u32 port_num);
bool rust_rdma_cap_opa_ah(const struct ib_device *device, u32 port_num);
bool rust_rdma_cap_ib_sa(const struct ib_device *device, u32 port_num);
bool rust_rdma_cap_af_ib(const struct ib_device *device, u32 port_num);
bool rust_rdma_cap_eth_ah(const struct ib_device *device, u32 port_num);
bool rust_rdma_protocol_ib(const struct ib_device *device, u32 port_num);
bool rust_rdma_protocol_roce(const struct ib_device *device, u32 port_num);
bool rust_rdma_protocol_roce_udp_encap(const struct ib_device *device,
				       u32 port_num);
u32 rust_rdma_ah_find_type(struct ib_device *device, u32 port_num);

/* The maker of a queue pair, as the current task sees it. */
enum rust_rdma_qp_maker {
	RUST_RDMA_QP_MAKER_NONE,	/* there is no such queue pair */
	RUST_RDMA_QP_MAKER_CALLER,	/* the current process */
	RUST_RDMA_QP_MAKER_KERNEL,
	RUST_RDMA_QP_MAKER_PROCESS,	/* another one */
};

/* The queue pair of another process. */
struct rust_rdma_named_qp {
	u32 user;		/* the effective user, in the initial user namespace */
	bool is_shared_target;	/* of an XRC domain that has an inode */
};

enum rust_rdma_qp_maker rust_rdma_named_qp(struct ib_device *device, u32 number,
					   struct rust_rdma_named_qp *found);
int rust_rdma_gid_tbl_len(const struct ib_device *device, u32 port_num);

/* rust/helpers/ib_addr.c */
u32 rust_rdma_iboe_get_mtu(int mtu);
bool rust_rdma_known_neigh(struct sockaddr *src, const struct sockaddr *dst,
			   struct rdma_dev_addr *addr, struct neighbour **asked);
void rust_rdma_forget_neigh(struct neighbour *neigh);

/* rust/helpers/ib_counters.c */
void rust_rdma_sysfs_attr_init(struct attribute *attr);

/* rust/helpers/rdma_ucm.c */
int ucma_event_handler(struct rdma_cm_id *cm_id, struct rdma_cm_event *event);

#endif /* RUST_RDMA_CM_IB_H */
