// SPDX-License-Identifier: GPL-2.0
/*
 * The tracepoints of rdma_cma, and the functions by which Rust calls them. This is a file of its
 * own, because both groups of tracepoints define the names of the enums that they share.
 */
#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "trace/rdma_cma.h"
