// SPDX-License-Identifier: GPL-2.0

//! The entries of a channel, by the numbers of their contexts.

use super::entry::{ChannelEntry, ContextId, Numbered, Place, PlaceRef};
use containers::{Borrowed, Tree};
use core::{array, iter};

/// Number of trees, a power of two. Context numbers are allocated consecutively, so that the trees
/// have about the same size.
const TREES: usize = 64;

/// The entries of some contexts.
type Entries<C> = Tree<PlaceRef<C>, ContextId>;

/// The entries of a channel, by context number.
///
/// # Invariants
///
/// The trees have `count` entries in total.
pub(crate) struct EntryMap<C> {
    trees: [Entries<C>; TREES],
    count: usize,
}

impl<C: Numbered> EntryMap<C> {
    /// Creates an empty set.
    pub(crate) fn new() -> Self {
        EntryMap {
            trees: array::from_fn(|_| Tree::new()),
            count: 0,
        }
    }

    /// Returns the number of entries.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Iterates over the places of all contexts, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Borrowed<'_, PlaceRef<C>>> {
        self.trees.iter().flat_map(|tree| {
            let first = tree.first().map(|(_, place)| place);
            iter::successors(first, |place| tree.after(place))
        })
    }

    /// Calls `visit` for each context and its entry, in no particular order.
    pub(crate) fn for_each_mut(&mut self, visit: impl Fn(&C, &mut ChannelEntry<C>)) {
        for tree in &mut self.trees {
            let mut next = tree.first().map(|(_, place)| (*place).clone());
            while let Some(place) = next {
                if let Some(entry) = tree.value_mut(&place) {
                    visit(&place.context, entry);
                }
                next = tree.after(&place).map(|place| (*place).clone());
            }
        }
    }

    #[inline]
    fn tree(&mut self, id: ContextId) -> Option<&mut Entries<C>> {
        let index = usize::try_from(id.0).unwrap_or(0) & (TREES - 1);
        self.trees.get_mut(index)
    }

    /// Returns the place of the context with the number `id`, and its entry.
    #[inline]
    pub(crate) fn get_mut(
        &mut self,
        id: ContextId,
    ) -> Option<(Borrowed<'_, PlaceRef<C>>, &mut ChannelEntry<C>)> {
        self.tree(id)?.get_mut(&id)
    }

    /// Returns the entry at `place`, if that is in this channel.
    #[inline]
    pub(crate) fn at(&mut self, place: &Place<C>) -> Option<&mut ChannelEntry<C>> {
        self.tree(place.id())?.value_mut(place)
    }

    /// Adds the context at `place`. No other context has its number. Returns its entry.
    pub(crate) fn insert(&mut self, place: PlaceRef<C>) -> Option<&mut ChannelEntry<C>> {
        let id = place.id();
        // A place is in one channel at a time, so that it is entered.
        if self.tree(id)?.insert(id, place).is_ok() {
            self.count = self.count.saturating_add(1);
        }
        Some(self.get_mut(id)?.1)
    }

    /// Removes the context at `place`.
    pub(crate) fn remove(&mut self, place: &Place<C>) {
        let removed = self.tree(place.id()).and_then(|tree| tree.remove(place));
        if removed.is_some() {
            self.count = self.count.saturating_sub(1);
        }
    }

    /// Returns the place of an arbitrary context.
    pub(crate) fn any(&self) -> Option<PlaceRef<C>> {
        Some((*self.iter().next()?).clone())
    }
}
