// SPDX-License-Identifier: GPL-2.0

//! The API of the InfiniBand CM, whose consumers speak of messages, not of addresses.
//!
//! C header: [`include/rdma/ib_cm.h`](srctree/include/rdma/ib_cm.h)
//!
//! As [`super`], for `struct ib_cm_id`: `rust/helpers/ib_cm.c`, [`export`], [`CmHead::tell`].
//!
//! # What a consumer promises
//!
//! A `struct ib_cm_id` is valid from the call that creates it, or from the callback that shows it,
//! until `ib_destroy_cm_id()` returns, or until the handler has returned non-zero. The handler can be
//! called for as long. The device that an identifier is created for stays until the identifier is
//! destroyed, or until the consumer was told that the device goes. A GID that parameters name is
//! one of a device that is registered.

mod event;
pub(crate) mod export;
mod head;
mod param;

pub(crate) use self::{
    event::{Asked, Told},
    head::CmHead,
};
