/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What bindgen reads for the test modules, and what Rust cannot call: inline functions, and
 * parameters of a module that are strings.
 */
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>

const char *rust_test_device(void);

/* Of cmid only. */
const char *rust_test_ipv4(void);
