// SPDX-License-Identifier: GPL-2.0

//! Events that outlive the message that they tell of.

use super::{event::MAX_PRIVATE_DATA, Ece, Event, EventParam};
use cmproto::{bytes::fill, ucma_abi::CmEvent};

/// What comes with an event, with its private data.
///
/// # Invariants
///
/// `param` has no private data; those are the first `len` of `bytes`.
struct KeptParam {
    param: EventParam<'static>,
    len: u8,
    bytes: [u8; MAX_PRIVATE_DATA],
}

impl KeptParam {
    fn new(param: &EventParam<'_>) -> Self {
        let mut bytes = [0; MAX_PRIVATE_DATA];
        let len = fill(&mut bytes, param.private_data());
        // INVARIANT: That many were just written.
        KeptParam {
            param: param.with_private_data(&[]),
            len: u8::try_from(len).unwrap_or(0),
            bytes,
        }
    }

    /// What was kept.
    fn get(&self) -> EventParam<'_> {
        let data = self.bytes.get(..usize::from(self.len)).unwrap_or(&[]);
        self.param.with_private_data(data)
    }
}

/// An event, with its private data.
pub(crate) struct KeptEvent {
    /// What happened.
    pub(crate) kind: CmEvent,
    /// As in [`Event`].
    pub(crate) status: i32,
    ece: Ece,
    param: KeptParam,
}

impl KeptEvent {
    /// Keeps an event.
    pub(crate) fn new(event: &Event<'_>) -> Self {
        KeptEvent {
            kind: event.kind,
            status: event.status,
            ece: event.ece,
            param: KeptParam::new(&event.param),
        }
    }

    /// The event.
    pub(crate) fn get(&self) -> Event<'_> {
        Event {
            kind: self.kind,
            status: self.status,
            param: self.param.get(),
            ece: self.ece,
        }
    }
}
