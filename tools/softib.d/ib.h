/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that turn the ports of soft-RoCE into InfiniBand's (ib.c), and those for the numbers of objects (index.c).
 */
#ifndef SOFTIB_H
#define SOFTIB_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>
#include <uapi/rdma/rdma_user_rxe.h>

#define SOFTIB_UDP_PORT		4792
#define SOFTIB_SM_ADDRESS	1
#define SOFTIB_MAX_LMC		7
#define SOFTIB_MULTICAST_LID	0xc000
#define SOFTIB_PKEYS		2

/* The local route header, as InfiniBand has it. */
struct softib_lrh {
	u8	vl;
	u8	sl_lnh;
	__be16	dlid;
	__be16	words;
	__be16	slid;
};

/* The link version of a port with LIDs of 32 bits, in the lower half of "vl": their upper halves follow. */
#define SOFTIB_LONG_LIDS	1

struct softib_upper {
	__be16	dlid;
	__be16	slid;
};

/* At most, between UDP's header and the base transport header. */
#define SOFTIB_HDR	(sizeof(struct softib_lrh) + sizeof(struct softib_upper) + sizeof(struct ib_grh))

/* The parts of an address vector besides the global route: where soft-RoCE keeps the destination's MAC. */
struct softib_path {
	u32	dlid;
	u8	sl : 4;
	u8	grh : 1;
	u8	bits;
} __packed;

static inline struct softib_path *softib_path(struct rxe_av *av)
{
	BUILD_BUG_ON(sizeof(struct softib_path) > sizeof(av->dmac));
	return (struct softib_path *)av->dmac;
}

struct rxe_dev;
struct rxe_pkt_info;
struct rxe_qp;
struct sk_buff;

u32 softib_core_cap_flags(void);
u32 softib_max_mad_size(void);
int softib_init(void);
void softib_exit(void);
void softib_add(struct rxe_dev *rxe, struct net_device *ndev);
void softib_del(struct rxe_dev *rxe);
void softib_del_all(void);
struct rxe_dev *softib_get(struct net_device *ndev);
struct rxe_dev *softib_find(struct sk_buff *skb);
struct net_device *softib_get_netdev(struct ib_device *ibdev, u32 port);
bool softib_update(struct rxe_dev *rxe);
int softib_query_port(struct rxe_dev *rxe, struct ib_port_attr *attr);
int softib_query_gid(struct rxe_dev *rxe, int index, union ib_gid *gid);
u16 softib_pkey(unsigned int index);
int softib_find_pkey(struct rxe_qp *qp, u16 pkey);

int softib_check_attr(struct rdma_ah_attr *attr);
void softib_init_av(struct rdma_ah_attr *attr, struct rxe_av *av);
void softib_av_to_attr(struct rxe_av *av, struct rdma_ah_attr *attr);

void softib_push(struct rxe_av *av, struct rxe_pkt_info *pkt, struct sk_buff *skb);
unsigned int softib_hdr_len(struct rxe_pkt_info *pkt);
u32 softib_icrc(struct rxe_pkt_info *pkt);
int softib_pull(struct rxe_pkt_info *pkt);
struct softib_lrh *softib_lrh(struct rxe_pkt_info *pkt);
struct ib_grh *softib_grh(struct rxe_pkt_info *pkt);
u32 softib_dlid(struct rxe_pkt_info *pkt);
u32 softib_slid(struct rxe_pkt_info *pkt);
u8 softib_dlid_bits(struct rxe_pkt_info *pkt);
u8 softib_sl(struct rxe_pkt_info *pkt);
int softib_check_dest(struct rxe_dev *rxe, struct rxe_pkt_info *pkt);
int softib_check_source(struct rxe_qp *qp, struct rxe_pkt_info *pkt);
void softib_received_grh(struct rxe_pkt_info *pkt, void *hdr);
int softib_wc_flags(struct rxe_qp *qp, struct rxe_pkt_info *pkt);

int softib_alloc_index(struct rxe_pool *pool, struct rxe_pool_elem *elem, gfp_t gfp);
void *softib_erase_index(struct xarray *xa, u32 index);
void *softib_store_index(struct rxe_pool_elem *elem);

#endif
