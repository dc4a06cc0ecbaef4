// SPDX-License-Identifier: GPL-2.0

//! The timer of an endpoint.

use super::execute::Cause;
use crate::{
    endpoint::{Endpoint, EndpointRef, Inner},
    table::timers::{Due, Timed},
};

impl Timed for EndpointRef {
    fn number(&self) -> u64 {
        self.number
    }

    fn timer_is_due(&self, due: Due<Self>) {
        let mut inner = self.inner.lock();
        if self.core.timers.give_back(&mut inner.timer, due, self) {
            self.timeout(&mut inner);
        }
    }
}

impl Endpoint {
    /// Sets the timer to the deadline of the connection or of the SIDR request.
    pub(super) fn set_timer(self: &EndpointRef, inner: &mut Inner) {
        self.count_in_flight(inner);
        let deadline = match (&inner.conn, &inner.sidr) {
            (Some(conn), _) => conn.machine.deadline(),
            (None, Some(sidr)) => sidr.machine.deadline(),
            (None, None) => None,
        };
        match deadline {
            Some(deadline) => self.core.timers.arm(&mut inner.timer, deadline, self),
            None => self.core.timers.disarm(&mut inner.timer, self),
        }
    }

    /// Handles the expiry of the endpoint's timer.
    fn timeout(self: &EndpointRef, inner: &mut Inner) {
        let now = self.core.now();
        self.keep_pace(inner, now);
        if let Some(conn) = &mut inner.conn {
            let actions = conn.machine.timeout(now);
            self.execute(inner, actions, &Cause::None);
        } else if let Some(sidr) = &mut inner.sidr {
            let actions = sidr.machine.timeout(now);
            self.execute_sidr(inner, actions, None);
        }
    }
}
