// SPDX-License-Identifier: GPL-2.0

//! The expiry of an endpoint's timer.

use super::execute::Cause;
use crate::{
    endpoint::{Endpoint, EndpointRef, Exchange, Inner},
    table::timers::{Due, Timed},
};

impl Timed for EndpointRef {
    fn number(&self) -> u64 {
        self.number
    }

    fn timer_is_due(&self, due: Due) {
        let _scope = self.memcg_scope();
        let mut inner = self.inner.lock();
        if self.globals.timers.expire(&mut inner.timer, due, self) {
            self.timeout(&mut inner);
        }
    }
}

impl Endpoint {
    /// Handles the expiry of the endpoint's timer.
    fn timeout(self: &EndpointRef, inner: &mut Inner) {
        let now = self.globals.now();
        self.update_retry_policy(inner, now);
        match &mut inner.exchange {
            Exchange::Connection(conn) => {
                let actions = conn.machine.timeout(now);
                self.execute(inner, actions, &Cause::None);
            }
            Exchange::Sidr(sidr) => {
                let actions = sidr.machine.timeout(now);
                self.execute_sidr(inner, actions, None);
            }
            Exchange::None | Exchange::Iwarp(_) => {}
        }
    }
}
