// SPDX-License-Identifier: GPL-2.0

//! The end of the contexts of a file that was closed.
//!
//! To end thousands takes seconds, and whoever closes the file may be a process that is being
//! killed. So what others may be waiting for is given back at once, the ports and what listens at
//! them, and the rest is done in the background, by several processors. A few contexts are ended at
//! once.

use super::{context::Context, place::Leavings, places::Places, Ucma};
use crate::kext::delay;
use kernel::{
    alloc::flags::GFP_KERNEL,
    cpu::nr_cpu_ids,
    new_mutex,
    prelude::*,
    sync::{atomic::Relaxed, Arc, Mutex},
};

/// As many contexts are ended before the file is closed.
const FEW: usize = 256;

/// The most contexts, of all closed files together, that are ended in the background. More are ended
/// by whoever closes their file, so that nobody makes them faster than they go.
const MOST: u64 = 1 << 17;

/// The most processors that end the contexts of one file.
const WORKERS: u32 = 4;

/// Counts contexts as being ended in the background until it is dropped.
struct Counted {
    ucma: Arc<Ucma>,
    count: u64,
}

impl Counted {
    /// Counts `count` of them, unless that would be too many.
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

/// Contexts that are ended in the background.
#[pin_data]
struct Closing {
    #[pin]
    places: Mutex<Places>,
    counted: Counted,
}

impl Closing {
    /// `None` if there are too many, or without memory.
    fn new(ucma: &Arc<Ucma>, count: usize) -> Option<Arc<Self>> {
        let counted = Counted::new(ucma, count)?;
        let closing = pin_init!(Closing {
            places <- new_mutex!(Places::new(), "rdma_ucm_closing"),
            counted,
        });
        Arc::pin_init(closing, GFP_KERNEL).ok()
    }

    /// Begins with those that had these places.
    fn start(self: Arc<Self>, places: Places) {
        for context in places.contexts() {
            if !context.endpoint().vacate() {
                Context::discard(context);
            }
        }
        *self.places.lock() = places;
        let queue = &self.counted.ucma.core.callbacks;
        let mut spawned = false;
        for _ in 0..WORKERS.min(nr_cpu_ids()) {
            let this = self.clone();
            spawned |= queue.try_spawn(GFP_KERNEL, move || this.run()).is_ok();
        }
        if !spawned {
            self.run();
        }
    }

    /// Ends what is left, beside others who do the same.
    fn run(&self) {
        end_each(|| self.places.lock().pop());
    }
}

/// Ends one context after the other.
fn end_each(mut next: impl FnMut() -> Option<(Arc<Context>, Leavings)>) {
    while let Some((context, leavings)) = next() {
        delay::point();
        Context::discard(&context);
        context.clear(leavings);
    }
}

/// Ends the contexts that had these places in the channel of a file that is being closed.
///
/// Waits for no peer. Unread events go with their contexts.
pub(super) fn end(ucma: &Arc<Ucma>, mut places: Places) {
    let count = places.count();
    let closing = (count > FEW).then(|| Closing::new(ucma, count)).flatten();
    match closing {
        Some(closing) => closing.start(places),
        None => end_each(|| places.pop()),
    }
}
