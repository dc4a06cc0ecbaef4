// SPDX-License-Identifier: GPL-2.0

//! How an endpoint is tuned, and how soon its requests are sent early.

use super::peers::Unanswered;
use crate::endpoint::{Endpoint, Inner};
use cmproto::{
    addr::Gid,
    cm::{Pace, Tuning},
    time::Instant,
};

/// A request that waited for an answer, if one did: since when, and whether it was sent early.
pub(super) type Waited = Option<(Instant, bool)>;

impl Endpoint {
    /// What is set for the endpoint, and for its port where that is not.
    pub(crate) fn tuning(&self, inner: &Inner) -> Tuning {
        match self.port(inner) {
            Some(port) => inner.tuning.over(&port.tuning()),
            None => inner.tuning,
        }
    }

    /// The pace of requests to `peer`.
    pub(crate) fn pace(&self, inner: &Inner, peer: &Gid) -> Pace {
        match self.tuning(inner).early_retry() {
            Some(floor) => self.core.peers.pace(peer, floor, self.core.now()),
            None => Pace::Classic,
        }
    }

    /// Lets the state machine know the pace of now, before it sends a request or its timer is
    /// handled.
    pub(crate) fn keep_pace(&self, inner: &mut Inner) {
        let peer = match (&inner.conn, &inner.sidr) {
            (Some(conn), _) => conn.peer,
            (None, Some(sidr)) => sidr.peer,
            (None, None) => return,
        };
        let pace = self.pace(inner, &peer);
        match (&mut inner.conn, &mut inner.sidr) {
            (Some(conn), _) => conn.machine.set_pace(pace),
            (None, Some(sidr)) => sidr.machine.set_pace(pace),
            (None, None) => {}
        }
    }

    /// The request that waits for its answer.
    fn waiting(inner: &Inner) -> (Waited, Option<Gid>) {
        match (&inner.conn, &inner.sidr) {
            (Some(conn), _) => (conn.machine.waiting(), Some(conn.peer)),
            (None, Some(sidr)) => (sidr.machine.waiting(), Some(sidr.peer)),
            (None, None) => (None, None),
        }
    }

    /// Counts the endpoint among those whose request waits, as long as one does.
    pub(super) fn count_unanswered(&self, inner: &mut Inner) {
        let (waited, peer) = Self::waiting(inner);
        match (waited, peer, &inner.unanswered) {
            (Some(_), Some(peer), None) => {
                inner.unanswered = Some(Unanswered::new(&self.core, &peer));
            }
            (None, _, Some(_)) => inner.unanswered = None,
            _ => {}
        }
    }

    /// Takes note that the peer has said something at `now`, when a request had `waited`.
    pub(super) fn note_answer(&self, inner: &Inner, waited: Waited, now: Instant) {
        let (waiting, Some(peer)) = Self::waiting(inner) else {
            return;
        };
        self.core.peers.heard(&peer, now);
        if let (Some((sent, hurried)), None) = (waited, waiting) {
            let after = now.saturating_duration_since(sent);
            self.core.peers.answered(&peer, after, hurried);
        }
    }
}
