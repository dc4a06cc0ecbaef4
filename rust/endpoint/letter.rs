// SPDX-License-Identifier: GPL-2.0

//! Memory for the message of a connection that may have to be sent again.

use crate::kext::slab::{SlabBox, SlabCache, SlabMemory, Wait};
use cmproto::{
    cm::{self, Letter},
    errno::Errno,
};
use core::ops::{Deref, DerefMut};
use kernel::{alloc::AllocError, prelude::*};

/// The state machine of a connection, with memory of its own for the message that waits for its
/// answer.
pub(crate) type Connection = cm::Connection<LetterBox>;

/// The slab cache of messages that wait for their answers.
pub(crate) type LetterCache = SlabCache<Letter>;

/// Memory for a message, which is charged to the memory cgroup of the task that sends it.
pub(crate) struct LetterBox(SlabBox<Letter>);

impl LetterBox {
    /// Allocates memory for a REQ or REP. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn from_cache(letters: &LetterCache) -> Result<Self> {
        Ok(Self(letters.reserve(Wait::May)?.with(Letter::empty())))
    }
}

impl Deref for LetterBox {
    type Target = Letter;

    fn deref(&self) -> &Letter {
        &self.0
    }
}

impl DerefMut for LetterBox {
    fn deref_mut(&mut self) -> &mut Letter {
        &mut self.0
    }
}

impl cm::LetterBox for LetterBox {
    /// Allocates memory for another message with private data, of which there are few.
    fn new() -> Result<Self, Errno> {
        match SlabMemory::without_cache() {
            Ok(memory) => Ok(Self(memory.with(Letter::empty()))),
            Err(AllocError) => Err(Errno::ENOMEM),
        }
    }
}
