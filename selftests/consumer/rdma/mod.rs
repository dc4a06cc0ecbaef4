// SPDX-License-Identifier: GPL-2.0

//! Safe wrappers of what a consumer of the connection manager calls.
//!
//! With `bindings`, the only places with `unsafe`.

pub(crate) mod device;
