// SPDX-License-Identifier: GPL-2.0

//! C bindings: everything of `kernel::bindings`, and what the RDMA headers and our helpers add.
//!
//! This is the one door to generated code. Only `kext` and `ib` use it; everything else uses
//! their safe wrappers.

mod generated;
mod layout;

pub(crate) use generated::*;
