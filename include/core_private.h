/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that ib_core shares with the C connection manager, but that no installed header has:
 * prototypes of exported functions, and the layout of the object that "rdma resource show cm_id"
 * reads.
 *
 * The layout is that of struct rdma_id_private in the C connection manager. rust/helpers/layout.c
 * compares it with the source of that, where a build has it.
 */
#ifndef RUST_RDMA_CM_CORE_PRIVATE_H
#define RUST_RDMA_CM_CORE_PRIVATE_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/stddef.h>
#include <linux/sysfs.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <rdma/restrack.h>

struct ib_client_nl_info;
struct iw_cm_id;

/*
 * Repeats: drivers/infiniband/core/core_priv.h ib_cache_gid_parse_type_str 610aa2e7531b
 * Repeats: drivers/infiniband/core/core_priv.h ib_cache_gid_type_str 022679de8647
 * Repeats: drivers/infiniband/core/core_priv.h ib_port_register_client_groups 14af35b8dcb1
 * Repeats: drivers/infiniband/core/core_priv.h ib_port_unregister_client_groups 69642826f8b1
 * Repeats: drivers/infiniband/core/core_priv.h rdma_copy_src_l2_addr f7ea1b9b52ed
 * Repeats: drivers/infiniband/core/core_priv.h roce_gid_type_mask_support da11dfb4cc8b
 */
int ib_cache_gid_parse_type_str(const char *buf);
const char *ib_cache_gid_type_str(enum ib_gid_type gid_type);
int ib_port_register_client_groups(struct ib_device *ibdev, u32 port_num,
				   const struct attribute_group **groups);
void ib_port_unregister_client_groups(struct ib_device *ibdev, u32 port_num,
				      const struct attribute_group **groups);
void rdma_copy_src_l2_addr(struct rdma_dev_addr *dev_addr,
			   const struct net_device *dev);
unsigned long roce_gid_type_mask_support(struct ib_device *ib_dev, u32 port);

/*
 * The result of the get_global_nl_info callback of a client.
 *
 * Repeats: drivers/infiniband/core/core_priv.h ib_client_nl_info 0503044075c2
 */
struct ib_client_nl_info {
	struct sk_buff *nl_msg;
	struct device *cdev;
	u32 port;
	u64 abi;
};

/*
 * Repeats: drivers/infiniband/core/restrack.h rdma_restrack_add 64935965f895
 * Repeats: drivers/infiniband/core/restrack.h rdma_restrack_del 07f0bb4f95e4
 * Repeats: drivers/infiniband/core/restrack.h rdma_restrack_new 69878f1f2ae3
 * Repeats: drivers/infiniband/core/restrack.h rdma_restrack_set_name d3479df313a0
 * Repeats: drivers/infiniband/core/restrack.h rdma_restrack_parent_name 8b814528aa9d
 */
void rdma_restrack_add(struct rdma_restrack_entry *res);
void rdma_restrack_del(struct rdma_restrack_entry *res);
void rdma_restrack_new(struct rdma_restrack_entry *res,
		       enum rdma_restrack_type type);
void rdma_restrack_set_name(struct rdma_restrack_entry *res, const char *caller);
void rdma_restrack_parent_name(struct rdma_restrack_entry *dst,
			       const struct rdma_restrack_entry *parent);

/*
 * The first part of an object that ib_core finds with container_of() from a restrack entry of the
 * type RDMA_RESTRACK_CM_ID. ib_core does not read the fields called reserved, but their sizes
 * depend on the kernel's configuration. The functions below are those that read the object.
 *
 * Repeats: drivers/infiniband/core/cma_priv.h rdma_id_private c18bb8ed45f2
 * Repeats: drivers/infiniband/core/nldev.c fill_res_cm_id_entry 7e6487ae617e
 * Repeats: drivers/infiniband/core/restrack.c res_to_dev 58d31a9cb784 c975253d0617
 */
struct rdma_id_private_head {
	struct rdma_cm_id id;
	void *reserved_bind;
	struct hlist_node reserved_node;
	struct list_head reserved_lists[3];
	void *reserved_device;
	struct list_head reserved_multicast;
	int reserved_id;
	/*
	 * An enum rdma_cm_state, which netlink reports as a number.
	 *
	 * Repeats: drivers/infiniband/core/cma_priv.h rdma_cm_state d3543cdee291
	 */
	u32 state;
	u8 reserved_node_type;
	spinlock_t reserved_lock;
	struct mutex reserved_qp_mutex;
	struct completion reserved_completion;
	refcount_t reserved_refcount;
	struct mutex reserved_handler_mutex;
	int reserved_backlog;
	int reserved_timeout;
	void *reserved_query;
	int reserved_query_id;
	void *reserved_context;
	/* The owner of the identifier in Rust, if it is a kernel consumer, in place of two u32. */
	void *consumer;
	u32 qp_num;
	u32 reserved_options;
	u8 reserved_flags[8];
	u32 reserved_gid_type;
	struct rdma_restrack_entry res;
	/* The result of rdma_iw_cm_id(). C has it in place of reserved_context. */
	struct iw_cm_id *iw;
};

/* Sizes and offsets of this compiler; rust/bindings/layout.rs compares them with those of Rust. */
enum {
	RDMA_ID_PRIVATE_ID_SIZE = sizeof(struct rdma_cm_id),
	RDMA_ID_PRIVATE_STATE = offsetof(struct rdma_id_private_head, state),
	RDMA_ID_PRIVATE_QP_NUM = offsetof(struct rdma_id_private_head, qp_num),
	RDMA_ID_PRIVATE_RES = offsetof(struct rdma_id_private_head, res),
	RDMA_ID_PRIVATE_RES_SIZE = sizeof(struct rdma_restrack_entry),
	/* Offsets in struct rdma_cm_id, which is the first field. */
	RDMA_CM_ID_DEVICE = offsetof(struct rdma_cm_id, device),
	RDMA_CM_ID_ROUTE = offsetof(struct rdma_cm_id, route),
	RDMA_CM_ID_PS = offsetof(struct rdma_cm_id, ps),
	RDMA_CM_ID_QP_TYPE = offsetof(struct rdma_cm_id, qp_type),
	RDMA_CM_ID_PORT_NUM = offsetof(struct rdma_cm_id, port_num),
};

#endif /* RUST_RDMA_CM_CORE_PRIVATE_H */
