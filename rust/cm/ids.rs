// SPDX-License-Identifier: GPL-2.0

//! Communication ids: the table from a 32-bit id on the wire to its endpoint.
//!
//! An id is a slot number and the slot's generation under a keyed permutation
//! ([`cmproto::ids::CommIdKey`]), so that a peer that knows one id cannot tell the next one, and an id
//! of the past does not find the endpoint of today. The slots are spread over shards; a lookup
//! takes one shard lock for a few instructions and returns a reference of its own.
//!
//! Lock order: a shard lock is of the class "table shard"; nothing is locked and nothing is
//! allocated while it is held.

use crate::{core::Core, endpoint::Endpoint};
use cmproto::ids::CommIdKey;
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// Number of low bits of a raw id that select the shard.
const SHARD_BITS: u32 = 4;
/// Number of shards.
const SHARDS: usize = 1 << SHARD_BITS;
/// Number of bits that select the slot within its shard.
const INDEX_BITS: u32 = 18;
/// The most slots that one shard may hold: over four million connections in all.
const MAX_SLOTS: usize = 1 << INDEX_BITS;
/// Slots that a shard starts with.
const FIRST_SLOTS: usize = 64;

/// One place in a shard.
struct Slot {
    /// Counts the uses of the slot; part of the id, so that ids are not reused at once.
    generation: u32,
    /// The endpoint, once the id is published.
    entry: Option<Arc<Endpoint>>,
    /// The next free slot, while this one is free.
    next_free: Option<usize>,
}

/// A part of the table.
///
/// # Invariants
///
/// The free slots form one list from `first_free` to `last_free` through `next_free`; a slot that
/// is on it has no entry.
struct Shard {
    slots: KVec<Slot>,
    first_free: Option<usize>,
    last_free: Option<usize>,
}

impl Shard {
    /// Takes the free slot that has been free for longest.
    fn take_free(&mut self) -> Option<(usize, u32)> {
        let index = self.first_free?;
        let slot = self.slots.get_mut(index)?;
        self.first_free = slot.next_free.take();
        if self.first_free.is_none() {
            self.last_free = None;
        }
        Some((index, slot.generation))
    }

    /// Returns a slot to the end of the free list and forgets its id.
    fn give_back(&mut self, index: usize) -> Option<Arc<Endpoint>> {
        let last = self.last_free;
        let slot = self.slots.get_mut(index)?;
        slot.generation = slot.generation.wrapping_add(1);
        slot.next_free = None;
        let entry = slot.entry.take();
        match last.and_then(|last| self.slots.get_mut(last)) {
            Some(last) => last.next_free = Some(index),
            None => self.first_free = Some(index),
        }
        self.last_free = Some(index);
        entry
    }

    /// Adds free slots up to the capacity of `slots`; allocates nothing.
    fn extend(&mut self) {
        while self.slots.len() < self.slots.capacity() {
            let index = self.slots.len();
            let slot = Slot {
                generation: 0,
                entry: None,
                next_free: None,
            };
            if self.slots.push_within_capacity(slot).is_err() {
                return;
            }
            match self.last_free.and_then(|last| self.slots.get_mut(last)) {
                Some(last) => last.next_free = Some(index),
                None => self.first_free = Some(index),
            }
            self.last_free = Some(index);
        }
    }

    /// Moves everything into `bigger`, which must be empty, and returns the old storage.
    fn grow(&mut self, bigger: KVec<Slot>) -> KVec<Slot> {
        if bigger.capacity() <= self.slots.capacity() {
            return bigger;
        }
        let mut old = core::mem::replace(&mut self.slots, bigger);
        for slot in old.drain_all() {
            // The capacity of `bigger` is larger than what `old` held, so this cannot fail.
            let _ = self.slots.push_within_capacity(slot);
        }
        self.extend();
        old
    }
}

/// The table of communication ids.
#[pin_data]
pub(crate) struct CommIds {
    key: CommIdKey,
    turn: Atomic<u32>,
    #[pin]
    shards: [Mutex<Shard>; SHARDS],
}

