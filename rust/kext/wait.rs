// SPDX-License-Identifier: GPL-2.0

//! Wait queues with interruptible waiting.
//!
//! C header: [`include/linux/wait.h`](srctree/include/linux/wait.h)

use crate::bindings;
use kernel::{prelude::*, sync::LockClassKey, types::Opaque};

/// Creates an initialiser for a [`WaitQueue`] with a lock class of its own.
macro_rules! new_wait_queue {
    ($name:literal) => {
        $crate::kext::wait::WaitQueue::new(
            ::kernel::optional_name!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_wait_queue;

/// A queue of tasks that wait or poll (`wait_queue_head_t`).
///
/// Unlike the kernel crate's `CondVar` it is not tied to a lock, and unlike its `PollCondVar` it
/// does not wait for an RCU grace period when dropped; see [`Poll::register`] for the reason.
///
/// [`Poll::register`]: super::chardev::Poll::register
#[pin_data]
pub(crate) struct WaitQueue {
    #[pin]
    head: Opaque<bindings::wait_queue_head>,
}

// SAFETY: A wait queue has a lock of its own and can be used from any thread.
unsafe impl Send for WaitQueue {}
// SAFETY: The lock of the wait queue protects it.
unsafe impl Sync for WaitQueue {}

impl WaitQueue {
    /// Creates an initialiser for an empty queue. Use [`new_wait_queue!`].
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            head <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes, and `name` and `key` live for ever.
                unsafe {
                    bindings::__init_waitqueue_head(slot, name.as_char_ptr(), key.as_ptr())
                }
            }),
        })
    }

    /// Returns the C object.
    pub(super) fn as_raw(&self) -> *mut bindings::wait_queue_head {
        self.head.get()
    }

    /// Wakes all tasks that wait or poll. Can be called in any context.
    pub(crate) fn wake_all(&self) {
        // SAFETY: The queue is initialised.
        unsafe { bindings::rust_rdma_wake_up_interruptible_all(self.as_raw()) }
    }

    /// Sleeps until `is_ready` returns true.
    ///
    /// `is_ready` runs at least once, then after each [`wake_all`](Self::wake_all); it may lock and
    /// sleep. Fails with [`ERESTARTSYS`] if a signal is pending and `is_ready` returns false.
    pub(crate) fn wait_interruptible(&self, mut is_ready: impl FnMut() -> bool) -> Result {
        if is_ready() {
            return Ok(());
        }
        let entry = Opaque::<bindings::wait_queue_entry>::uninit();
        // SAFETY: The entry is valid for writes.
        unsafe { bindings::rust_rdma_init_wait_func_woken(entry.get()) };
        // SAFETY: Both are initialised. The entry does not move, and leaves the queue before this
        // function returns.
        unsafe { bindings::add_wait_queue(self.as_raw(), entry.get()) };
        let result = loop {
            // The task is on the queue, so that no wake-up after this check is lost.
            if is_ready() {
                break Ok(());
            }
            if kernel::current!().signal_pending() {
                break Err(ERESTARTSYS);
            }
            // SAFETY: The entry is on a queue, with the wake function that `wait_woken()` needs.
            unsafe { bindings::wait_woken(entry.get(), bindings::TASK_INTERRUPTIBLE, c_long::MAX) };
        };
        // SAFETY: The entry is on this queue.
        unsafe { bindings::remove_wait_queue(self.as_raw(), entry.get()) };
        result
    }
}
