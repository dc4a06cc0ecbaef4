// SPDX-License-Identifier: GPL-2.0

//! Memory for the events of a context itself.
//!
//! A context has as many slots as events usually come between two reads. One is there from the
//! start, for the removal of the device that the context may be bound to. The others come with the
//! first command that causes events.

use super::event::{EventRespBox, Unread};
use crate::kext::slab::{SlabBox, SlabBoxCache, Wait};
use core::{iter, mem};
use kernel::alloc::AllocError;

/// Number of slots that come later.
const MORE: usize = 4;

/// Memory for one event of the context itself.
enum Slot {
    Free,
    /// Lent to the caller of [`Slots::lend`].
    Lent,
    /// A slot with an event at this position. If the event is taken, it counts as read.
    Full(u64, Unread),
}

/// The slots that come later.
pub(crate) struct MoreSlots(SlabBox<[Slot; MORE]>);

/// The slab cache of the slots that come later.
pub(crate) struct SlotCache(SlabBoxCache<[Slot; MORE]>);

/// The slots of a context, and the events in them.
///
/// # Invariants
///
/// `used` of the slots are not free, and `unread` are full and not taken.
pub(crate) struct Slots {
    first: Slot,
    more: Option<MoreSlots>,
    used: u8,
    unread: u8,
}

impl SlotCache {
    /// Creates the cache.
    pub(crate) fn new() -> kernel::error::Result<Self> {
        SlabBoxCache::new(c"rdma_ucm_slots").map(SlotCache)
    }
}

impl MoreSlots {
    /// The number of these slots.
    pub(crate) const NUMBER: usize = MORE;

    /// Allocates slots that are free, charged to the current task's memory cgroup. May sleep.
    pub(crate) fn new(cache: &SlotCache) -> Result<Self, AllocError> {
        let memory = cache.0.reserve(Wait::May)?;
        Ok(MoreSlots(memory.with([const { Slot::Free }; MORE])))
    }
}

impl Slot {
    fn unread(&self) -> Option<(u64, &Unread)> {
        match self {
            Slot::Full(at, unread) if !unread.is_taken => Some((*at, unread)),
            _ => None,
        }
    }

    fn is_free(&self) -> bool {
        matches!(self, Slot::Free)
    }

    fn is_lent(&self) -> bool {
        matches!(self, Slot::Lent)
    }

    /// Returns whether a reader has taken the event at `position`.
    fn is_taken(&self, position: u64) -> bool {
        matches!(self, Slot::Full(at, unread) if *at == position && unread.is_taken)
    }
}

impl Slots {
    /// The slot that a context has from the start.
    pub(crate) const FIRST: Self = Slots {
        first: Slot::Free,
        more: None,
        used: 0,
        unread: 0,
    };

    /// Returns whether the slots that come later have come.
    pub(crate) fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// Adds more slots. Returns them if they were there already.
    pub(crate) fn add(&mut self, more: MoreSlots) -> Option<MoreSlots> {
        match self.more {
            Some(_) => Some(more),
            // INVARIANT: All that come are free.
            None => self.more.replace(more),
        }
    }

    fn iter(&self) -> impl Iterator<Item = &Slot> {
        let more = self.more.iter().flat_map(|more| more.0.iter());
        iter::once(&self.first).chain(more)
    }

    fn find(&mut self, is_meant: impl Fn(&Slot) -> bool) -> Option<&mut Slot> {
        if is_meant(&self.first) {
            return Some(&mut self.first);
        }
        let more = self.more.as_mut()?;
        more.0.iter_mut().find(|slot| is_meant(slot))
    }

    /// Returns the number of free slots.
    pub(crate) fn free(&self) -> usize {
        let all = if self.has_more() { MORE + 1 } else { 1 };
        all.saturating_sub(self.used.into())
    }

    /// Returns whether no event is unread.
    pub(crate) fn is_empty(&self) -> bool {
        self.unread == 0
    }

    /// Returns the oldest unread event, and its position.
    #[inline]
    pub(crate) fn oldest(&self) -> Option<(u64, &Unread)> {
        match (self.unread, self.first.unread()) {
            (0, _) => None,
            (1, Some(first)) => Some(first),
            _ => self.oldest_of_all(),
        }
    }

    #[inline(never)]
    fn oldest_of_all(&self) -> Option<(u64, &Unread)> {
        let unread = self.iter().filter_map(Slot::unread);
        unread.min_by_key(|(at, _)| *at)
    }

    /// Takes a free slot for an event that [`fill`](Self::fill) adds. Returns whether there was
    /// one.
    pub(crate) fn lend(&mut self) -> bool {
        match self.find(Slot::is_free) {
            Some(slot) => {
                *slot = Slot::Lent;
                // INVARIANT: One more slot is not free.
                self.used = self.used.saturating_add(1);
                true
            }
            None => false,
        }
    }

    /// Puts back a slot that [`lend`](Self::lend) took and that was not used.
    pub(crate) fn put_back_lent(&mut self) {
        if let Some(slot) = self.find(Slot::is_lent) {
            *slot = Slot::Free;
            // INVARIANT: One slot less is not free.
            self.used = self.used.saturating_sub(1);
        }
    }

    /// Adds an event at the position `at`, in a slot that [`lend`](Self::lend) took.
    pub(crate) fn fill(&mut self, at: u64, unread: Unread) {
        if let Some(slot) = self.find(Slot::is_lent) {
            *slot = Slot::Full(at, unread);
            // INVARIANT: One more event is unread.
            self.unread = self.unread.saturating_add(1);
        }
    }

    /// Takes the event at the position `at`, after `look` has been called on it. It stays in its
    /// slot, and counts as read.
    pub(crate) fn take<R>(&mut self, at: u64, look: impl FnOnce(&mut Unread) -> R) -> Option<R> {
        let slot = self.find(|slot| matches!(slot, Slot::Full(here, _) if *here == at))?;
        let Slot::Full(_, unread) = slot else {
            return None;
        };
        let seen = look(unread);
        unread.is_taken = true;
        // INVARIANT: One event less is unread.
        self.unread = self.unread.saturating_sub(1);
        Some(seen)
    }

    /// Makes an event that was taken unread again. `resp` is the part of it that its reader took.
    pub(crate) fn put_back(&mut self, at: u64, resp: Option<EventRespBox>) {
        if let Some(Slot::Full(_, unread)) = self.find(|slot| slot.is_taken(at)) {
            *unread.resp() = resp;
            unread.is_taken = false;
            // INVARIANT: One more event is unread.
            self.unread = self.unread.saturating_add(1);
        }
    }

    /// Removes an event that was taken. The caller drops it without a lock.
    pub(crate) fn finish(&mut self, at: u64) -> Option<Unread> {
        let slot = self.find(|slot| slot.is_taken(at))?;
        let Slot::Full(_, unread) = mem::replace(slot, Slot::Free) else {
            return None;
        };
        // INVARIANT: One slot less is not free.
        self.used = self.used.saturating_sub(1);
        Some(unread)
    }
}
