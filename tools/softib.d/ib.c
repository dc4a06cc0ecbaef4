// SPDX-License-Identifier: GPL-2.0
/*
 * Ports with an InfiniBand link layer, for a copy of soft-RoCE that the script "mend" has changed to
 * call what is here.
 *
 * A port's LID is the lower half of its interface's IPv4 address, so all ports of a subnet have the
 * same upper half; the subnet manager is at 1. A packet is what InfiniBand has on its wire, from the
 * local route header to the invariant CRC, in UDP. To a multicast LID it goes as a broadcast: who is
 * no member drops it.
 *
 * With the parameter "opa" the ports have the capabilities of Omni-Path and its LIDs of 32 bits, whose upper
 * half the parameter is. The local route header, which is none of Omni-Path's, is followed by the upper halves.
 * The LID of a group has 16 bits. As with Omni-Path's driver, the GID with index 1 is made from the LID, and a
 * destination GID that is made from a long LID says this LID and is not sent: who receives a datagram from such a LID
 * gets a GRH, and an address vector for one has it, too.
 *
 * With the parameter "lmc" each port has a range of LIDs, which the lower bits choose from: the lower half of the
 * address is that many bits further up.
 */
#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/inetdevice.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <linux/moduleparam.h>
#include <rdma/ib_cache.h>
#include <rdma/opa_addr.h>

#include "rxe.h"
#include "rxe_loc.h"
#include "ib.h"

static LIST_HEAD(softib_devices);
static DEFINE_SPINLOCK(softib_lock);	/* of this list */
static DEFINE_MUTEX(softib_sockets);	/* two devices of a namespace that go at once share them */

static int softib_opa = -1;
module_param_named(opa, softib_opa, int, 0444);
MODULE_PARM_DESC(opa, "Upper half of the LIDs of Omni-Path's ports, or -1: InfiniBand's");

static uint softib_lmc;
module_param_named(lmc, softib_lmc, uint, 0444);
MODULE_PARM_DESC(lmc, "The number of low bits of a LID that do not matter for where a packet goes, at most 7");

static bool softib_is_opa(void)
{
	return softib_opa >= 0;
}

/* Without the subnet management, which InfiniBand's ports do not have here either. */
u32 softib_core_cap_flags(void)
{
	u32 flags = softib_is_opa() ? RDMA_CORE_PORT_INTEL_OPA | RDMA_CORE_CAP_OPA_AH : RDMA_CORE_PORT_IBA_IB;

	return flags & ~RDMA_CORE_CAP_IB_SMI;
}

u32 softib_max_mad_size(void)
{
	return softib_is_opa() ? OPA_MGMT_MAD_SIZE : IB_MGMT_MAD_SIZE;
}

static u32 softib_upper_half(void)
{
	return softib_is_opa() ? (u32)softib_opa << 16 : 0;
}

/* It has no place in InfiniBand's fields. */
static bool softib_is_long(u32 lid)
{
	return lid > 0xffff;
}

static u32 softib_path_bits(void)
{
	return (1U << softib_lmc) - 1;
}

/* The LID without the bits that choose one of a port's. */
static u32 softib_base(u32 lid)
{
	return lid & ~softib_path_bits();
}

static bool softib_is_multicast(u32 dlid)
{
	return dlid >= SOFTIB_MULTICAST_LID && dlid <= 0xffff;
}

static const u16 softib_pkeys[SOFTIB_PKEYS] = { IB_DEFAULT_PKEY_FULL, 0x8001 };

/* The lookup returns the device that a packet to this address or, without one, from this interface reaches. */
static struct rxe_dev *softib_lookup(struct net_device *ndev, __be32 ip)
{
	struct rxe_dev *rxe, *found = NULL;

