// SPDX-License-Identifier: GPL-2.0

#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/seq_file.h>
#include <linux/user_namespace.h>
#include <rdma/ib.h>

#include "rust_rdma_cm.h"

u32 rust_rdma_current_user(void)
{
	return from_kuid(&init_user_ns, current_euid());
}

bool rust_rdma_ib_safe_file_access(struct file *filp)
{
	return ib_safe_file_access(filp);
}

/*
 * Stores the effective user who has opened the file, the owner of the user namespace of the task,
 * the owner of the namespace above, and so on. Returns their number, or 0 if it is more than max.
 */
size_t rust_rdma_opener(const struct file *filp, u32 *users, size_t max)
{
	const struct user_namespace *ns = filp->f_cred->user_ns;
	kuid_t user = filp->f_cred->euid;
	size_t count = 0;

	for (;; ns = ns->parent) {
		if (count == max)
			return 0;
		users[count++] = from_kuid(&init_user_ns, user);
		if (!ns->parent)
			return count;
		user = ns->owner;
	}
}

/* Returns the user's number in the namespace of the reader, or (u32)-1 if there is none. */
u32 rust_rdma_seq_user(struct seq_file *m, u32 user)
{
	return from_kuid(seq_user_ns(m), make_kuid(&init_user_ns, user));
}
