// SPDX-License-Identifier: GPL-2.0

//! A table that is divided into shards, with a mutex for each, so that tasks that use different
//! entries rarely wait for each other.
//!
//! Lock order: a shard lock is of the class "table shard". While it is held, no other lock is taken
//! and nothing is allocated, freed or called.

use core::{
    ops::{Deref, DerefMut},
    pin::Pin,
};
use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
    sync::{LockClassKey, Mutex},
};

/// The contents of a shard.
pub(crate) struct Shard<S>(S);

// The contents are never pinned, whatever they are. Without this a lock would not lend them.
impl<S> Unpin for Shard<S> {}

impl<S> Deref for Shard<S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S> DerefMut for Shard<S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        &mut self.0
    }
}

/// A value with a cache line of its own, so that no two CPUs write the same line because they use
/// different shards.
#[pin_data]
#[repr(align(64))]
pub(crate) struct Line<T> {
    #[pin]
    value: T,
}

impl<T> Deref for Line<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.value
    }
}

/// A table in `N` shards with the contents `S`. `N` is a power of two.
#[pin_data]
pub(crate) struct Sharded<S, const N: usize> {
    #[pin]
    shards: [Line<Mutex<Shard<S>>>; N],
}

/// Creates an initialiser for a [`Sharded`] whose locks have a lock class of their own. `$content`
/// is evaluated for each shard.
macro_rules! new_sharded {
    ($content:expr, $name:literal) => {
        $crate::table::sharded::Sharded::new(
            || $content,
            ::kernel::optional_name!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_sharded;

impl<S, const N: usize> Sharded<S, N> {
    /// The bits of a hash that choose the shard.
    const MASK: u64 = {
        assert!(N.is_power_of_two());
        N as u64 - 1
    };

    /// Creates an initialiser for a table whose shards have the contents that `content` returns.
    /// Use [`new_sharded!`].
    pub(crate) fn new(
        content: impl Fn() -> S,
        name: &'static CStr,
        class: Pin<&'static LockClassKey>,
    ) -> impl PinInit<Self> {
        pin_init!(Self {
            shards <- pin_init::pin_init_array_from_fn(move |_| {
                let shard = Shard(content());
                pin_init!(Line {
                    value <- Mutex::new(shard, name, class),
                })
            }),
        })
    }

    /// Returns the shard that the lowest bits of `hash` choose. There always is one.
    #[inline]
    pub(crate) fn shard(&self, hash: u64) -> Option<&Mutex<Shard<S>>> {
        Some(self.shards.get(usize::try_from(hash & Self::MASK).ok()?)?)
    }

    /// Returns the shards.
    pub(crate) fn all(&self) -> &[Line<Mutex<Shard<S>>>] {
        &self.shards
    }
}

impl<K: Ord, V, const N: usize> Sharded<RBTree<K, V>, N> {
    /// Removes the entry with the key `key` from the shard that `hash` chooses. It is dropped by
    /// the caller, and so outside the shard lock.
    #[inline]
    pub(crate) fn take(&self, hash: u64, key: &K) -> Option<RBTreeNode<K, V>> {
        self.shard(hash)?.lock().remove_node(key)
    }
}
