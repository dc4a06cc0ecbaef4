// SPDX-License-Identifier: GPL-2.0

//! What an identifier of a program looks like to tools that look into the kernel, which find there what C
//! would have.
//!
//! They attach to the C function `ucma_event_handler` (`rust/helpers/rdma_ucm.c`), as bcc's `rdmaucma` does.

use super::{
    super::restrack::IdHead,
    event::{conn, plain},
};
use crate::{
    bindings,
    endpoint::{Event, EventParam},
};
use core::ptr;
use kernel::prelude::*;

impl IdHead {
    /// Notes that the identifier is a program's, and what tells it from others: `context`, which is not
    /// looked into.
    pub(crate) fn belong_to_program(&self, context: *const c_void) {
        let id = self.as_id();
        // SAFETY: The fields are inside the object. Nobody calls the handler of such an identifier.
        unsafe {
            (&raw mut (*id).event_handler).write_volatile(Some(bindings::ucma_event_handler));
            (&raw mut (*id).context).write_volatile(context.cast_mut());
        }
    }

    /// Shows an event that the program is about to be told. `dmac` is where the peer is on the link.
    #[inline]
    pub(crate) fn show_event(&self, event: &Event<'_>, dmac: impl FnOnce() -> [u8; 6]) {
        // Apart, as these are what a connection has.
        match &event.param {
            EventParam::None => self.show(plain(event)),
            EventParam::Conn(param) => {
                let mut raw = plain(event);
                raw.param.conn = conn(param);
                self.show(raw);
            }
            _ => self.show_other_event(event, dmac()),
        }
    }

    #[cold]
    fn show_other_event(&self, event: &Event<'_>, dmac: [u8; 6]) {
        self.show(self.raw_event(event, dmac, ptr::null_mut()));
    }

    #[inline(always)]
    fn show(&self, mut event: bindings::rdma_cm_event) {
        // SAFETY: The function reads neither; whoever is attached to it reads while both are there.
        unsafe { bindings::ucma_event_handler(self.as_id(), ptr::from_mut(&mut event)) };
    }
}
