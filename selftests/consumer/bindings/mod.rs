// SPDX-License-Identifier: GPL-2.0

//! C bindings: everything of `kernel::bindings`, and what the RDMA headers and our helpers add.
//!
//! Only `rdma` uses them. Where both declare an item, the local one wins.

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
// This lint is newer than the oldest compiler.
#![allow(unknown_lints)]
#![allow(unnecessary_transmutes)]

mod generated {
    // The accessors of bit fields, whose numbers are the compiler's own.
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing)]
    #![allow(
        clippy::as_underscore,
        clippy::cast_lossless,
        clippy::ptr_as_ptr,
        clippy::ref_as_ptr
    )]

    pub(crate) use kernel::bindings::*;
    use kernel::ffi;
    use pin_init::{MaybeZeroable, Zeroable};

    // SAFETY: The unit is a newtype around its storage.
    unsafe impl<Storage> Zeroable for __BindgenBitfieldUnit<Storage> where Storage: Zeroable {}

    include!(concat!(
        env!("CONSUMER_OBJ"),
        "/bindings/bindings_generated.rs"
    ));
}

pub(crate) use generated::*;
