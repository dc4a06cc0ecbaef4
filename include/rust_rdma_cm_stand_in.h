/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An empty module with the name of a C module. Installed in a directory that depmod searches first
 * ("updates"), it hides C's, so that loading it, or what needs it, loads rust_rdma_cm.
 */
#ifndef RUST_RDMA_CM_STAND_IN_H
#define RUST_RDMA_CM_STAND_IN_H

#include <linux/module.h>

#include "rust_rdma_cm.h"

/*
 * Of a type of its own that refers to one of the kernel's: where there is a vmlinux, the build
 * fails to make BTF for a module without such.
 */
static const struct rdma_cm_stand_in {
	const char *name;
	void (*needs)(void);
} stand_in __used = { KBUILD_MODNAME, rust_rdma_cm_in_place };

MODULE_DESCRIPTION("Stands in for " KBUILD_MODNAME ": loads rust_rdma_cm");
MODULE_LICENSE("GPL");

#endif /* RUST_RDMA_CM_STAND_IN_H */
