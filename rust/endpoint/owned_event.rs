// SPDX-License-Identifier: GPL-2.0

//! Events that outlive the message that they report.

use super::{event::MAX_PRIVATE_DATA, Ece, Event, EventParam};
use cmproto::{bytes::fill, ucma_abi::CmEvent};

/// An event that owns its private data.
///
/// # Invariants
///
/// `param` has no private data; the private data is the first `len` bytes of `bytes`.
pub(crate) struct OwnedEvent {
    /// The kind of event.
    pub(crate) kind: CmEvent,
    /// The status, as in [`Event`].
    pub(crate) status: i32,
    ece: Ece,
    param: EventParam<'static>,
    len: u8,
    bytes: [u8; MAX_PRIVATE_DATA],
}

impl OwnedEvent {
    /// Copies an event, with its private data.
    pub(crate) fn new(event: &Event<'_>) -> Self {
        let mut bytes = [0; MAX_PRIVATE_DATA];
        let len = fill(&mut bytes, event.param.private_data());
        // INVARIANT: `len` bytes were just written.
        OwnedEvent {
            kind: event.kind,
            status: event.status,
            ece: event.ece,
            param: event.param.with_private_data(&[]),
            len: u8::try_from(len).unwrap_or(0),
            bytes,
        }
    }

    /// Returns the event.
    pub(crate) fn get(&self) -> Event<'_> {
        let data = self.bytes.get(..usize::from(self.len)).unwrap_or(&[]);
        Event {
            kind: self.kind,
            status: self.status,
            param: self.param.with_private_data(data),
            ece: self.ece,
        }
    }
}