	spin_lock_bh(&softib_lock);
	list_for_each_entry(rxe, &softib_devices, softib_list) {
		if (ip ? ip != READ_ONCE(rxe->softib_ip) ||
			 !net_eq(dev_net(ndev), dev_net(rxe->softib_ndev)) :
			 ndev != rxe->softib_ndev)
			continue;
		/* One that goes is there until its last user has left, perhaps beside its successor. */
		if (!ib_device_try_get(&rxe->ib_dev))
			continue;
		found = rxe;
		break;
	}
	spin_unlock_bh(&softib_lock);
	return found;
}

struct rxe_dev *softib_get(struct net_device *ndev)
{
	return softib_lookup(ndev, 0);
}

/* Not by the interface where there is an address: between two of one namespace packets go over "lo". */
struct rxe_dev *softib_find(struct sk_buff *skb)
{
	if (skb->protocol != htons(ETH_P_IP))
		return NULL;
	return softib_lookup(skb->dev, ipv4_is_lbcast(ip_hdr(skb)->daddr) ? 0 : ip_hdr(skb)->daddr);
}

/*
 * The core is not told of the interface, else soft-RoCE's own module, which has the same driver id for the
 * sake of user space, would find this device by it and take it for one of its own.
 */
struct net_device *softib_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *ndev = to_rdev(ibdev)->softib_ndev;

	dev_hold(ndev);
	return ndev;
}

static __be32 softib_address(struct net_device *ndev)
{
	struct in_device *in_dev;
	struct in_ifaddr *ifa;
	__be32 ip = 0;
	u32 lid;

	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev) {
			if (ifa->ifa_flags & IFA_F_SECONDARY)
				continue;
			ip = ifa->ifa_local;
			break;
		}
	}
	rcu_read_unlock();
	lid = (u32)(u16)ntohl(ip) << softib_lmc;
	return lid && lid < SOFTIB_MULTICAST_LID ? ip : 0;
}

static u32 softib_lid(struct rxe_dev *rxe)
{
	u16 lid = ntohl(READ_ONCE(rxe->softib_ip));

	return lid ? softib_upper_half() | (u32)lid << softib_lmc : 0;
}

static bool softib_is_active(struct rxe_dev *rxe)
{
	return ib_get_curr_port_state(rxe->softib_ndev) == IB_PORT_ACTIVE && softib_lid(rxe);
}

/* The address or the state of the interface may have changed: who needs to know is told. */
bool softib_update(struct rxe_dev *rxe)
{
	struct ib_event ev = { .device = &rxe->ib_dev, .element.port_num = 1 };
	__be32 ip = softib_address(rxe->softib_ndev);
	bool was = rxe->softib_active;

	if (ip != rxe->softib_ip) {
		WRITE_ONCE(rxe->softib_ip, ip);
		if (softib_is_opa()) {
			ev.event = IB_EVENT_GID_CHANGE;
			ib_dispatch_event(&ev);
		}
		ev.event = IB_EVENT_LID_CHANGE;
		ib_dispatch_event(&ev);
	}
	rxe->softib_active = softib_is_active(rxe);
	if (rxe->softib_active != was) {
		if (was)
			rxe_port_down(rxe);
		else
			rxe_port_up(rxe);
	}
	return rxe->softib_active;
}

static int softib_inetaddr(struct notifier_block *nb, unsigned long event, void *arg)
{
	struct in_ifaddr *ifa = arg;
	struct rxe_dev *rxe = softib_get(ifa->ifa_dev->dev);

	if (rxe) {
		softib_update(rxe);
		ib_device_put(&rxe->ib_dev);
	}
	return NOTIFY_OK;
}

static struct notifier_block softib_inetaddr_notifier = {
	.notifier_call = softib_inetaddr,
};

int softib_init(void)
{
	if (softib_lmc > SOFTIB_MAX_LMC)
		return -EINVAL;
	return register_inetaddr_notifier(&softib_inetaddr_notifier);
}

void softib_exit(void)
{
	unregister_inetaddr_notifier(&softib_inetaddr_notifier);
}

