// SPDX-License-Identifier: GPL-2.0

//! The entries of a channel, by the numbers of their contexts.

use super::place::Place;
use core::array;
use kernel::rbtree::{RBTree, RBTreeNode};

/// Number of trees, a power of two. Context numbers are allocated consecutively, so that the trees
/// have about the same size.
const TREES: usize = 64;

/// The entries of a channel, by context number.
///
/// # Invariants
///
/// The trees have `count` entries in total.
pub(super) struct ById {
    trees: [RBTree<u32, Place>; TREES],
    count: usize,
}

impl ById {
    /// Creates an empty set.
    pub(super) fn new() -> Self {
        ById {
            trees: array::from_fn(|_| RBTree::new()),
            count: 0,
        }
    }

    /// Returns the number of entries.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Iterates over all entries, in no particular order.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        self.trees.iter().flat_map(RBTree::values)
    }

    fn tree(&mut self, id: u32) -> Option<&mut RBTree<u32, Place>> {
        let index = usize::try_from(id).unwrap_or(0) & (TREES - 1);
        self.trees.get_mut(index)
    }

    /// Returns the entry of context `id`.
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Place> {
        self.tree(id)?.get_mut(&id)
    }

    /// Adds an entry. No other entry may have the number `id`.
    pub(super) fn insert(&mut self, id: u32, place: RBTreeNode<u32, Place>) {
        if let Some(tree) = self.tree(id) {
            tree.insert(place);
            self.count = self.count.saturating_add(1);
        }
    }

    /// Removes the entry of context `id` and returns it.
    pub(super) fn remove(&mut self, id: u32) -> Option<RBTreeNode<u32, Place>> {
        let place = self.tree(id)?.remove_node(&id)?;
        self.count = self.count.saturating_sub(1);
        Some(place)
    }

    /// Removes an arbitrary entry and returns it.
    pub(super) fn pop(&mut self) -> Option<RBTreeNode<u32, Place>> {
        let mut trees = self.trees.iter_mut();
        let cursor = trees.find_map(|tree| tree.cursor_front_mut())?;
        let (_, place) = cursor.remove_current();
        self.count = self.count.saturating_sub(1);
        Some(place)
    }
}
