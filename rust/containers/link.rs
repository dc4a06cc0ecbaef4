// SPDX-License-Identifier: GPL-2.0

//! The part of an object by which it is in a container.

use crate::{avl::Node, count::Count, mark::Mark};
use core::{cell::UnsafeCell, ptr::NonNull};

/// The part of an object by which it is in a container, in the order of keys of the type `K`.
///
/// An object that can be in several containers at a time has a link for each, with keys of
/// different types. A link of a tree that counts has room for the count: `N` is `usize` there.
///
/// # Invariants
///
/// `node` is accessed only by the container of which `mark` is, and which owns a reference to the
/// object: read with a shared reference to the container, and written with an exclusive one.
pub struct Link<K, N = ()> {
    pub(crate) mark: Mark,
    pub(crate) node: UnsafeCell<Node<K, N>>,
}

// SAFETY: A reference to the link gives no access to the node. A container, which has access, is
// sent to another task only if its keys may be.
unsafe impl<K, N> Send for Link<K, N> {}
// SAFETY: As for `Send`; the mark is atomic.
unsafe impl<K, N> Sync for Link<K, N> {}

impl<K, N: Count> Link<K, N> {
    /// Creates a link that is in no container.
    pub fn new() -> Self {
        Link {
            mark: Mark::new(),
            node: UnsafeCell::new(Node::new()),
        }
    }

    /// Returns whether the object is in a container.
    ///
    /// Others may enter or remove it at the same time, unless the caller keeps them from it.
    #[inline]
    pub fn is_linked(&self) -> bool {
        self.mark.is_claimed()
    }
}

impl<K, N: Count> Default for Link<K, N> {
    fn default() -> Self {
        Self::new()
    }
}

/// An object that can be in a container with keys of the type `K`.
///
/// It is implemented by [`impl_has_link!`](crate::impl_has_link).
///
/// # Safety
///
/// At the offset [`HasLink::OFFSET`] each object of the type has a field of the type
/// [`Link<K, N>`].
pub unsafe trait HasLink<K, N = ()> {
    /// The offset of the link in the object.
    const OFFSET: usize;

    /// Returns the link of the object.
    #[inline]
    fn link(&self) -> &Link<K, N>
    where
        Self: Sized,
    {
        // SAFETY: By the safety requirements, with the lifetime of the object.
        unsafe {
            NonNull::from(self)
                .byte_add(Self::OFFSET)
                .cast::<Link<K, N>>()
                .as_ref()
        }
    }
}

/// Implements [`HasLink`](crate::HasLink) for a type that has a [`Link`](crate::Link) among its
/// fields.
///
/// ```
/// struct Timer {
///     link: containers::Link<u64>,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.link }
/// }
/// ```
///
/// The field may be one of a field:
///
/// ```
/// struct Links {
///     by_time: containers::Link<u64>,
/// }
///
/// struct Timer {
///     links: Links,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.links.by_time }
/// }
/// ```
///
/// A link of a tree that counts belongs to no tree that does not:
///
/// ```compile_fail,E0308
/// struct Timer {
///     link: containers::Link<u64, usize>,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.link }
/// }
/// ```
///
/// The field is the link itself, and not something that refers to one:
///
/// ```compile_fail,E0308
/// struct Timer {
///     link: Box<containers::Link<u64>>,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.link }
/// }
/// ```
///
/// It is aligned:
///
/// ```compile_fail,E0793
/// #[repr(packed)]
/// struct Timer {
///     number: u8,
///     link: containers::Link<u64>,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.link }
/// }
/// ```
///
/// And it is a field of the type, not of one that this refers to:
///
/// ```compile_fail,E0609
/// struct Inner {
///     link: containers::Link<u64>,
/// }
///
/// struct Timer(Inner);
///
/// impl core::ops::Deref for Timer {
///     type Target = Inner;
///     fn deref(&self) -> &Inner {
///         &self.0
///     }
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.link }
/// }
/// ```
///
/// No field on the way to it refers to anything, either:
///
/// ```compile_fail,E0609
/// struct Inner {
///     link: containers::Link<u64>,
/// }
///
/// struct Timer {
///     inner: Box<Inner>,
/// }
///
/// containers::impl_has_link! {
///     impl HasLink<u64> for Timer { self.inner.link }
/// }
/// ```
#[macro_export]
macro_rules! impl_has_link {
    (
        impl $({$($generics:tt)*})? HasLink<$key:ty $(, $count:ty)?> for $object:ty {
            self.$($field:ident).+
        }
    ) => {
        // SAFETY: This is the offset of the field, whose type is compared. A field that is
        // referred to is aligned.
        unsafe impl $(<$($generics)*>)? $crate::HasLink<$key $(, $count)?> for $object {
            const OFFSET: usize = {
                // In an array nothing is converted, for instance dereferenced.
                let _: fn(&Self) -> [&$crate::Link<$key $(, $count)?>; 1] = |object| {
                    let field = [&object.$($field).+];
                    field
                };
                ::core::mem::offset_of!(Self, $($field).+)
            };
        }
    };
}
