// SPDX-License-Identifier: GPL-2.0

//! The expiry of an endpoint's timer.

use super::execute::Cause;
use crate::{
    endpoint::{Endpoint, EndpointRef, Exchange, Inner},
    table::timers::Timed,
};
use cmproto::{cm::Waiting, time::Due};

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
        if self.has_link_again(inner) {
            return;
        }
        self.update_retry_policy(inner, now);
        let before = inner.exchange.waiting().and_then(|(_, waiting)| waiting);
        match &mut inner.exchange {
            Exchange::Connection(conn) => {
                let actions = conn.machine.timeout(now);
                let after = conn.machine.waiting();
                self.count_early(inner, before, after);
                self.execute(inner, actions, &Cause::None);
            }
            Exchange::Sidr(sidr) => {
                let actions = sidr.machine.timeout(now);
                let after = sidr.machine.waiting();
                self.count_early(inner, before, after);
                self.execute_sidr(inner, actions, None);
            }
            Exchange::None | Exchange::Iwarp(_) => {}
        }
    }

    /// Counts an early retry, if the request that has waited before a timeout was sent early by it.
    fn count_early(&self, inner: &Inner, before: Option<Waiting>, after: Option<Waiting>) {
        if let (Some(before), Some(after), Some(port)) = (before, after, inner.cm_port()) {
            if after.early > before.early {
                port.counts.early_retry(after.message);
            }
        }
    }
}
