// SPDX-License-Identifier: GPL-2.0

//! C bindings: those of `kernel::bindings`, and those of the RDMA headers and of the C helpers.
//!
//! Only `kext` and `ib` use the bindings; all other code uses their safe wrappers.

mod generated;
mod layout;

pub(crate) use generated::*;
