/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The headers that bindgen reads for rust/bindings. The parameters file allows bindings from some
 * of them; the others are needed for types.
 */
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <net/netevent.h>

#include <rdma/ib.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_marshall.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_sysfs.h>
#include <rdma/ib_verbs.h>
#include <rdma/iw_cm.h>
#include <rdma/rdma_cm.h>
#include <rdma/rdma_cm_ib.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "core_private.h"
#include "rust_rdma_cm.h"
#include "rust_rdma_cm_ib.h"
#include "rust_rdma_cm_ibcm.h"
#include "rust_rdma_cm_kapi.h"
#include "trace/ib_cma.h"
#include "trace/rdma_cma.h"