void softib_add(struct rxe_dev *rxe, struct net_device *ndev)
{
	struct ib_port_attr *attr = &rxe->port.attr;

	attr->gid_tbl_len = softib_is_opa() ? 2 : 1;
	attr->pkey_tbl_len = SOFTIB_PKEYS;
	attr->port_cap_flags = IB_PORT_SYS_IMAGE_GUID_SUP | IB_PORT_CM_SUP;
	attr->sm_lid = softib_upper_half() | SOFTIB_SM_ADDRESS << softib_lmc;
	attr->lmc = softib_lmc;
	attr->subnet_timeout = 18;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	rxe->attr.max_pkeys = SOFTIB_PKEYS;

	dev_hold(ndev);
	rxe->softib_ndev = ndev;
	rxe->softib_ip = softib_address(ndev);
	spin_lock_bh(&softib_lock);
	list_add_tail(&rxe->softib_list, &softib_devices);
	spin_unlock_bh(&softib_lock);
}

void softib_del(struct rxe_dev *rxe)
{
	if (!rxe->softib_ndev)
		return;
	spin_lock_bh(&softib_lock);
	list_del(&rxe->softib_list);
	spin_unlock_bh(&softib_lock);
	mutex_lock(&softib_sockets);
	rxe_net_del(&rxe->ib_dev);
	mutex_unlock(&softib_sockets);
	dev_put(rxe->softib_ndev);
	rxe->softib_ndev = NULL;
}

/* Not by the driver id, which soft-RoCE's devices have as well. */
void softib_del_all(void)
{
	struct rxe_dev *rxe;
	bool empty = false, got;

	while (!empty) {
		got = false;
		spin_lock_bh(&softib_lock);
		empty = list_empty(&softib_devices);
		list_for_each_entry(rxe, &softib_devices, softib_list) {
			got = ib_device_try_get(&rxe->ib_dev);
			if (got)
				break;
		}
		spin_unlock_bh(&softib_lock);
		if (got)
			ib_unregister_device_and_put(&rxe->ib_dev);
		else if (!empty)
			msleep(10);	/* it is going */
	}
}

int softib_query_port(struct rxe_dev *rxe, struct ib_port_attr *attr)
{
	bool carrier = ib_get_curr_port_state(rxe->softib_ndev) == IB_PORT_ACTIVE;

	attr->lid = softib_lid(rxe);
	if (!carrier)
		attr->state = IB_PORT_DOWN;
	else
		attr->state = attr->lid ? IB_PORT_ACTIVE : IB_PORT_INIT;
	attr->phys_state = carrier ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_POLLING;
	return 0;
}

static void softib_own_gid(struct rxe_dev *rxe, union ib_gid *gid)
{
	gid->global.subnet_prefix = rxe->port.subnet_prefix;
	gid->global.interface_id = rxe->port.port_guid;
}

static void softib_opa_gid(struct rxe_dev *rxe, u32 lid, union ib_gid *gid)
{
	gid->global.subnet_prefix = rxe->port.subnet_prefix;
	gid->global.interface_id = OPA_MAKE_ID(lid);
}

int softib_query_gid(struct rxe_dev *rxe, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (index == 0)
		softib_own_gid(rxe, gid);
	else if (index == OPA_GID_INDEX && softib_is_opa())
		softib_opa_gid(rxe, softib_lid(rxe), gid);
	return 0;
}

u16 softib_pkey(unsigned int index)
{
	return softib_pkeys[index < SOFTIB_PKEYS ? index : 0];
}

/* The index of the partition that a packet with this key is of, or below 0 if it is none of the queue pair's. */
int softib_find_pkey(struct rxe_qp *qp, u16 pkey)
{
	int i;

	if (qp_type(qp) != IB_QPT_GSI)
		return pkey_match(pkey, softib_pkey(qp->attr.pkey_index)) ? qp->attr.pkey_index : -EINVAL;
	for (i = 0; i < SOFTIB_PKEYS; i++)
		if (pkey_match(pkey, softib_pkeys[i]))
			return i;
	return -EINVAL;
}

