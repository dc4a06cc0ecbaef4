// SPDX-License-Identifier: GPL-2.0

//! The slots of an array that can be closed: each is taken by one task at a time.

use crate::word::Word64;

/// The bit of the word that is set once the array is closed.
const CLOSED: u64 = 1 << 63;

/// Returns the bit of a slot.
const fn bit(slot: u32) -> u64 {
    1_u64.wrapping_shl(slot)
}

/// The slots of an array that are taken, and whether it is closed.
///
/// The task that has taken a slot is the only one to use it, and sees everything that those did
/// which have had it before. No slot of a closed array is taken or put back. The task that closes
/// it has the slots that were not taken, and the others stay with those that have taken them.
///
/// # Invariants
///
/// A bit of the word below [`CLOSED`] is set if the slot with its number is taken, or if the array
/// was closed.
pub struct Slots(Word64);

impl Slots {
    /// The most slots that an array may have.
    pub const MOST: u32 = 63;

    /// Creates the state of an array in which no slot is taken.
    #[inline]
    pub fn new() -> Self {
        Self(Word64::new(0))
    }

    /// Takes the first slot of `len` that is not taken, if there is one and the array is not
    /// closed. Returns its number.
    #[inline]
    pub fn take(&self, len: u32) -> Option<u32> {
        let mut word = self.0.load_relaxed();
        loop {
            let slot = word.trailing_ones();
            if word & CLOSED != 0 || slot >= len.min(Self::MOST) {
                return None;
            }
            match self.0.change(word, word | bit(slot)) {
                Ok(()) => return Some(slot),
                Err(now) => word = now,
            }
        }
    }

    /// Puts a slot back that the caller has taken. Returns false, and leaves the slot to the
    /// caller, if the array is closed.
    #[inline]
    pub fn put_back(&self, slot: u32) -> bool {
        let mut word = self.0.load_relaxed();
        while word & CLOSED == 0 {
            match self.0.change(word, word & !bit(slot)) {
                Ok(()) => return true,
                Err(now) => word = now,
            }
        }
        false
    }

    /// Closes the array. Returns the numbers below `len` of the slots that were not taken, which
    /// are the caller's from then on: none if it was closed before.
    pub fn close(&self, len: u32) -> impl Iterator<Item = u32> {
        let mut word = self.0.load_relaxed();
        while word & CLOSED == 0 {
            match self.0.change(word, u64::MAX) {
                Ok(()) => break,
                Err(now) => word = now,
            }
        }
        (0..len.min(Self::MOST)).filter(move |slot| word & bit(*slot) == 0)
    }
}

impl Default for Slots {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_is_not_taken() {
        let slots = Slots::new();
        assert_eq!([(); 3].map(|()| slots.take(2)), [Some(0), Some(1), None]);
        assert_eq!(slots.take(3), Some(2));
        assert!(slots.put_back(1));
        assert_eq!(slots.take(3), Some(1));
        assert_eq!(slots.take(3), None);
    }

    #[test]
    fn there_are_no_more_than_the_most() {
        let slots = Slots::new();
        for slot in 0..Slots::MOST {
            assert_eq!(slots.take(u32::MAX), Some(slot));
        }
        assert_eq!(slots.take(u32::MAX), None);
        assert!(slots.put_back(62));
        assert_eq!(slots.take(u32::MAX), Some(62));
    }

    #[test]
    fn who_closes_has_what_is_not_taken() {
        let slots = Slots::new();
        assert_eq!((slots.take(4), slots.take(4)), (Some(0), Some(1)));
        assert!(slots.put_back(0));
        assert!(slots.close(4).eq([0, 2, 3]));
        assert!(slots.close(4).eq([]), "it was closed before");
        assert_eq!(slots.take(4), None);
        assert!(!slots.put_back(1), "it is the caller's");
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, spawn, Memory};
    use loom::sync::Arc;

    const LEN: u32 = 2;

    struct Array {
        slots: Slots,
        memory: [Memory; LEN as usize],
    }

    impl Array {
        fn new() -> Arc<Self> {
            Arc::new(Array {
                slots: Slots::new(),
                memory: [Memory::new(0), Memory::new(0)],
            })
        }

        fn of(&self, slot: u32) -> &Memory {
            &self.memory[slot as usize]
        }

        /// Uses a slot, and frees its memory if the array was closed meanwhile.
        fn use_one(&self, who: u32) {
            let Some(slot) = self.slots.take(LEN) else {
                return;
            };
            self.of(slot).write(who);
            assert_eq!(self.of(slot).read(), who);
            if !self.slots.put_back(slot) {
                self.of(slot).free();
            }
        }

        fn close(&self) {
            for slot in self.slots.close(LEN) {
                self.of(slot).free();
            }
        }
    }

    #[test]
    fn two_users_have_no_slot_together() {
        every_schedule(|| {
            let array = Array::new();
            let other = spawn(&array, |array| array.use_one(1));
            array.use_one(2);
            other.join().unwrap();
            array.close();
            assert!(array.memory.iter().all(Memory::is_freed));
        });
    }

    #[test]
    fn each_slot_is_freed_once() {
        every_schedule(|| {
            let array = Array::new();
            let other = spawn(&array, |array| array.use_one(1));
            array.close();
            other.join().unwrap();
            assert!(array.memory.iter().all(Memory::is_freed));
        });
    }

    #[test]
    fn two_that_close() {
        every_schedule(|| {
            let array = Array::new();
            let other = spawn(&array, Array::close);
            array.close();
            other.join().unwrap();
            assert!(array.memory.iter().all(Memory::is_freed));
        });
    }
}
