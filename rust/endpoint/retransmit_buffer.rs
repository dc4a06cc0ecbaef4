// SPDX-License-Identifier: GPL-2.0

//! Memory for the message of a connection that may have to be sent again.

use crate::kext::slab::{SlabBox, SlabBoxCache, SlabMemory, Wait};
use cmproto::{
    cm::{self, RetransmitBuffer},
    errno::Errno,
};
use core::ops::{Deref, DerefMut};
use kernel::{alloc::AllocError, prelude::*};

/// The state machine of a connection, with memory of its own for the message that waits for its
/// answer.
pub(crate) type Connection = cm::Connection<RetransmitMemory>;

/// The slab cache of messages that wait for their answers.
pub(crate) type BufferCache = SlabBoxCache<RetransmitBuffer>;

/// Memory for a message, which is charged to the memory cgroup of the task that sends it.
pub(crate) struct RetransmitMemory(SlabBox<RetransmitBuffer>);

impl RetransmitMemory {
    /// Allocates memory for a REQ or REP. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn from_cache(buffers: &BufferCache) -> Result<Self> {
        Ok(Self(
            buffers.reserve(Wait::May)?.with(RetransmitBuffer::empty()),
        ))
    }
}

impl Deref for RetransmitMemory {
    type Target = RetransmitBuffer;

    fn deref(&self) -> &RetransmitBuffer {
        &self.0
    }
}

impl DerefMut for RetransmitMemory {
    fn deref_mut(&mut self) -> &mut RetransmitBuffer {
        &mut self.0
    }
}

impl cm::RetransmitMemory for RetransmitMemory {
    /// Allocates memory for another message with private data, of which there are few.
    fn new() -> Result<Self, Errno> {
        match SlabMemory::without_cache() {
            Ok(memory) => Ok(Self(memory.with(RetransmitBuffer::empty()))),
            Err(AllocError) => Err(Errno::ENOMEM),
        }
    }
}
