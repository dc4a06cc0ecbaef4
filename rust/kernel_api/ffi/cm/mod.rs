// SPDX-License-Identifier: GPL-2.0

//! The in-kernel API of the InfiniBand CM, whose consumers handle messages, not addresses.
//!
//! C header: [`include/rdma/ib_cm.h`](srctree/include/rdma/ib_cm.h)
//!
//! This module does for `struct ib_cm_id` what [`super`] does for `struct rdma_cm_id`: see
//! `rust/helpers/ib_cm.c`, [`export`] and [`IbCmId::deliver`].
//!
//! # Promises of a consumer
//!
//! A `struct ib_cm_id` is valid from the call that creates it, or from the callback that announces
//! it, until `ib_destroy_cm_id()` returns, or until the handler has returned non-zero. The handler
//! can be called for the same time. The device that an identifier is created for stays registered
//! until the identifier is destroyed, or until the consumer was told that the device is removed. A
//! GID in parameters belongs to a device that is registered.

mod event;
pub(crate) mod export;
mod ib_cm_id;
mod param;

pub(crate) use self::{
    event::{CmNotification, ReceivedRequest},
    ib_cm_id::IbCmId,
};
