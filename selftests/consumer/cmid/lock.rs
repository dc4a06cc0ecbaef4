// SPDX-License-Identifier: GPL-2.0

//! The lock of a handler, which holds callbacks back.

use super::{
    act,
    ending::CONSUMER_DEFINED,
    ground::Ground,
    pair::Pair,
    side::{sleep_ms, LockedId, Side},
};
use crate::{
    harness::{
        check, is,
        task::{completion, spawn},
    },
    rdma::{event::EventType, owner::Verdict},
};
use kernel::{
    prelude::*,
    sync::{Arc, Completion},
};

/// Another task that holds the lock of the handler of a side, until this is dropped.
pub(super) struct Holder {
    released: Arc<Completion>,
    done: Arc<Completion>,
}

impl Holder {
    pub(super) fn new(side: &Arc<Side>) -> Option<Self> {
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

/// A consumer hears of a request before it hears what has become of it, however long the request
/// waits for the handler of the listener.
pub(crate) fn request_in_wait(g: &Arc<Ground>) -> Option<()> {
    let Pair { a, b, l } = &Pair::until_route(g)?;
    let holder = Holder::new(l)?;
    is!(a.connect(), Ok(()));
    sleep_ms(50);
    // The peer gives up, and says so.
    a.end();
    sleep_ms(50);
    is!((l.told(), b.told()), (0, 0));
    drop(holder);
    sleep_ms(50);
    is!(l.told(), 0);
    if b.told() > 0 {
        b.expect(EventType::CONNECT_REQUEST);
    }
    Some(())
}

fn take_time(_side: &Arc<Side>, _id: &LockedId<'_>, _event: EventType) -> Verdict {
    sleep_ms(200);
    Verdict::KEEP
}

/// Another task destroys the identifier of a request whose consumer is just being told of it: the
/// task waits for the end of the callback.
pub(crate) fn request_destroyed(g: &Arc<Ground>) -> Option<()> {
    let Pair { a, b, .. } = &Pair::until_route(g)?;
    b.on(EventType::CONNECT_REQUEST, take_time);
    is!(a.connect(), Ok(()));
    check!(b.wait_inside(10_000));
    b.end();
    is!(b.inside(), 0);
    b.expect(EventType::CONNECT_REQUEST);
    a.expect_status(EventType::REJECTED, CONSUMER_DEFINED);
    Some(())
}
