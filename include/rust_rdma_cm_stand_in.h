/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An empty module with the name of a C module. It is installed in a directory that depmod searches
 * first ("updates"), and hides the C module there. So loading it, or a module that depends on it,
 * loads rust_rdma_cm.
 */
#ifndef RUST_RDMA_CM_STAND_IN_H
#define RUST_RDMA_CM_STAND_IN_H

#include <linux/module.h>

#include "rust_rdma_cm_in_place.h"

/*
 * The struct refers to a type of the kernel. In a build that has a vmlinux, making BTF fails for a
 * module without such a reference.
 */
static const struct rdma_cm_stand_in {
	const char *name;
	void (*needs)(void);
} stand_in __used = { KBUILD_MODNAME, rust_rdma_cm_in_place };

MODULE_DESCRIPTION("Stands in for " KBUILD_MODNAME ": loads rust_rdma_cm");
MODULE_LICENSE("GPL");

#endif /* RUST_RDMA_CM_STAND_IN_H */
