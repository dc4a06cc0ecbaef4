/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What ib_core shares with the connection manager it was built with, but no
 * installed header declares: prototypes of exported functions, and the layout of
 * the object that "rdma resource show cm_id" reads.
 *
 * The offsets are those of struct rdma_id_private in the C connection manager.
 * tools/checks/layout compares them with the kernel that the module is built for.
 */
#ifndef RUST_RDMA_CM_CORE_PRIVATE_H
#define RUST_RDMA_CM_CORE_PRIVATE_H

#include <linux/build_bug.h>
#include <linux/sysfs.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/restrack.h>

struct ib_client_nl_info;

/* drivers/infiniband/core/core_priv.h */
int ib_cache_gid_parse_type_str(const char *buf);
const char *ib_cache_gid_type_str(enum ib_gid_type gid_type);
int ib_port_register_client_groups(struct ib_device *ibdev, u32 port_num,
				   const struct attribute_group **groups);
void ib_port_unregister_client_groups(struct ib_device *ibdev, u32 port_num,
				      const struct attribute_group **groups);
void rdma_copy_src_l2_addr(struct rdma_dev_addr *dev_addr,
			   const struct net_device *dev);
unsigned long roce_gid_type_mask_support(struct ib_device *ib_dev, u32 port);

/* Filled in by the get_global_nl_info callback of a client. */
struct ib_client_nl_info {
	struct sk_buff *nl_msg;
	struct device *cdev;
	u32 port;
	u64 abi;
};

/* drivers/infiniband/core/restrack.h */
void rdma_restrack_add(struct rdma_restrack_entry *res);
void rdma_restrack_del(struct rdma_restrack_entry *res);
void rdma_restrack_new(struct rdma_restrack_entry *res,
		       enum rdma_restrack_type type);
void rdma_restrack_set_name(struct rdma_restrack_entry *res, const char *caller);
void rdma_restrack_parent_name(struct rdma_restrack_entry *dst,
			       const struct rdma_restrack_entry *parent);

/* Offsets in struct rdma_id_private, and sizes, of what ib_core reads. */
#define RDMA_ID_PRIVATE_ID_SIZE 512
#define RDMA_ID_PRIVATE_STATE 612
#define RDMA_ID_PRIVATE_QP_NUM 752
#define RDMA_ID_PRIVATE_RES 776
#define RDMA_ID_PRIVATE_RES_SIZE 72

/* Offsets in struct rdma_cm_id, which is at the start of rdma_id_private. */
#define RDMA_CM_ID_DEVICE 0
#define RDMA_CM_ID_ROUTE 32
#define RDMA_CM_ID_PS 464
#define RDMA_CM_ID_QP_TYPE 468
#define RDMA_CM_ID_PORT_NUM 472

/*
 * The start of an object as ib_core sees it through container_of() from a
 * restrack entry of the type RDMA_RESTRACK_CM_ID.
 */
struct rdma_id_private_head {
	struct rdma_cm_id id;
	u8 reserved1[RDMA_ID_PRIVATE_STATE - sizeof(struct rdma_cm_id)];
	/* An enum rdma_cm_state, which netlink reports as a number. */
	u32 state;
	u8 reserved2[RDMA_ID_PRIVATE_QP_NUM - RDMA_ID_PRIVATE_STATE - sizeof(u32)];
	u32 qp_num;
	u8 reserved3[RDMA_ID_PRIVATE_RES - RDMA_ID_PRIVATE_QP_NUM - sizeof(u32)];
	struct rdma_restrack_entry res;
};

#endif /* RUST_RDMA_CM_CORE_PRIVATE_H */
