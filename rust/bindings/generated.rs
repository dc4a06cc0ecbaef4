// SPDX-License-Identifier: GPL-2.0

//! The output of bindgen for C headers, together with all of `kernel::bindings`.
//!
//! If both declare an item, the local one hides the other: `struct ib_device` is complete here and
//! opaque in the kernel crate, so a pointer between them needs a cast.
//!
//! The test modules use this file too, each with the output for its own headers.

#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    improper_ctypes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]
// The accessors of bit fields, whose numbers are the compiler's own.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
#![allow(
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr
)]
// This lint is newer than the oldest compiler.
#![allow(unknown_lints)]
#![allow(unnecessary_transmutes)]

pub(crate) use kernel::bindings::*;
use kernel::ffi;
use pin_init::{MaybeZeroable, Zeroable};

// SAFETY: The unit is a newtype around its storage.
unsafe impl<Storage> Zeroable for __BindgenBitfieldUnit<Storage> where Storage: Zeroable {}

include!(env!("RDMA_BINDINGS"));