static enum rdma_ah_attr_type softib_attr_type(void)
{
	return softib_is_opa() ? RDMA_AH_ATTR_TYPE_OPA : RDMA_AH_ATTR_TYPE_IB;
}

/* Programs have no other way to name a long LID than a GID. */
static u32 softib_attr_dlid(struct rdma_ah_attr *attr)
{
	if (softib_is_opa() && rdma_ah_get_ah_flags(attr) & IB_AH_GRH &&
	    ib_is_opa_gid(&rdma_ah_read_grh(attr)->dgid))
		return opa_get_lid_from_gid(&rdma_ah_read_grh(attr)->dgid);
	return rdma_ah_get_dlid(attr);
}

int softib_check_attr(struct rdma_ah_attr *attr)
{
	u32 dlid = softib_attr_dlid(attr);
	bool grh = rdma_ah_get_ah_flags(attr) & IB_AH_GRH;

	if (attr->type != softib_attr_type() || !dlid)
		return -EINVAL;
	return softib_is_multicast(dlid) && !grh ? -EINVAL : 0;
}

void softib_init_av(struct rdma_ah_attr *attr, struct rxe_av *av)
{
	struct softib_path *path = softib_path(av);

	rxe_av_from_attr(rdma_ah_get_port_num(attr), av, attr);
	av->network_type = RXE_NETWORK_TYPE_IPV4;
	path->dlid = softib_attr_dlid(attr);
	path->sl = rdma_ah_get_sl(attr);
	path->bits = rdma_ah_get_path_bits(attr);
	path->grh = !!(rdma_ah_get_ah_flags(attr) & IB_AH_GRH);
}

/* The management datagrams compare it with that of an answer. */
static void softib_set_made_grh(struct rdma_ah_attr *attr, u32 dlid)
{
	rdma_ah_set_grh(attr, NULL, 0, 0, 1, 0);
	rdma_ah_set_subnet_prefix(attr, cpu_to_be64(0xfe80ULL << 48));
	rdma_ah_set_interface_id(attr, OPA_MAKE_ID(dlid));
}

void softib_av_to_attr(struct rxe_av *av, struct rdma_ah_attr *attr)
{
	struct softib_path *path = softib_path(av);

	attr->type = softib_attr_type();
	rdma_ah_set_port_num(attr, av->port_num);
	rdma_ah_set_dlid(attr, path->dlid);
	rdma_ah_set_sl(attr, path->sl);
	rdma_ah_set_path_bits(attr, path->bits);
	if (path->grh)
		rdma_ah_set_grh(attr, (union ib_gid *)&av->grh.dgid, av->grh.flow_label,
				av->grh.sgid_index, av->grh.hop_limit, av->grh.traffic_class);
	else if (softib_is_long(path->dlid))
		softib_set_made_grh(attr, path->dlid);
}

