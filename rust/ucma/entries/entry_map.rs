// SPDX-License-Identifier: GPL-2.0

//! The entries of a channel, by the numbers of their contexts.

use super::entry::ChannelEntry;
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
pub(crate) struct EntryMap<C> {
    trees: [RBTree<u32, ChannelEntry<C>>; TREES],
    count: usize,
}

impl<C> EntryMap<C> {
    /// Creates an empty set.
    pub(crate) fn new() -> Self {
        EntryMap {
            trees: array::from_fn(|_| RBTree::new()),
            count: 0,
        }
    }

    /// Returns the number of entries.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Iterates over all entries, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ChannelEntry<C>> {
        self.trees.iter().flat_map(RBTree::values)
    }

    fn tree(&mut self, id: u32) -> Option<&mut RBTree<u32, ChannelEntry<C>>> {
        let index = usize::try_from(id).unwrap_or(0) & (TREES - 1);
        self.trees.get_mut(index)
    }

    /// Returns the entry of context `id`.
    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut ChannelEntry<C>> {
        self.tree(id)?.get_mut(&id)
    }

    /// Adds an entry. No other entry may have the number `id`.
    pub(crate) fn insert(&mut self, id: u32, entry: RBTreeNode<u32, ChannelEntry<C>>) {
        if let Some(tree) = self.tree(id) {
            tree.insert(entry);
            self.count = self.count.saturating_add(1);
        }
    }

    /// Removes the entry of context `id` and returns it.
    pub(crate) fn remove(&mut self, id: u32) -> Option<RBTreeNode<u32, ChannelEntry<C>>> {
        let entry = self.tree(id)?.remove_node(&id)?;
        self.count = self.count.saturating_sub(1);
        Some(entry)
    }

    /// Removes an arbitrary entry and returns it.
    pub(crate) fn pop(&mut self) -> Option<RBTreeNode<u32, ChannelEntry<C>>> {
        let mut trees = self.trees.iter_mut();
        let cursor = trees.find_map(|tree| tree.cursor_front_mut())?;
        let (_, entry) = cursor.remove_current();
        self.count = self.count.saturating_sub(1);
        Some(entry)
    }
}
