// SPDX-License-Identifier: GPL-2.0

//! Allocation of zeroed memory.
//!
//! [`KBox::init`] with [`pin_init::init_zeroed`] writes zeros over memory that most kernels have
//! just cleared (`init_on_alloc`).

use kernel::{
    alloc::{flags::__GFP_ZERO, AllocError, Flags},
    prelude::*,
};
use zerocopy::FromZeros;

/// Allocates a value that is all zeros.
pub(crate) fn new<T: FromZeros>(flags: Flags) -> Result<KBox<T>, AllocError> {
    let space = KBox::<T>::new_uninit(flags | __GFP_ZERO)?;
    // SAFETY: The allocator has set every byte to 0, which is a value of a `FromZeros`.
    Ok(unsafe { space.assume_init() })
}
