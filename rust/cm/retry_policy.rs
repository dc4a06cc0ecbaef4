// SPDX-License-Identifier: GPL-2.0

//! The policy of an endpoint's early retries.

use crate::endpoint::{Endpoint, Inner};
use cmproto::{
    cm::{Heard, Tunable, Waiting},
    event::Phase,
    time::Instant,
};

impl Endpoint {
    /// Updates the policy of the state machine. To be called before a request is sent or a timer is
    /// handled.
    pub(super) fn update_retry_policy(&self, inner: &mut Inner, now: Instant) {
        let Some((peer, waiting)) = inner.exchange.waiting() else {
            return;
        };
        let early_retry = inner.tuned(Tunable::EarlyRetry);
        let round_trips = &self.globals.round_trips;
        let policy = round_trips.retry_policy(peer, waiting, early_retry, now);
        inner.exchange.set_retry_policy(policy);
    }

    /// Records that a message of the peer has arrived at `now`. `waited` is the request that was
    /// unanswered before.
    pub(super) fn note_answer(&self, inner: &Inner, waited: Option<Waiting>, now: Instant) {
        let Some((peer, waiting)) = inner.exchange.waiting() else {
            return;
        };
        let heard = Heard::of(waited, waiting);
        self.globals.round_trips.received(peer, heard, now);
        let (Some(Heard::Answered(waited)), Some(port)) = (heard, inner.cm_port()) else {
            return;
        };
        if waited.ambiguous {
            port.counts.early_retry_answered(waited.message);
        }
        if let Some(phase) = Phase::of(waited.message) {
            let took = now.saturating_duration_since(waited.since);
            port.counts.latencies.count(phase, took);
        }
    }
}
