// SPDX-License-Identifier: GPL-2.0

#include <linux/export.h>

#include "rust_rdma_cm_in_place.h"

/*
 * The stand-in modules refer to this function, so that they depend on this module. It is not
 * called.
 */
void rust_rdma_cm_in_place(void)
{
}
EXPORT_SYMBOL_GPL(rust_rdma_cm_in_place);
