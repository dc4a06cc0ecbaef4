/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers for rust/kext: macros, inline functions and tables that Rust cannot use directly.
 * bindgen reads these prototypes, so that both sides agree.
 *
 * A helper that only wraps a C function or macro is called rust_rdma_ and the name of that
 * function. The helpers for rust/ib are in rust_rdma_cm_ib.h. A helper that repeats the work of a
 * kernel function says so in a line that begins with "Repeats:" and names that function.
 */
#ifndef RUST_RDMA_CM_H
#define RUST_RDMA_CM_H

#include <linux/configfs.h>
#include <linux/fs.h>
#include <linux/kcov.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/percpu-refcount.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/sysctl.h>
#include <linux/sysfs.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>

/* rust/helpers/chardev.c */
extern const struct attribute_group *rust_rdma_ucm_groups[];

/* rust/helpers/configfs.c */
void rust_rdma_configfs_add_default_group(struct config_group *group,
					  struct config_group *parent);

/* rust/helpers/cred.c */
u32 rust_rdma_current_user(void);
bool rust_rdma_ib_safe_file_access(struct file *filp);
size_t rust_rdma_opener(const struct file *filp, u32 *users, size_t max);
u32 rust_rdma_seq_user(struct seq_file *m, u32 user);

/* rust/helpers/ip_multicast.c */
struct rust_rdma_ip_membership {
	struct list_head all;
	/*
	 * The struct in_device or the struct inet6_dev, with a counted reference; both null after
	 * the device was unregistered.
	 */
	void *in_dev;
	void *in6_dev;
	union {
		__be32 group;
		struct in6_addr group6;
	};
};

int rust_rdma_ip_multicast_join(struct rust_rdma_ip_membership *membership,
				struct net_device *dev, const u8 *addr);
int rust_rdma_ipv6_multicast_join(struct rust_rdma_ip_membership *membership,
				  struct net_device *dev, const u8 *addr);
void rust_rdma_ip_multicast_leave(struct rust_rdma_ip_membership *membership);
void rust_rdma_ip_multicast_leave_all(const struct net_device *dev);

/* rust/helpers/kcov.c */
#ifdef CONFIG_KCOV
bool rust_rdma_kcov_remote_start(u32 handle);
#endif

/* rust/helpers/lock.c */
void rust_rdma_mutex_lock_nested(struct mutex *lock, unsigned int subclass);
unsigned long rust_rdma_spin_lock_irqsave(spinlock_t *lock);
bool rust_rdma_spin_trylock_irqsave(spinlock_t *lock, unsigned long *flags);
void rust_rdma_spin_unlock_irqrestore(spinlock_t *lock, unsigned long flags);

/* rust/helpers/module.c */
bool rust_rdma_module_is_loaded(const struct module *self, const char *name);

/* rust/helpers/net.c */
struct net *rust_rdma_get_net(struct net *net);
void rust_rdma_put_net(struct net *net);
struct net *rust_rdma_get_current_net(void);
void rust_rdma_inet_get_local_port_range(struct net *net, int *low, int *high);
bool rust_rdma_net_bindv6only(const struct net *net);

/* rust/helpers/netdev.c */
void rust_rdma_dev_hold(struct net_device *dev);
void rust_rdma_dev_put(struct net_device *dev);
struct net_device *rust_rdma_dev_get_by_index(struct net *net, int ifindex);
struct net *rust_rdma_dev_net(const struct net_device *dev);
int rust_rdma_netdev_ifindex(const struct net_device *dev);
unsigned int rust_rdma_netdev_mtu(const struct net_device *dev);
unsigned int rust_rdma_netdev_flags(const struct net_device *dev);
bool rust_rdma_netdev_has_carrier(const struct net_device *dev);
unsigned short rust_rdma_netdev_type(const struct net_device *dev);
u8 rust_rdma_netdev_hw_addr(const struct net_device *dev, u8 *buf, u8 len);
bool rust_rdma_is_vlan_dev(const struct net_device *dev);
struct net_device *rust_rdma_vlan_dev_real_dev(const struct net_device *dev);
bool rust_rdma_netif_is_bond_master(const struct net_device *dev);
u8 rust_rdma_tos_to_sl(struct net_device *dev, u8 tos);
bool rust_rdma_reverse_path_ok4(struct net_device *dev, const u8 *local,
				const u8 *peer);
