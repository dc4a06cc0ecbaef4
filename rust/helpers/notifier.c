// SPDX-License-Identifier: GPL-2.0

#include <linux/netdevice.h>
#include <net/neighbour.h>

#include "rust_rdma_cm.h"

struct net_device *rust_rdma_netdev_notifier_info_to_dev(void *info)
{
	return netdev_notifier_info_to_dev(info);
}

/*
 * Copies a neighbour consistently, without a reference to its device. Returns false if the protocol
 * has longer addresses than IPv6. The copy does not tell whether the link-layer address is valid,
 * which requires the neighbour's lock.
 *
 * Repeats: drivers/infiniband/core/cma.c cma_netevent_callback da0b034beb37
 */
bool rust_rdma_neigh_read(void *ptr, struct rust_rdma_neigh *out)
{
	struct neighbour *neigh = ptr;
	unsigned int key_len = neigh->tbl->key_len;

	if (key_len > sizeof(out->addr))
		return false;
	memset(out, 0, sizeof(*out));
	out->dev = neigh->dev;
	out->family = neigh->tbl->family;
	memcpy(out->addr, neigh->primary_key, key_len);
	out->hw_addr_len = min_t(u8, neigh->dev->addr_len, sizeof(out->hw_addr));
	neigh_ha_snapshot(out->hw_addr, neigh, neigh->dev);
	return true;
}
