// SPDX-License-Identifier: GPL-2.0

//! The lock of a handler, which holds callbacks back.

use super::{act, ground::Ground, pair::Pair, side::Side};
use crate::{
    harness::{
        is,
        task::{completion, spawn},
    },
    rdma::event::EventType,
};
use kernel::{
    prelude::*,
    sync::{Arc, Completion},
};

/// Another task that holds the lock of the handler of a side, until this is dropped.
struct Holder {
    released: Arc<Completion>,
    done: Arc<Completion>,
}

impl Holder {
    fn new(side: &Arc<Side>) -> Option<Self> {
        let (held, released) = (completion()?, completion()?);
        let (side, is_held, is_released) = (side.clone(), held.clone(), released.clone());
        let done = spawn(move || {
            side.see(|id| {
                let _lock = id.lock_handler();
                is_held.complete_all();
                is_released.wait_for_completion();
            });
            // Also if there was nothing to be locked.
            is_held.complete_all();
        })?;
        held.wait_for_completion();
        Some(Self { released, done })
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.released.complete_all();
        self.done.wait_for_completion();
    }
}

/// While a consumer has the lock, it is told nothing. Other tasks take those of the listener and of
/// the other end: no order is defined between those of two identifiers, and lockdep says so.
pub(crate) fn handler_lock(g: &Arc<Ground>) -> Option<()> {
    let pair = Pair::start(g)?;
    let Pair { a, b, l } = &pair;
    a.see(|id| {
        let _lock = id.lock_handler();
        is!(act::resolve(a, id), Ok(()));
        a.is_quiet();
    });
    if !(a.expect(EventType::ADDR_RESOLVED) && pair.resolve_route()) {
        return None;
    }
    // Requests wait for the listener.
    let holder = Holder::new(l)?;
    let accepted = a.see(|id| {
        let lock = id.lock_handler();
        is!(act::connect_locked(a, &lock), Ok(()));
        is!(act::connect_locked(a, &lock), Err(EINVAL));
        b.is_quiet();
        drop(holder);
        if !b.expect(EventType::CONNECT_REQUEST) {
            return false;
        }
        let accepter = Arc::clone(b);
        let accepted = spawn(move || {
            is!(accepter.accept(), Ok(()));
        });
        if let Some(accepted) = accepted {
            accepted.wait_for_completion();
        }
        a.is_quiet();
        true
    });
    if accepted == Some(true) {
        a.expect(EventType::CONNECT_RESPONSE);
    }
    Some(())
}