/* Puts InfiniBand's headers before that of the transport. UDP and IP follow. */
void softib_push(struct rxe_av *av, struct rxe_pkt_info *pkt, struct sk_buff *skb)
{
	struct softib_path *path = softib_path(av);
	__be32 ip = READ_ONCE(pkt->rxe->softib_ip);
	u32 own = softib_lid(pkt->rxe), slid = own | (path->bits & softib_path_bits());
	bool has_grh = path->grh && !(softib_is_long(path->dlid) && ib_is_opa_gid((union ib_gid *)&av->grh.dgid));
	struct softib_upper *upper;
	struct softib_lrh *lrh;
	struct ib_grh *grh;

	pkt->mask &= ~RXE_GRH_MASK;
	if (has_grh) {
		pkt->mask |= RXE_GRH_MASK;
		grh = __skb_push(skb, sizeof(*grh));
		grh->version_tclass_flow = cpu_to_be32(6U << 28 | av->grh.traffic_class << 20 |
						       (av->grh.flow_label & 0xfffff));
		grh->paylen = cpu_to_be16(pkt->paylen);
		grh->next_hdr = 0x1b;
		grh->hop_limit = av->grh.hop_limit;
		softib_query_gid(pkt->rxe, av->grh.sgid_index, &grh->sgid);
		memcpy(&grh->dgid, &av->grh.dgid, sizeof(grh->dgid));
	}
	if (softib_is_opa()) {
		upper = __skb_push(skb, sizeof(*upper));
		upper->dlid = cpu_to_be16(path->dlid >> 16);
		upper->slid = cpu_to_be16(slid >> 16);
	}
	lrh = __skb_push(skb, sizeof(*lrh));
	lrh->vl = softib_is_opa() ? SOFTIB_LONG_LIDS : 0;
	lrh->sl_lnh = path->sl << 4 | (has_grh ? 3 : 2);
	lrh->dlid = cpu_to_be16(path->dlid);
	lrh->words = cpu_to_be16(skb->len / 4);
	lrh->slid = cpu_to_be16(slid);

	/* Each sender writes the same here. */
	av->sgid_addr._sockaddr_in.sin_addr.s_addr = ip;
	av->dgid_addr._sockaddr_in.sin_addr.s_addr = softib_is_multicast(path->dlid) ?
		htonl(INADDR_BROADCAST) : htonl((ntohl(ip) & 0xffff0000) | (u16)path->dlid >> softib_lmc);
	if (softib_base(path->dlid) == own)
		pkt->mask |= RXE_LOOPBACK_MASK;
}

unsigned int softib_hdr_len(struct rxe_pkt_info *pkt)
{
	return sizeof(struct softib_lrh) + (softib_is_opa() ? sizeof(struct softib_upper) : 0) +
	       (pkt->mask & RXE_GRH_MASK ? sizeof(struct ib_grh) : 0);
}

struct softib_lrh *softib_lrh(struct rxe_pkt_info *pkt)
{
	return (struct softib_lrh *)(pkt->hdr - softib_hdr_len(pkt));
}

struct ib_grh *softib_grh(struct rxe_pkt_info *pkt)
{
	return pkt->mask & RXE_GRH_MASK ? (struct ib_grh *)pkt->hdr - 1 : NULL;
}

static struct softib_upper *softib_upper(struct rxe_pkt_info *pkt)
{
	return (struct softib_upper *)(softib_lrh(pkt) + 1);
}

u32 softib_dlid(struct rxe_pkt_info *pkt)
{
	return (softib_is_opa() ? be16_to_cpu(softib_upper(pkt)->dlid) << 16 : 0) | be16_to_cpu(softib_lrh(pkt)->dlid);
}

u32 softib_slid(struct rxe_pkt_info *pkt)
{
	return (softib_is_opa() ? be16_to_cpu(softib_upper(pkt)->slid) << 16 : 0) | be16_to_cpu(softib_lrh(pkt)->slid);
}

u8 softib_dlid_bits(struct rxe_pkt_info *pkt)
{
	return softib_is_multicast(softib_dlid(pkt)) ? 0 : softib_dlid(pkt) & softib_path_bits();
}

u8 softib_sl(struct rxe_pkt_info *pkt)
{
	return softib_lrh(pkt)->sl_lnh >> 4;
}

/*
 * The invariant CRC of the headers before the transport's. Fields that change on the way count as
 * ones: with a GRH that is all of the LRH.
 */
u32 softib_icrc(struct rxe_pkt_info *pkt)
{
	struct softib_lrh lrh = *softib_lrh(pkt);
	struct ib_grh grh;

	if (!softib_grh(pkt)) {
		lrh.vl |= 0xf0;
		return crc32_le(~0, (u8 *)&lrh, sizeof(lrh));
	}
	memset(&lrh, 0xff, sizeof(lrh));
	grh = *softib_grh(pkt);
	grh.version_tclass_flow |= cpu_to_be32(0x0fffffff);
	grh.hop_limit = 0xff;
	return crc32_le(crc32_le(~0, (u8 *)&lrh, sizeof(lrh)), (u8 *)&grh, sizeof(grh));
}

