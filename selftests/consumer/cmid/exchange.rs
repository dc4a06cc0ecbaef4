// SPDX-License-Identifier: GPL-2.0

//! A word that goes from one end to the other.

use super::{
    ground::Ground,
    side::{Id, Side},
};
use crate::{
    harness::{check, is},
    rdma::word::{WcStatus, Word},
};
use kernel::{
    sync::Arc,
    time::{delay::fsleep, Delta},
};

impl Ground {
    /// There is a word.
    pub(crate) fn word_begins(&self) -> bool {
        let word = self.pd().and_then(Word::new);
        check!(word.is_ok());
        let word = word.ok();
        let is_there = word.is_some();
        *self.word.lock() = word;
        is_there
    }

    fn word(&self) -> Option<Arc<Word>> {
        self.word.lock().clone()
    }

    /// The word has arrived.
    pub(crate) fn word_ends(&self) {
        let Some(word) = self.word.lock().take() else {
            return;
        };
        for _ in 0..4000 {
            if word.done().count >= 2 {
                break;
            }
            if let Ok(cq) = self.cq() {
                cq.poll();
            }
            fsleep(Delta::from_millis(1));
        }
        let done = word.done();
        is!(done.count, 2);
        is!(done.status, WcStatus::SUCCESS);
        check!(word.has_arrived());
    }
}

/// Receives it.
pub(crate) fn word_receive(side: &Side, id: &Id) -> bool {
    let word = side.ground.word();
    let posted = word.and_then(|word| id.with_qp(|qp| qp.post_recv(&word)));
    is!(posted, Some(Ok(())))
}

/// Sends it.
pub(crate) fn word_send(side: &Side, id: &Id) -> bool {
    let word = side.ground.word();
    let posted = word.and_then(|word| id.with_qp(|qp| qp.post_send(&word)));
    is!(posted, Some(Ok(())))
}

/// From one to the other.
pub(crate) fn exchange(from: &Side, to: &Side) {
    let ground = &from.ground;
    if ground.word_begins() {
        to.see(|id| word_receive(to, id));
        from.see(|id| word_send(from, id));
        ground.word_ends();
    }
}
