// SPDX-License-Identifier: GPL-2.0

//! The policy of an endpoint's early retries.

use super::route::Route;
use crate::{
    endpoint::{Endpoint, Exchange, Inner},
    table::round_trips::InFlight,
};
use cmproto::{
    cm::{RetryPolicy, Tunable, Waiting},
    origin::Origin,
    time::{Duration, Instant},
};

impl Endpoint {
    /// Returns the policy of a new request along `route`, at the time `now`.
    pub(super) fn retry_policy(&self, inner: &Inner, route: &Route, now: Instant) -> RetryPolicy {
        let own = inner.tuning.own(Tunable::EarlyRetry);
        let early_retry = own.unwrap_or(route.early_retry);
        self.retry_policy_to(early_retry, &route.peer, None, now)
    }

    /// Returns the policy of a request to `peer`, which is new or `waiting` for its answer.
    /// `early_retry` is in milliseconds.
    fn retry_policy_to(
        &self,
        early_retry: u32,
        peer: &Origin,
        waiting: Option<Waiting>,
        now: Instant,
    ) -> RetryPolicy {
        match early_retry {
            0 => RetryPolicy::Classic,
            ms => {
                let floor = Duration::from_millis(u64::from(ms));
                self.globals
                    .round_trips
                    .retry_policy(peer, waiting, floor, now)
            }
        }
    }

    /// Updates the policy of the state machine. To be called before a request is sent or a timer is
    /// handled.
    pub(super) fn update_retry_policy(&self, inner: &mut Inner, now: Instant) {
        let Some((peer, waiting)) = inner.exchange.waiting() else {
            return;
        };
        let tuned = || {
            let port = inner.cm_port();
            port.map_or(Tunable::EarlyRetry.default_value(), |port| {
                port.tuned(Tunable::EarlyRetry)
            })
        };
        let early_retry = inner.tuning.own(Tunable::EarlyRetry);
        let policy = self.retry_policy_to(early_retry.unwrap_or_else(tuned), peer, waiting, now);
        match &mut inner.exchange {
            Exchange::Connection(conn) => conn.machine.set_retry_policy(policy),
            Exchange::Sidr(sidr) => sidr.machine.set_retry_policy(policy),
            Exchange::None | Exchange::Iwarp(_) => {}
        }
    }

    /// Counts the request of the endpoint that waits for its answer, for as long as there is one.
    pub(super) fn count_in_flight(&self, inner: &mut Inner) {
        match (inner.exchange.waiting(), &inner.in_flight) {
            (Some((peer, Some(_))), None) => {
                inner.in_flight = Some(InFlight::new(&self.globals.round_trips, peer));
            }
            (Some((_, None)) | None, Some(_)) => inner.in_flight = None,
            _ => {}
        }
    }

    /// Records that a message of the peer has arrived at `now`. `waited` is the request that was
    /// unanswered before.
    pub(super) fn note_answer(&self, inner: &Inner, waited: Option<Waiting>, now: Instant) {
        let Some((peer, waiting)) = inner.exchange.waiting() else {
            return;
        };
        self.globals.round_trips.received(peer, now);
        match (waited, waiting) {
            (Some(waited), None) => self.globals.round_trips.answered(peer, waited, now),
            (Some(before), Some(after)) if before.ambiguous && !after.ambiguous => {
                self.globals.round_trips.acknowledged(peer, after, now);
            }
            _ => {}
        }
    }
}
