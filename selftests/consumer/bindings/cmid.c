// SPDX-License-Identifier: GPL-2.0
/* The helpers of cmid. */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/inetdevice.h>
#include <linux/kthread.h>
#include <linux/rtnetlink.h>
#include <net/arp.h>
#include <net/neighbour.h>

#include "device.h"

static char *ipv4 = "10.0.0.1";
module_param(ipv4, charp, 0);
MODULE_PARM_DESC(ipv4, "its address");

const char *rust_test_ipv4(void)
{
	return ipv4;
}

static char *peer = "";
module_param(peer, charp, 0);
MODULE_PARM_DESC(peer, "the address of a server that stays when the device goes");

const char *rust_test_peer(void)
{
	return peer;
}

static uint removal;
module_param(removal, uint, 0);
MODULE_PARM_DESC(removal, "the error where the device goes; 0: it does not");

unsigned int rust_test_removal(void)
{
	return removal;
}

static struct neighbour *churned;
static u8 churned_mac[ETH_ALEN];
static struct task_struct *churner;
static bool churned_by_half;

static void change_address(struct neighbour *neigh, const u8 *mac)
{
	write_seqlock(&neigh->ha_lock);
	memcpy(neigh->ha, mac, ETH_ALEN);
	write_sequnlock(&neigh->ha_lock);
}

/*
 * The function does the same as __neigh_update() in net/core/neighbour.c, but slowly: the state
 * first and the address then, with the lock all the time.
 */
static void become_known(struct neighbour *neigh)
{
	write_lock_bh(&neigh->lock);
	if ((neigh->nud_state & NUD_IN_TIMER) && timer_delete(&neigh->timer))
		neigh_release(neigh);
	WRITE_ONCE(neigh->nud_state, NUD_PERMANENT);
	WRITE_ONCE(churned_by_half, true);
	mdelay(20);
	WRITE_ONCE(churned_by_half, false);
	change_address(neigh, churned_mac);
	write_unlock_bh(&neigh->lock);
}

static void become_unknown(struct neighbour *neigh)
{
	static const u8 none[ETH_ALEN];

	write_lock_bh(&neigh->lock);
	WRITE_ONCE(neigh->nud_state, NUD_FAILED);
	change_address(neigh, none);
	write_unlock_bh(&neigh->lock);
}

static int churn(void *unused)
{
	while (!kthread_should_stop()) {
		become_known(churned);
		usleep_range(2000, 4000);
		become_unknown(churned);
		usleep_range(500, 1000);
	}
	return 0;
}

/* From now on a neighbour of the interface with the address "own" comes and goes. Sleeps. */
int rust_test_churn_start(const u8 *own, const u8 *other, const u8 *mac)
{
	struct net_device *dev;
	__be32 ip;
	int ret;

	memcpy(&ip, own, sizeof(ip));
	dev = ip_dev_find(&init_net, ip);
	if (!dev)
		return -EADDRNOTAVAIL;
	churned = neigh_create(&arp_tbl, other, dev);
	dev_put(dev);
	if (IS_ERR(churned))
		return PTR_ERR(churned);
	memcpy(churned_mac, mac, ETH_ALEN);
	churner = kthread_run(churn, NULL, "cmid_churn");
	ret = PTR_ERR_OR_ZERO(churner);
	if (ret)
		neigh_release(churned);
	return ret;
}

/*
 * Returns when the neighbour has its state already, and its address not yet: for some ms. False
 * if that does not come. Sleeps.
 */
bool rust_test_churn_wait(void)
{
	unsigned long end = jiffies + 10 * HZ;

	/* At once: a task that sleeps may wake too late. */
	while (!READ_ONCE(churned_by_half)) {
		if (time_after(jiffies, end))
			return false;
		cond_resched();
	}
	return true;
}

/* That ends. Sleeps. */
void rust_test_churn_stop(void)
{
	kthread_stop(churner);
	become_unknown(churned);
	neigh_release(churned);
}

