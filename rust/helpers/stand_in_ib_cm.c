// SPDX-License-Identifier: GPL-2.0
#include "rust_rdma_cm_stand_in.h"
