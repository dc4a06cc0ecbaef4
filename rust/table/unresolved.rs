// SPDX-License-Identifier: GPL-2.0

//! Requests whose sender's address is being resolved, by listener, with which they end.
//!
//! Such a request is known only to that resolution, but it is shown to administrators as one of its
//! listener. Without this table it would outlive its listener until
//! the resolution ends.
//!
//! Lock order: the lock is of the class "table shard". While it is held, no other lock is taken and
//! nothing is allocated.

use crate::kext::counted::CountedArc;
use atomics::Presence;
use containers::{impl_has_link, Link, Tree};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};

/// The number of a listener, by which its requests are found.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Listener(u64);

/// A request whose sender's address is being resolved, or was until the entry was removed.
struct Entry<T> {
    link: Link<Listener>,
    table: Arc<Unresolved<T>>,
    request: T,
}

impl_has_link! {
    impl{T} HasLink<Listener> for Entry<T> { self.link }
}

/// The table of requests whose sender's address is being resolved.
#[pin_data]
pub(crate) struct Unresolved<T> {
    #[pin]
    requests: Mutex<Tree<CountedArc<Entry<T>>, Listener>>,
    /// The number of requests, so that a listener that ends need not take the lock if there are
    /// none.
    presence: Presence,
}

/// A request that was entered into the table. It is removed when this is dropped, at the latest.
pub(crate) struct UnresolvedRequest<T>(CountedArc<Entry<T>>);

impl<T> UnresolvedRequest<T> {
    /// Enters `request`, which is one to the listener with the number `listener`. Fails with
    /// [`ENOMEM`].
    ///
    /// The caller must then see whether the listener still listens, as one that ends at the same
    /// time may not find the request.
    pub(crate) fn new(table: &Arc<Unresolved<T>>, listener: u64, request: T) -> Result<Self> {
        let entry = Entry {
            link: Link::new(),
            table: table.clone(),
            request,
        };
        let entry = CountedArc::new(entry, GFP_KERNEL_ACCOUNT)?;
        table.presence.add();
        // A new entry is in no table yet.
        let _ = table
            .requests
            .lock()
            .insert(Listener(listener), entry.clone());
        Ok(UnresolvedRequest(entry))
    }

    /// Removes the request. Returns whether it was still there.
    pub(crate) fn remove(&self) -> bool {
        self.0.table.remove(&self.0)
    }
}

impl<T> Drop for UnresolvedRequest<T> {
    fn drop(&mut self) {
        self.remove();
    }
}

impl<T> Unresolved<T> {
    /// Creates an empty table. Fails with [`ENOMEM`].
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                requests <- new_mutex!(Tree::new(), "rdma_cm_unresolved"),
                presence: Presence::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Removes a request. Returns whether it was still there.
    fn remove(&self, entry: &Entry<T>) -> bool {
        let removed = self.requests.lock().remove(entry);
        if removed.is_some() {
            self.presence.remove();
        }
        // The reference is dropped without the lock.
        removed.is_some()
    }

    /// Returns the first request to the listener with this number.
    fn first_of(&self, listener: Listener) -> Option<CountedArc<Entry<T>>> {
        let requests = self.requests.lock();
        let entry = requests.get(&listener)?;
        Some((*entry).clone())
    }

    /// Calls `end` for each request to a listener, which does not listen any more, after the
    /// request was removed.
    pub(crate) fn end_of(&self, listener: u64, end: impl Fn(&T)) {
        // A task that enters a request takes the listener's lock after that. If it then found that
        // the listener listens, this was before the listener's state was changed, so that the
        // request is counted here.
        if self.presence.is_empty() {
            return;
        }
        while let Some(entry) = self.first_of(Listener(listener)) {
            if self.remove(&entry) {
                end(&entry.request);
            }
        }
    }
}
