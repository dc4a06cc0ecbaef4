// SPDX-License-Identifier: GPL-2.0

//! Another task, and how two of them meet.

use super::check;
use kernel::{
    impl_has_work, new_work,
    prelude::*,
    sync::{
        atomic::{ordering::Full, Atomic, Relaxed},
        Arc, Completion,
    },
    time::{delay::fsleep, Delta},
    workqueue::{self, Work, WorkItem},
};

pub(crate) fn completion() -> Option<Arc<Completion>> {
    let completion = Arc::pin_init(Completion::new(), GFP_KERNEL);
    check!(completion.is_ok());
    completion.ok()
}

/// Something that a work queue runs once. The lock class is this module's, as that of the kernel crate's
/// `try_spawn` may not be used by two modules.
#[pin_data]
struct Task<F> {
    #[pin]
    work: Work<Task<F>>,
    function: Option<F>,
}

impl_has_work! {
    impl{F} HasWork<Self> for Task<F> { self.work }
}

impl<F: FnOnce() + Send + 'static> WorkItem for Task<F> {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        if let Some(function) = this.as_mut().project().function.take() {
            function();
        }
    }
}

/// Runs something in a work queue. The task completes the returned object at its end.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Option<Arc<Completion>> {
    let done = completion()?;
    let finished = done.clone();
    let run = move || {
        work();
        finished.complete_all();
    };
    let task = pin_init!(Task {
        work <- new_work!("consumer_task"),
        function: Some(run),
    });
    let task = KBox::pin_init(task, GFP_KERNEL);
    check!(task.is_ok());
    workqueue::system_long().enqueue(task.ok()?);
    Some(done)
}

/// The number of looks of a waiting task before it sleeps. With one CPU, no other task comes
/// meanwhile.
const LOOKS: u32 = 2_000;

/// A place where two tasks meet, again and again, to go on at the same moment.
pub(crate) struct Meeting {
    arrived: Atomic<u32>,
}

impl Meeting {
    pub(crate) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                arrived: Atomic::new(0),
            },
            GFP_KERNEL,
        )?)
    }

    /// Waits for the other one.
    pub(crate) fn meet(&self) {
        let place = self.arrived.fetch_add(1, Full);
        // The second of a pair has an odd place, and both go on when two more have come.
        let both = (place | 1).wrapping_add(1);
        let mut looks = 0u32;
        while self.arrived.load(Relaxed).wrapping_sub(both) > u32::MAX / 2 {
            looks = looks.saturating_add(1);
            if looks < LOOKS {
                core::hint::spin_loop();
            } else {
                fsleep(Delta::from_micros(10));
            }
        }
    }
}

/// Lets a moment pass, without sleeping.
pub(crate) fn dawdle(turns: u32) {
    for turn in 0..turns {
        core::hint::black_box(turn);
        core::hint::spin_loop();
    }
}
