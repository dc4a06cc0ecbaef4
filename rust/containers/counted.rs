// SPDX-License-Identifier: GPL-2.0

//! Counted references.

use core::{marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};

/// A counted reference to an object, such as an `Arc`.
///
/// # Safety
///
/// - [`Counted::into_raw`] returns the address that [`Deref::deref`] returns, always the same for
///   the same object. The pointer may be used for everything that a shared reference may be used
///   for, in the whole object.
/// - As long as the pointer was not passed to [`Counted::from_raw`], with the result dropped, the
///   object is neither moved nor dropped, and nobody has a mutable reference to it.
/// - Until then, [`Counted::from_raw`] may be called any number of times if the results are not
///   dropped.
pub unsafe trait Counted: Deref<Target: Sized> + Sized {
    /// Turns the reference into a pointer, which still counts.
    fn into_raw(this: Self) -> NonNull<Self::Target>;

    /// Turns the pointer into the reference that it was.
    ///
    /// # Safety
    ///
    /// The pointer must be one that [`Counted::into_raw`] has returned. Only one of the
    /// references that are made of it may be dropped, and no other may be used after that.
    unsafe fn from_raw(pointer: NonNull<Self::Target>) -> Self;
}

/// A counted reference that a container has, lent.
///
/// # Invariants
///
/// For the lifetime `'a` the container has the reference that `object` is a copy of.
pub struct Borrowed<'a, R> {
    object: ManuallyDrop<R>,
    _container: PhantomData<&'a R>,
}

impl<R: Counted> Borrowed<'_, R> {
    /// Lends the reference that `pointer` was made of.
    ///
    /// # Safety
    ///
    /// For the lifetime of the result the pointer must count: it is one that [`Counted::into_raw`]
    /// has returned, and the reference that it was is not dropped.
    pub(crate) unsafe fn new(pointer: NonNull<R::Target>) -> Self {
        // INVARIANT: By the safety requirements.
        Borrowed {
            // SAFETY: By the safety requirements; this reference is not dropped.
            object: ManuallyDrop::new(unsafe { R::from_raw(pointer) }),
            _container: PhantomData,
        }
    }
}

impl<R> Deref for Borrowed<'_, R> {
    type Target = R;

    #[inline]
    fn deref(&self) -> &R {
        &self.object
    }
}