/* From UDP's payload, which is where it points, to the transport's header. */
int softib_pull(struct rxe_pkt_info *pkt)
{
	struct softib_lrh *lrh = (struct softib_lrh *)pkt->hdr;
	unsigned int len;

	pkt->mask = 0;
	if (pkt->paylen < sizeof(*lrh) || (lrh->vl & 0xf) != (softib_is_opa() ? SOFTIB_LONG_LIDS : 0))
		return -EINVAL;
	switch (lrh->sl_lnh & 3) {
	case 2:
		break;
	case 3:
		pkt->mask = RXE_GRH_MASK;
		break;
	default:
		return -EINVAL;
	}
	len = softib_hdr_len(pkt);
	if (pkt->paylen < len + RXE_BTH_BYTES || be16_to_cpu(lrh->words) * 4 != pkt->paylen)
		return -EINVAL;
	pkt->hdr += len;
	pkt->paylen -= len;
	return 0;
}

/* Returns true if the packet is for this port. A GID that is there has to be right as well. */
int softib_check_dest(struct rxe_dev *rxe, struct rxe_pkt_info *pkt)
{
	u32 dlid = softib_dlid(pkt);
	struct ib_grh *grh = softib_grh(pkt);
	union ib_gid own;

	if (softib_is_multicast(dlid))
		return grh && bth_qpn(pkt) == IB_MULTICAST_QPN ? 0 : -EINVAL;
	if (softib_base(dlid) != softib_lid(rxe) || bth_qpn(pkt) == IB_MULTICAST_QPN)
		return -EINVAL;
	if (grh && softib_is_opa() && ib_is_opa_gid(&grh->dgid))
		softib_opa_gid(rxe, dlid, &own);
	else
		softib_own_gid(rxe, &own);
	return grh && memcmp(&grh->dgid, &own, sizeof(own)) ? -EINVAL : 0;
}

/* A connected queue pair hears its peer only. */
int softib_check_source(struct rxe_qp *qp, struct rxe_pkt_info *pkt)
{
	u32 slid = softib_slid(pkt);

	return slid == softib_path(&qp->pri_av)->dlid || slid == softib_path(&qp->alt_av)->dlid ?
		0 : -EINVAL;
}

/* The receiver of such a datagram may know no other way to answer than by a GID. */
static bool softib_has_long_lid(struct rxe_pkt_info *pkt)
{
	return softib_is_long(softib_slid(pkt)) && !softib_is_multicast(softib_dlid(pkt));
}

/* The GIDs are those that the management datagrams expect. */
static void softib_made_grh(struct rxe_pkt_info *pkt, struct ib_grh *grh)
{
	memset(grh, 0, sizeof(*grh));
	grh->version_tclass_flow = cpu_to_be32(6U << 28);
	grh->next_hdr = 0x1b;
	grh->hop_limit = 1;
	softib_opa_gid(pkt->rxe, softib_slid(pkt), &grh->sgid);
	softib_own_gid(pkt->rxe, &grh->dgid);
}

/* The first 40 bytes of what a datagram's receiver gets: they mean something only where there is a GRH. */
void softib_received_grh(struct rxe_pkt_info *pkt, void *hdr)
{
	if (pkt->mask & RXE_GRH_MASK)
		memcpy(hdr, softib_grh(pkt), sizeof(struct ib_grh));
	else if (softib_has_long_lid(pkt))
		softib_made_grh(pkt, hdr);
	else
		memset(hdr, 0x6b, sizeof(struct ib_grh));
}

int softib_wc_flags(struct rxe_qp *qp, struct rxe_pkt_info *pkt)
{
	return (qp_type(qp) == IB_QPT_UD || qp_type(qp) == IB_QPT_GSI) &&
	       (pkt->mask & RXE_GRH_MASK || softib_has_long_lid(pkt)) ? IB_WC_GRH : 0;
}
