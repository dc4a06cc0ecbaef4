// SPDX-License-Identifier: GPL-2.0

//! The contents of the last message of a connection that had contents of its own, kept for when the
//! message is sent again.
//!
//! They are needed until the message is answered, and are much of a connection. So they lie in
//! memory of their own, a [`RetransmitMemory`], which the connection gives back when they are not
//! needed.

use super::{
    action::Outgoing,
    lap::Laps,
    params::{AcceptParams, ConnectParams},
};
use crate::{errno::Errno, payload::Payload};
use core::ops::{Deref, DerefMut};

/// The parameters of what was sent and has more than a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Nothing was sent, or it was answered.
    None,
    /// A REQ, on the active side.
    Req(ConnectParams),
    /// A REP, on the passive side.
    Rep(AcceptParams),
    /// LAPs or APRs, of which the connection knows the last ones.
    Laps(Laps),
}

/// The contents of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetransmitBuffer {
    pub(super) sent: Sent,
    /// Additional rejection information and private data. There is room for an RTU or DREP (224
    /// bytes), and for a REJ (72 + 148 bytes).
    pub(super) payload: Payload<Outgoing, 224>,
    /// Bit set of the peer's communication ids, modulo 64, in REPs to the REQ that were refused.
    pub(super) refused: u64,
}

impl RetransmitBuffer {
    /// Returns a buffer without contents.
    // No constant, which would be copied with its unused bytes.
    #[inline(always)]
    pub const fn empty() -> Self {
        Self {
            sent: Sent::None,
            payload: Payload::empty(),
            refused: 0,
        }
    }
}

/// Memory for a [`RetransmitBuffer`], which is given back when this is dropped.
pub trait RetransmitMemory: DerefMut<Target = RetransmitBuffer> + Sized {
    /// Returns memory with an empty buffer.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory.
    fn new() -> Result<Self, Errno>;
}

/// A buffer that is a part of its connection, for programs that need not save memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline(RetransmitBuffer);

impl Deref for Inline {
    type Target = RetransmitBuffer;

    fn deref(&self) -> &RetransmitBuffer {
        &self.0
    }
}

impl DerefMut for Inline {
    fn deref_mut(&mut self) -> &mut RetransmitBuffer {
        &mut self.0
    }
}

impl RetransmitMemory for Inline {
    fn new() -> Result<Self, Errno> {
        Ok(Self(RetransmitBuffer::empty()))
    }
}
