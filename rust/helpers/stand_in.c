// SPDX-License-Identifier: GPL-2.0

#include <linux/export.h>

#include "rust_rdma_cm.h"

/* Whoever needs this needs this module; nobody calls it. */
void rust_rdma_cm_in_place(void)
{
}
EXPORT_SYMBOL_GPL(rust_rdma_cm_in_place);
