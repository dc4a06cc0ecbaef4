// SPDX-License-Identifier: GPL-2.0

//! Short lists without allocation, for the actions that a transition of a state machine returns.

/// Up to `N` items, taken out in the order in which they were added.
///
/// # Invariants
///
/// The first `len` slots are `Some`, the others are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a transition is complete only when its actions have been carried out"]
pub struct List<T, const N: usize> {
    slots: [Option<T>; N],
    len: usize,
    taken: usize,
}

impl<T: Copy + PartialEq, const N: usize> List<T, N> {
    /// The most items that fit.
    pub const CAPACITY: usize = N;

    /// Creates an empty list.
    pub(crate) const fn none() -> Self {
        Self {
            slots: [None; N],
            len: 0,
            taken: 0,
        }
    }

    /// Adds `item` at the end. There is room for all items that any transition adds, which the
    /// tests check for each transition.
    pub(crate) fn push(&mut self, item: T) {
        // INVARIANT: The slot behind the last item is filled, and `len` counts it.
        if let Some(slot) = self.slots.get_mut(self.len) {
            *slot = Some(item);
            self.len = self.len.saturating_add(1);
        } else {
            debug_assert!(false, "a transition has more than {N} actions");
        }
    }

    /// Returns the item that is taken next.
    pub fn peek(&self) -> Option<&T> {
        self.slots.get(self.taken)?.as_ref()
    }

    /// Iterates over the items that are not taken yet, without taking them.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.slots.iter().skip(self.taken).copied().flatten()
    }

    /// Returns the number of items that are not taken yet.
    pub fn len(&self) -> usize {
        self.len.saturating_sub(self.taken)
    }

    /// Returns whether all items are taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether `item` is among the items that are not taken yet.
    pub fn contains(&self, item: T) -> bool {
        self.iter().any(|candidate| candidate == item)
    }
}

impl<T: Copy + PartialEq, const N: usize> Default for List<T, N> {
    fn default() -> Self {
        Self::none()
    }
}

impl<T: Copy + PartialEq, const N: usize> Iterator for List<T, N> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let item = *self.peek()?;
        self.taken = self.taken.saturating_add(1);
        Some(item)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_list))]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_and_once() {
        let mut list = List::<u8, 6>::none();
        assert!(list.is_empty());
        for item in 10..16 {
            list.push(item);
        }
        assert_eq!(list.len(), List::<u8, 6>::CAPACITY);
        assert!(list.iter().eq(10..16));
        assert_eq!((list.peek().copied(), list.next()), (Some(10), Some(10)));
        assert!(!list.contains(10));
        assert!(list.iter().eq(11..16));
        assert_eq!(list.len(), 5);
        assert!(list.by_ref().eq(11..16));
        assert_eq!(
            (list.len(), list.peek().copied(), list.next()),
            (0, None, None)
        );
        assert_eq!(List::<u8, 6>::default(), List::none());
    }

    #[test]
    #[cfg(test)]
    #[should_panic(expected = "a transition has more than")]
    fn a_transition_with_too_many_actions_is_noticed() {
        let mut list = List::<u8, 1>::none();
        list.push(1);
        list.push(2);
    }
}