bool rust_rdma_reverse_path_ok6(struct net_device *dev, const u8 *local,
				const u8 *peer);

/* rust/helpers/netlink.c */
struct net *rust_rdma_genl_info_net(const struct genl_info *info);
void rust_rdma_genlmsg_end(struct sk_buff *skb, void *hdr);
void rust_rdma_genlmsg_cancel(struct sk_buff *skb, void *hdr);
struct nlattr *rust_rdma_nla_nest_start(struct sk_buff *skb, int attrtype);
int rust_rdma_nla_nest_end(struct sk_buff *skb, struct nlattr *start);
bool rust_rdma_genl_has_listeners(const struct genl_family *family);
struct sk_buff *rust_rdma_genlmsg_new(void);
void rust_rdma_genlmsg_multicast(const struct genl_family *family, struct net *net,
				 struct sk_buff *skb);
void rust_rdma_nlmsg_free(struct sk_buff *skb);
u32 rust_rdma_net_user_seen(const struct net *net, u32 user);
u32 rust_rdma_netlink_user(struct sk_buff *skb);
u32 rust_rdma_netlink_user_seen(struct sk_buff *skb, u32 user);

/* rust/helpers/notifier.c */
struct rust_rdma_neigh {
	struct net_device *dev;
	int family;
	u8 hw_addr_len;
	u8 addr[16];
	u8 hw_addr[MAX_ADDR_LEN];
};

struct net_device *rust_rdma_netdev_notifier_info_to_dev(void *info);
bool rust_rdma_neigh_read(void *neigh, struct rust_rdma_neigh *out);

/*
 * rust/helpers/percpu.c: what the first function returns, and what is a distance behind it, is only
 * for those that follow.
 */
void *rust_rdma_alloc_percpu(size_t size, size_t align);
void rust_rdma_free_percpu(void *values);
void *rust_rdma_per_cpu_ptr(void *values, unsigned int cpu);
void *rust_rdma_raw_cpu_ptr(void *values);
void rust_rdma_this_cpu_add(u64 *value, u64 n);
bool rust_rdma_percpu_ref_tryget_live(struct percpu_ref *ref);
void rust_rdma_percpu_ref_put(struct percpu_ref *ref);

/* rust/helpers/slab.c */
void *rust_rdma_kmem_cache_alloc(struct kmem_cache *cache, gfp_t flags);

/* rust/helpers/reclaim.c */
unsigned int rust_rdma_memalloc_noio_save(void);
void rust_rdma_memalloc_noio_restore(unsigned int flags);
struct mem_cgroup;
struct mem_cgroup *rust_rdma_mem_cgroup_of_current(void);
void rust_rdma_mem_cgroup_get(struct mem_cgroup *memcg);
void rust_rdma_mem_cgroup_put(struct mem_cgroup *memcg);
struct mem_cgroup *rust_rdma_set_active_memcg(struct mem_cgroup *memcg);

/* rust/helpers/sysctl.c */
#define RUST_RDMA_USER_RESOURCES 6
struct ctl_table_header *rust_rdma_ucm_sysctl_register(void);
void rust_rdma_ucm_sysctl_unregister(struct ctl_table_header *header);
int rust_rdma_ucm_max_backlog(void);
extern int rust_rdma_ucm_max_user[RUST_RDMA_USER_RESOURCES];

/* rust/helpers/wait.c */
void rust_rdma_init_wait_func_woken(struct wait_queue_entry *entry);
void rust_rdma_wake_up_interruptible_all(struct wait_queue_head *head);

/* rust/helpers/workqueue.c */
struct workqueue_struct *rust_rdma_alloc_workqueue(const char *name,
						   unsigned int flags,
						   int max_active);
void rust_rdma_init_delayed_work(struct delayed_work *dwork, work_func_t func,
				 const char *name, struct lock_class_key *key);
unsigned long rust_rdma_usecs_to_jiffies(u64 us);

#endif /* RUST_RDMA_CM_H */
