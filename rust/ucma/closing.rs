// SPDX-License-Identifier: GPL-2.0

//! The end of the contexts of a file that was closed.
//!
//! To destroy thousands of contexts takes seconds, and the process that closes the file may be one
//! that is being killed. So ports and listeners, which others may be waiting for, are given back at
//! once, and the rest is done in the background, by several work items. If there are only a few
//! contexts, they are destroyed before the file is closed.

use super::{
    context::Context,
    entries::{ChannelContexts, RemovedEntry},
    globals::Ucma,
};
use crate::kext::delay;
use kernel::{
    alloc::flags::GFP_KERNEL,
    cpu::nr_cpu_ids,
    new_mutex,
    prelude::*,
    sync::{atomic::Relaxed, Arc, Mutex},
};

/// The most contexts that are destroyed before `close()` returns.
const FEW: usize = 256;

/// The most contexts, of all closed files together, that are destroyed in the background. Further
/// ones are destroyed by the process that closes their file, so that no process can create contexts
/// faster than they are destroyed.
const MOST: u64 = 1 << 17;

/// The most work items that destroy the contexts of one file.
const WORKERS: u32 = 4;

/// A number of contexts that count as being destroyed in the background until this is dropped.
struct Counted {
    ucma: Arc<Ucma>,
    count: u64,
}

impl Counted {
    /// Counts `count` contexts, or returns `None` if there would be more than [`MOST`].
    fn new(ucma: &Arc<Ucma>, count: usize) -> Option<Self> {
        let count = u64::try_from(count).ok()?;
        let before = ucma.ending.fetch_add(count, Relaxed);
        let counted = Counted {
            ucma: ucma.clone(),
            count,
        };
        (before.saturating_add(count) <= MOST).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.ucma.ending.fetch_sub(self.count, Relaxed);
    }
}

/// Contexts that are destroyed in the background.
#[pin_data]
struct Closing {
    #[pin]
    contexts: Mutex<ChannelContexts<Context>>,
    counted: Counted,
}

impl Closing {
    /// Creates an empty list for `count` contexts, or returns `None` if there are too many or there
    /// is no memory.
    fn new(ucma: &Arc<Ucma>, count: usize) -> Option<Arc<Self>> {
        let counted = Counted::new(ucma, count)?;
        let closing = pin_init!(Closing {
            contexts <- new_mutex!(ChannelContexts::new(), "rdma_ucm_closing"),
            counted,
        });
        Arc::pin_init(closing, GFP_KERNEL).ok()
    }

    /// Starts to destroy the contexts of `contexts`: gives their ports back and spawns the work
    /// items.
    fn start(self: Arc<Self>, contexts: ChannelContexts<Context>) {
        for place in contexts.iter() {
            let context = &place.context;
            if !context.endpoint().release_port() {
                context.discard();
            }
        }
        *self.contexts.lock() = contexts;
        let queue = &self.counted.ucma.globals.callbacks;
        let mut spawned = false;
        for _ in 0..WORKERS.min(nr_cpu_ids()) {
            let this = self.clone();
            spawned |= queue.try_spawn(GFP_KERNEL, move || this.run()).is_ok();
        }
        if !spawned {
            self.run();
        }
    }

    /// Destroys the contexts that are left, beside other work items that do the same.
    fn run(&self) {
        end_each(|| self.contexts.lock().pop());
    }
}

/// Destroys the contexts that `next` returns, one after the other.
fn end_each(mut next: impl FnMut() -> Option<RemovedEntry<Context>>) {
    while let Some(removed) = next() {
        delay::point();
        let context = removed.place.context.clone();
        context.abandon();
        context.clear(removed);
    }
}

/// Hands the unread requests of the listeners in `contexts` that share their address to others,
/// before the contexts of the requests, which are there, too, are destroyed.
fn hand_over(contexts: &mut ChannelContexts<Context>) {
    let is_shared = |context: &Context| {
        let endpoint = context.endpoint();
        let is_shared = endpoint.has_port_group();
        if is_shared {
            endpoint.vacancy.close();
        }
        is_shared
    };
    delay::point();
    contexts.take_requests(is_shared, Context::end_requests);
}

/// Destroys the contexts in `contexts`, the entries of a file that is being closed.
///
/// Waits for no peer. Unread events are discarded with their contexts, but for requests that
/// another listener takes.
pub(super) fn end(ucma: &Arc<Ucma>, mut contexts: ChannelContexts<Context>) {
    hand_over(&mut contexts);
    let count = contexts.count();
    let closing = (count > FEW).then(|| Closing::new(ucma, count)).flatten();
    match closing {
        Some(closing) => closing.start(contexts),
        None => end_each(|| contexts.pop()),
    }
}
