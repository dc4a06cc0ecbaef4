// SPDX-License-Identifier: GPL-2.0

//! The timer of an endpoint.

use crate::endpoint::{Endpoint, EndpointRef, Exchange, Inner};

impl Endpoint {
    /// Sets the timer to the deadline of the connection or of the SIDR request.
    pub(super) fn set_timer(self: &EndpointRef, inner: &mut Inner) {
        self.count_in_flight(inner);
        let deadline = match &inner.exchange {
            Exchange::Connection(conn) => conn.machine.deadline(),
            Exchange::Sidr(sidr) => sidr.machine.deadline(),
            Exchange::None | Exchange::Iwarp(_) => None,
        };
        match deadline {
            Some(deadline) => self.globals.timers.arm(&mut inner.timer, deadline, self),
            None => self.globals.timers.disarm(&mut inner.timer, self),
        }
    }
}
