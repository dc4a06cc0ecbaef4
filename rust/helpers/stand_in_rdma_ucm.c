// SPDX-License-Identifier: GPL-2.0
/*
 * An empty module with the name of the C module. Installed in a directory that
 * depmod searches first ("updates"), it hides C's, so that "modprobe rdma_ucm" loads
 * rust_rdma_cm, and "modprobe -r rdma_ucm" unloads it.
 */
#include <linux/module.h>

#include "rust_rdma_cm.h"

static void (*const needs)(void) __used = rust_rdma_cm_in_place;

MODULE_DESCRIPTION("Stands in for rdma_ucm: loads rust_rdma_cm");
MODULE_LICENSE("GPL");
