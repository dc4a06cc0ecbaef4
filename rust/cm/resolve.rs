// SPDX-License-Identifier: GPL-2.0

//! Resolution of the path to the sender of a message, which never blocks.
//!
//! On InfiniBand the LID of the sender suffices. On RoCE, a neighbour that is known is used at
//! once. Others are resolved in the background. Only these have entries in the neighbour table,
//! until they are given up. The number of resolutions at a time is limited. Beyond it the latest
//! ones replace others, so that senders that cannot be reached do not keep others from being
//! answered.

use super::reply_path::{Neighbour, ReplyPath};
use crate::{
    globals::Globals,
    ib::{
        addr::{AddrDone, Query, Started},
        dev_addr::DevAddr,
    },
    kext::delay,
    table::resolve_budget::{Replaced, ResolvePermit, ResolvePurpose},
};
use cmproto::{addr::SockAddr, node::ResolutionProgress};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex, UniqueArc},
};

/// Timeout of the resolution of a neighbour, in milliseconds.
const TIMEOUT_MS: u32 = 1000;

/// A request or an answer that is deferred until the path to its sender is resolved.
pub(super) trait Deferred: Send + Sync + 'static {
    /// The purpose of the resolution.
    const PURPOSE: ResolvePurpose;

    /// Returns the path to resolve.
    fn reply_path(&self) -> &ReplyPath;

    /// Prepares for a resolution in the background. Returns false if the request has ended.
    ///
    /// Fails with `ENOMEM`.
    fn defer(&mut self) -> Result<bool> {
        Ok(true)
    }

    /// Ends the wait for the resolution. Returns false if the request has ended meanwhile.
    fn resume(&self) -> bool {
        true
    }

    /// Continues when the sender's address is known or cannot be resolved. No lock is held.
    fn resolved(&self, link: Result<&DevAddr>);
}

/// A running resolution, which owns the request or answer that waits for it.
#[pin_data]
struct Resolve<T> {
    globals: Arc<Globals>,
    permit: ResolvePermit,
    deferred: T,
    #[pin]
    progress: Mutex<ResolutionProgress<Query>>,
}

/// Calls [`Deferred::resolved`] when the address of the sender is known: at once if it is known
/// already.
pub(super) fn resolve<T: Deferred>(globals: &Arc<Globals>, deferred: T) {
    match deferred.reply_path().neighbour(globals, T::PURPOSE) {
        Ok(Neighbour::Resolved(found)) => deferred.resolved(Ok(&found)),
        Ok(Neighbour::Unresolved(permit)) => start_resolving(globals, permit, deferred),
        Err(error) => deferred.resolved(Err(error)),
    }
}

/// Starts to resolve the address of the sender, and calls [`Deferred::resolved`] when that is done.
pub(super) fn start_resolving<T: Deferred>(
    globals: &Arc<Globals>,
    permit: ResolvePermit,
    mut deferred: T,
) {
    // The memory is allocated before `deferred` is moved, so that it can be told if there is none.
    let Ok(memory) = UniqueArc::<Resolve<T>>::new_uninit(GFP_KERNEL_ACCOUNT) else {
        return deferred.resolved(Err(ENOMEM));
    };
    match deferred.defer() {
        Ok(true) => {}
        // The listener has ended, and has ended the request.
        Ok(false) => return,
        Err(error) => return deferred.resolved(Err(error)),
    }
    let resolve = memory.pin_init_with(pin_init!(Resolve {
        globals: globals.clone(),
        permit,
        deferred,
        progress <- new_mutex!(ResolutionProgress::Starting, "rdma_cm_resolve"),
    }));
    match resolve {
        Ok(resolve) => Arc::from(resolve).start(),
        Err(impossible) => match impossible {},
    }
}

impl<T: Deferred> Resolve<T> {
    fn start(self: Arc<Self>) {
        if !self.permit.start(self.clone()) {
            return self.over(Err(EBUSY));
        }
        delay::point();
        let path = self.deferred.reply_path();
        let started = path.local.as_ref().ok_or(EINVAL).and_then(|local| {
            let (resolver, peer) = (&self.globals.resolver, &path.back.dgid);
            resolver.resolve_gid(local, peer, TIMEOUT_MS, self.clone())
        });
        match started {
            Ok(Started::Known {
                addr, cancelled, ..
            }) => {
                drop(cancelled);
                self.over(Ok(&addr));
            }
            Ok(Started::Pending(query)) => {
                let over = self.progress.lock().started(query);
                // The lock is not held while a query is cancelled.
                drop(over);
            }
            Err(error) => self.over(Err(error)),
        }
    }

    /// Ends the resolution, unless it has ended, and reports its result, unless the request has
    /// ended with its listener.
    fn over(&self, link: Result<&DevAddr>) {
        let Some(query) = self.progress.lock().end() else {
            return;
        };
        // First the query, then the place: no neighbour is asked without one.
        drop(query);
        self.permit.release();
        delay::point();
        if self.deferred.resume() {
            self.deferred.resolved(link);
        }
    }
}

impl<T: Deferred> AddrDone for Resolve<T> {
    fn done(self: Arc<Self>, status: Result, _src: SockAddr, found: &DevAddr) {
        self.over(status.map(|()| found));
    }
}

impl<T: Deferred> Replaced for Resolve<T> {
    fn replaced(&self) {
        self.over(Err(EBUSY));
    }
}
