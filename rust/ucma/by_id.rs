// SPDX-License-Identifier: GPL-2.0

//! The places of a channel by the numbers of their contexts.

use super::place::Place;
use core::array;
use kernel::rbtree::{RBTree, RBTreeNode};

/// Number of trees; a power of two. Numbers are given out one after the other, so that the trees are of
/// one size.
const TREES: usize = 64;

/// Places by number.
///
/// # Invariants
///
/// The trees have `count` entries.
pub(super) struct ById {
    trees: [RBTree<u32, Place>; TREES],
    count: usize,
}

impl ById {
    /// No places.
    pub(super) fn new() -> Self {
        ById {
            trees: array::from_fn(|_| RBTree::new()),
            count: 0,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// All of them, in no order.
    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        self.trees.iter().flat_map(RBTree::values)
    }

    fn tree(&mut self, id: u32) -> Option<&mut RBTree<u32, Place>> {
        let index = usize::try_from(id).unwrap_or(0) & (TREES - 1);
        self.trees.get_mut(index)
    }

    /// The place of this number.
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Place> {
        self.tree(id)?.get_mut(&id)
    }

    /// Adds a place, whose number no other has.
    pub(super) fn insert(&mut self, id: u32, place: RBTreeNode<u32, Place>) {
        if let Some(tree) = self.tree(id) {
            tree.insert(place);
            self.count = self.count.saturating_add(1);
        }
    }

    /// Takes the place of this number out.
    pub(super) fn remove(&mut self, id: u32) -> Option<RBTreeNode<u32, Place>> {
        let place = self.tree(id)?.remove_node(&id)?;
        self.count = self.count.saturating_sub(1);
        Some(place)
    }

    /// Takes any place out.
    pub(super) fn pop(&mut self) -> Option<RBTreeNode<u32, Place>> {
        let mut trees = self.trees.iter_mut();
        let cursor = trees.find_map(|tree| tree.cursor_front_mut())?;
        let (_, place) = cursor.remove_current();
        self.count = self.count.saturating_sub(1);
        Some(place)
    }
}
