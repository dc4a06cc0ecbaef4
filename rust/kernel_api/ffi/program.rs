// SPDX-License-Identifier: GPL-2.0

//! The view of a program's identifier that tracing tools have, with the contents that C has.
//!
//! The tools attach to the C function `ucma_event_handler` (`rust/helpers/rdma_ucm.c`), as bcc's
//! `rdmaucma` does.

use super::event::{conn, plain};
use crate::{
    bindings,
    endpoint::{Event, EventParam},
    ib::{qp::NextHop, restrack::RdmaIdPrivate},
};
use core::ptr;
use kernel::prelude::*;

impl RdmaIdPrivate {
    /// Marks the identifier as a program's, with a `context` that is unique but is not
    /// dereferenced.
    pub(crate) fn belong_to_program(&self, context: *const c_void) {
        let id = self.as_id();
        // SAFETY: The fields are inside the object. The handler of such an identifier is not
        // called.
        unsafe {
            (&raw mut (*id).event_handler).write_volatile(Some(bindings::ucma_event_handler));
            (&raw mut (*id).context).write_volatile(context.cast_mut());
        }
    }

    /// Passes an event to attached tools, before the program is told of it.
    ///
    /// `hop` returns the next hop to the peer.
    #[inline]
    pub(crate) fn show_event(&self, event: &Event<'_>, hop: impl FnOnce() -> NextHop) {
        // The events of a connection are handled apart, because they are the frequent ones.
        match &event.param {
            EventParam::None => self.show(plain(event)),
            EventParam::Conn(param) => {
                let mut raw = plain(event);
                raw.param.conn = conn(param);
                self.show(raw);
            }
            _ => self.show_other_event(event, hop()),
        }
    }

    #[cold]
    fn show_other_event(&self, event: &Event<'_>, hop: NextHop) {
        self.show(self.raw_event(event, hop, ptr::null_mut()));
    }

    #[inline(always)]
    fn show(&self, mut event: bindings::rdma_cm_event) {
        // SAFETY: The function uses neither pointer; a tool that is attached to it reads while both
        // objects live.
        unsafe { bindings::ucma_event_handler(self.as_id(), ptr::from_mut(&mut event)) };
    }
}
