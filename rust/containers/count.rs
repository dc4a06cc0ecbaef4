// SPDX-License-Identifier: GPL-2.0

//! The room in a link for the count of a tree.

/// A count in a link: `usize` for a tree that counts, and `()`, which takes no room, for one that
/// does not.
pub trait Count: Copy + sealed::Sealed {
    /// Is true if the tree counts.
    const COUNTS: bool;

    /// Returns a count, which is forgotten if the tree does not count.
    fn of(count: usize) -> Self;

    /// Returns the count, or 0 if the tree does not count.
    fn get(self) -> usize;
}

impl Count for () {
    const COUNTS: bool = false;

    #[inline]
    fn of(_: usize) -> Self {}

    #[inline]
    fn get(self) -> usize {
        0
    }
}

impl Count for usize {
    const COUNTS: bool = true;

    #[inline]
    fn of(count: usize) -> Self {
        count
    }

    #[inline]
    fn get(self) -> usize {
        self
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for usize {}
}