static ushort resident;
module_param(resident, ushort, 0);
MODULE_PARM_DESC(resident, "port of an identifier that listens there, instead of the tests");

unsigned short rust_test_resident(void)
{
	return resident;
}

static bool resolves;
module_param(resolves, bool, 0);
MODULE_PARM_DESC(resolves, "the identifier asks for the way to the address instead");

bool rust_test_resolves(void)
{
	return resolves;
}

static uint node_type = RDMA_NODE_UNSPECIFIED;
module_param(node_type, uint, 0);
MODULE_PARM_DESC(node_type, "type of the nodes that it is confined to (RDMA_NODE_*)");

unsigned int rust_test_node_type(void)
{
	return node_type;
}

/*
 * True if the module has the lock of all network interfaces. The task that has waited for that
 * writes 0 when the lock may be given back.
 */
static bool locked;
module_param(locked, bool, 0644);
MODULE_PARM_DESC(locked, "whether the module has the lock of all network interfaces");

static bool lock;
module_param(lock, bool, 0);
MODULE_PARM_DESC(lock, "have the device taken away while that is held");

bool rust_test_lock(void)
{
	return lock;
}

void rust_test_rtnl_lock(void)
{
	rtnl_lock();
	WRITE_ONCE(locked, true);
}

bool rust_test_is_locked(void)
{
	return READ_ONCE(locked);
}

void rust_test_rtnl_unlock(void)
{
	WRITE_ONCE(locked, false);
	rtnl_unlock();
}

static bool claims_end;
module_param(claims_end, bool, 0);
MODULE_PARM_DESC(claims_end, "a claim to the queue pair of a connection ends it, as with C");

bool rust_test_claims_end(void)
{
	return claims_end;
}

static bool own;
module_param(own, bool, 0);
MODULE_PARM_DESC(own, "the only test is that of identifiers which are destroyed in their own callbacks");

bool rust_test_own(void)
{
	return own;
}

static bool shares;
module_param(shares, bool, 0);
MODULE_PARM_DESC(shares, "only listeners that share their address, as the port says");

bool rust_test_shares(void)
{
	return shares;
}

static bool stuck_only;
module_param_named(stuck, stuck_only, bool, 0);
MODULE_PARM_DESC(stuck, "have a driver not return from accept, instead of the other tests over iWARP");

bool rust_test_stuck_only(void)
{
	return stuck_only;
}

/* A driver whose accept does not return for one queue pair. */
static int (*accept_of_driver)(struct iw_cm_id *id, struct iw_cm_conn_param *param);
static u32 stuck_qpn;
static bool has_returned;
static DECLARE_COMPLETION(stuck);
static DECLARE_COMPLETION(freed);

static int stuck_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	bool is_stuck = param->qpn == stuck_qpn;
	int ret = accept_of_driver(id, param);

	if (is_stuck) {
		complete_all(&stuck);
		/* Not so long that the kernel warns of the task that waits for this. */
		wait_for_completion_timeout(&freed, 40 * HZ);
		WRITE_ONCE(has_returned, true);
	}
	return ret;
}

/* Nobody may be about to accept. */
void rust_test_stick_accept(struct ib_device *device, u32 qpn)
{
	reinit_completion(&stuck);
	reinit_completion(&freed);
	stuck_qpn = qpn;
	has_returned = false;
	accept_of_driver = device->ops.iw_accept;
	device->ops.iw_accept = stuck_accept;
}

void rust_test_wait_stuck(void)
{
	wait_for_completion_timeout(&stuck, 60 * HZ);
}

bool rust_test_is_stuck(void)
{
	return completion_done(&stuck) && !READ_ONCE(has_returned);
}

/* A stuck task is still to return. */
void rust_test_free_accept(struct ib_device *device)
{
	device->ops.iw_accept = accept_of_driver;
	complete_all(&freed);
}

bool rust_test_is_iwarp(struct ib_device *device, u32 port_num)
{
	return rdma_protocol_iwarp(device, port_num);
}