/// A communication id that is taken; dropping it gives it back.
pub(crate) struct CommId {
    core: Arc<Core>,
    id: u32,
    shard: usize,
    index: usize,
}

impl CommId {
    /// Takes an id that finds nothing yet.
    ///
    /// Fails with `ENOMEM` when memory or ids run out.
    pub(crate) fn new(core: &Arc<Core>) -> Result<Self> {
        let (id, shard, index) = core.ids.reserve()?;
        Ok(CommId {
            core: core.clone(),
            id,
            shard,
            index,
        })
    }

    /// The id as it goes on the wire, in host order.
    pub(crate) fn value(&self) -> u32 {
        self.id
    }

    /// Makes the id find `endpoint`.
    pub(crate) fn publish(&self, endpoint: &Arc<Endpoint>) {
        if let Some(lock) = self.core.ids.shards.get(self.shard) {
            if let Some(slot) = lock.lock().slots.get_mut(self.index) {
                slot.entry = Some(endpoint.clone());
            }
        }
    }
}

impl Drop for CommId {
    fn drop(&mut self) {
        let shard = self.core.ids.shards.get(self.shard);
        let entry = shard.and_then(|lock| lock.lock().give_back(self.index));
        // The reference goes away outside the shard lock.
        drop(entry);
    }
}

/// Splits a raw id into shard, slot and generation.
fn split(raw: u32) -> (usize, usize, u32) {
    let shard = raw & ((1 << SHARD_BITS) - 1);
    let index = (raw >> SHARD_BITS) & ((1 << INDEX_BITS) - 1);
    (
        usize::try_from(shard).unwrap_or(0),
        usize::try_from(index).unwrap_or(usize::MAX),
        raw >> (SHARD_BITS + INDEX_BITS),
    )
}

/// The part of a generation that is in an id.
fn visible(generation: u32) -> u32 {
    generation & (u32::MAX >> (SHARD_BITS + INDEX_BITS))
}

impl CommIds {
    /// Creates an empty table whose ids are scrambled with `key`.
    pub(crate) fn new(key: [u64; 2]) -> impl PinInit<Self> {
        pin_init!(Self {
            key: CommIdKey::new(key),
            turn: Atomic::new(0),
            shards <- pin_init::pin_init_array_from_fn(|_| new_mutex!(Shard {
                slots: KVec::new(),
                first_free: None,
                last_free: None,
            }, "rdma_cm_ids")),
        })
    }

    /// Takes a slot; returns its id and its place.
    fn reserve(&self) -> Result<(u32, usize, usize)> {
        let turn = usize::try_from(self.turn.fetch_add(1, Relaxed)).unwrap_or(0);
        let shard = turn & (SHARDS - 1);
        let lock = self.shards.get(shard).ok_or(EINVAL)?;
        loop {
            let len = {
                let mut guard = lock.lock();
                if let Some((index, generation)) = guard.take_free() {
                    let raw = (visible(generation) << (SHARD_BITS + INDEX_BITS))
                        | (u32::try_from(index)? << SHARD_BITS)
                        | u32::try_from(shard)?;
                    return Ok((self.key.permute(raw), shard, index));
                }
                guard.slots.len()
            };
            if len >= MAX_SLOTS {
                return Err(ENOMEM);
            }
            let want = len.saturating_mul(2).clamp(FIRST_SLOTS, MAX_SLOTS);
            let bigger = KVec::with_capacity(want, GFP_KERNEL)?;
            let old = lock.lock().grow(bigger);
            drop(old);
        }
    }

    /// Finds the endpoint of an id that a peer sent.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<Endpoint>> {
        let (shard, index, generation) = split(self.key.invert(id));
        let guard = self.shards.get(shard)?.lock();
        let slot = guard.slots.get(index)?;
        if visible(slot.generation) != generation {
            return None;
        }
        slot.entry.clone()
    }
}
