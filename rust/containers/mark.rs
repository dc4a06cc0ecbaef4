// SPDX-License-Identifier: GPL-2.0

//! The mark of a link: in which container it is.

#[cfg(not(loom))]
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
#[cfg(loom)]
use loom::sync::atomic::AtomicU64;

/// The number of a container, which no other container has or had.
///
/// # Invariants
///
/// It is neither 0 nor that of another container, and its lowest two bits are 0.
#[derive(PartialEq, Eq)]
pub(crate) struct Number(u64);

impl Number {
    /// Returns a number that was not returned before.
    pub(crate) fn new() -> Self {
        use core::sync::atomic::AtomicU64;
        static NEXT: AtomicU64 = AtomicU64::new(4);
        // INVARIANT: The counter would have to be counted up for centuries until it comes to 0.
        Self(NEXT.fetch_add(4, Relaxed))
    }
}

/// The mark of a link: the number of the container that has claimed it, or none.
///
/// Only that container has access to the rest of the link. It also keeps the balance of the link's
/// node here.
///
/// # Invariants
///
/// The value is 0, or the number of a container with the balance, from -1 to 1, plus 1 in the
/// lowest two bits. It is changed from 0 by the container that claims the link, and from another
/// value by that container alone.
pub(crate) struct Mark(AtomicU64);

impl Mark {
    const NUMBER: u64 = !3;

    /// Creates a mark of no container.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Claims the link for a container, with the balance 0. Returns false if a container has it.
    ///
    /// All accesses of the last container to the link have happened before.
    #[inline]
    pub(crate) fn claim(&self, number: &Number) -> bool {
        // INVARIANT: The balance is 0. This is the container's claim.
        self.0
            .compare_exchange(0, number.0 | 1, Acquire, Relaxed)
            .is_ok()
    }

    /// Gives the link up. Only the container that has claimed it may call this.
    #[inline]
    pub(crate) fn release(&self) {
        self.0.store(0, Release);
    }

    /// Returns whether the container with this number has claimed the link.
    ///
    /// The answer stays true for a container whose caller has it for itself alone: then nobody
    /// else claims for it, or gives up.
    #[inline]
    pub(crate) fn is_of(&self, number: &Number) -> bool {
        self.0.load(Relaxed) & Self::NUMBER == number.0
    }

    /// Returns whether a container has claimed the link.
    #[inline]
    pub(crate) fn is_claimed(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// Returns the balance, of a link that is claimed.
    #[inline]
    pub(crate) fn balance(&self) -> i8 {
        match self.0.load(Relaxed) & !Self::NUMBER {
            0 => -1,
            1 => 0,
            _ => 1,
        }
    }

    /// Changes the balance. Only the container that has claimed the link may call this.
    #[inline]
    pub(crate) fn set_balance(&self, balance: i8) {
        let bits = match balance {
            ..0 => 0,
            0 => 1,
            1.. => 2,
        };
        // INVARIANT: The number stays.
        self.0
            .store(self.0.load(Relaxed) & Self::NUMBER | bits, Relaxed);
    }
}

/// Each order in which two tasks can claim, use and give up a link.
#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use loom::{cell::UnsafeCell, sync::Arc, thread};

    struct Shared {
        mark: Mark,
        // Stands for the rest of the link. Loom finds any access that is not ordered.
        node: UnsafeCell<u32>,
    }

    fn use_it(shared: &Shared, number: &Number) -> bool {
        if !shared.mark.claim(number) {
            return false;
        }
        // SAFETY: The link is claimed; loom would find another access.
        shared.node.with_mut(|node| unsafe { *node += 1 });
        shared.mark.set_balance(1);
        assert!(shared.mark.is_of(number));
        assert_eq!(shared.mark.balance(), 1);
        // SAFETY: As above.
        shared.node.with_mut(|node| unsafe { *node += 1 });
        true
    }

    #[test]
    fn one_of_two_has_it() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                mark: Mark::new(),
                node: UnsafeCell::new(0),
            });
            let other = shared.clone();
            let there = thread::spawn(move || use_it(&other, &Number::new()));
            let here = use_it(&shared, &Number::new());
            assert!(here != there.join().unwrap());
        });
    }

    #[test]
    fn who_comes_next_sees_what_was_done() {
        loom::model(|| {
            let shared = Arc::new(Shared {
                mark: Mark::new(),
                node: UnsafeCell::new(0),
            });
            let other = shared.clone();
            let there = thread::spawn(move || {
                let used = use_it(&other, &Number::new());
                if used {
                    other.mark.release();
                }
                used
            });
            let here = use_it(&shared, &Number::new());
            if here {
                shared.mark.release();
            }
            let there = there.join().unwrap();
            assert!(here || there);
            // SAFETY: Both tasks have ended.
            let node = shared.node.with(|node| unsafe { *node });
            assert_eq!(node, 2 * (u32::from(here) + u32::from(there)));
            assert!(!shared.mark.is_claimed());
        });
    }
}
