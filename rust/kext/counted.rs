// SPDX-License-Identifier: GPL-2.0

//! Reference-counted objects for containers.

use containers::{Counted, TreeCell};
use core::{ops::Deref, ptr::NonNull};
use kernel::{alloc::Flags, prelude::*, sync::Arc};

/// A counted reference to an object that can be in containers: an [`Arc`], for which this crate
/// cannot implement a trait of another.
pub(crate) struct CountedArc<T>(Arc<T>);

impl<T> CountedArc<T> {
    /// Allocates an object. Fails with `ENOMEM`.
    pub(crate) fn new(object: T, flags: Flags) -> Result<Self> {
        Ok(Self(Arc::new(object, flags)?))
    }

    /// Allocates an object and initialises it in place. Fails with `ENOMEM`, or with the error of
    /// `init`.
    pub(crate) fn pin_init<E>(init: impl PinInit<T, E>, flags: Flags) -> Result<Self>
    where
        Error: From<E>,
    {
        Ok(Self(Arc::pin_init(init, flags)?))
    }
}

impl<T> Deref for CountedArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> Clone for CountedArc<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

// SAFETY: An `Arc` neither moves its object nor lends it mutably while there is another one, and
// drops it with the last. The pointer is the one that `Arc` itself makes and takes.
unsafe impl<T> Counted for CountedArc<T> {
    fn into_raw(this: Self) -> NonNull<T> {
        let object = Arc::into_raw(this.0).cast_mut();
        // SAFETY: An `Arc` is not null.
        unsafe { NonNull::new_unchecked(object) }
    }

    unsafe fn from_raw(object: NonNull<T>) -> Self {
        // SAFETY: By the safety requirements this is the reference that the pointer was.
        Self(unsafe { Arc::from_raw(object.as_ptr()) })
    }
}

/// Initialises a cell in place.
pub(crate) fn init_tree_cell<K, V, E>(value: impl Init<V, E>) -> impl Init<TreeCell<K, V>, E> {
    // SAFETY: A cell has the layout of its value.
    unsafe { pin_init::cast_init(value) }
}
