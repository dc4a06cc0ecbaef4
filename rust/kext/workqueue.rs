// SPDX-License-Identifier: GPL-2.0

//! Owned work queues, delayed work, and synchronous cancelling.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)
//!
//! Work items are those of [`kernel::workqueue`]: a type has a `Work` field and is enqueued as an
//! `Arc`, which the queue owns until the work runs.

use crate::{
    bindings,
    kext::{
        lock::{new_spinlock_irq, SpinLockIrq},
        reclaim::NoIo,
    },
};
use core::{marker::PhantomData, mem::size_of, ptr};
use kernel::{
    alloc::Flags,
    container_of, impl_has_work, new_work,
    prelude::*,
    sync::{Arc, LockClassKey},
    types::Opaque,
    workqueue::{Queue, RawWorkItem, Work, WorkItem},
};

/// A work queue that is destroyed when dropped, after its pending work was run.
///
/// It must not be dropped by its own work, which would wait for itself. It does not implement
/// [`Queue`], because a `Queue` lives for ever, so that delayed work can be left on it.
///
/// # Invariants
///
/// The pointer is that of a work queue that is destroyed only by the owner of this.
pub(crate) struct OwnedQueue(ptr::NonNull<bindings::workqueue_struct>);

// SAFETY: A work queue can be used and destroyed by any thread.
unsafe impl Send for OwnedQueue {}
// SAFETY: Work can be enqueued by any thread; the queue does its own locking.
unsafe impl Sync for OwnedQueue {}

impl OwnedQueue {
    /// Creates a queue that runs its work on any processor, with a concurrency of the kernel's
    /// choice, and makes progress under memory pressure (`WQ_MEM_RECLAIM`).
    ///
    /// May sleep. Fails with [`ENOMEM`].
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        // SAFETY: `name` is a string, which is copied.
        let wq = unsafe {
            bindings::rust_rdma_alloc_workqueue(
                name.as_char_ptr(),
                bindings::wq_flags_WQ_UNBOUND | bindings::wq_flags_WQ_MEM_RECLAIM,
                0,
            )
        };
        // INVARIANT: The queue was created just now and is owned by the new value.
        ptr::NonNull::new(wq).map(Self).ok_or(ENOMEM)
    }

    /// Enqueues a work item, like [`Queue::enqueue`].
    ///
    /// Returns the item if it is already pending. Can be called in any context.
    pub(crate) fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.as_queue().enqueue(work)
    }

    /// Enqueues a function, whose allocations start no I/O. Fails with [`ENOMEM`].
    pub(crate) fn try_spawn(
        &self,
        flags: Flags,
        function: impl FnOnce() + Send + 'static,
    ) -> Result {
        let spawned = pin_init!(Spawned {
            work <- new_work!("rdma_cm_spawned"),
            function: Some(function),
        });
        self.enqueue(KBox::pin_init(spawned, flags)?);
        Ok(())
    }

    fn as_queue(&self) -> &Queue {
        // SAFETY: The queue is valid for as long as `self` is.
        unsafe { Queue::from_raw(self.0.as_ptr()) }
    }

    /// Sleeps until all work that was enqueued before has run.
    pub(crate) fn flush(&self) {
        // SAFETY: The queue is valid by the type invariant.
        unsafe { bindings::__flush_workqueue(self.0.as_ptr()) }
    }
}

impl Drop for OwnedQueue {
    fn drop(&mut self) {
        // SAFETY: The queue is valid by the type invariant, and not used after this.
        unsafe { bindings::destroy_workqueue(self.0.as_ptr()) }
    }
}

/// A function that a queue runs once.
///
/// [`Queue::try_spawn`] is not used because its lock class is shared by all modules, with a name
/// that is a different string in each, which lockdep reports.
#[pin_data]
struct Spawned<F> {
    #[pin]
    work: Work<Spawned<F>>,
    /// The function, until it is called.
    function: Option<F>,
}

impl_has_work! {
    impl{F} HasWork<Self> for Spawned<F> { self.work }
}

impl<F: FnOnce() + Send + 'static> WorkItem for Spawned<F> {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        let _scope = NoIo::begin();
        if let Some(function) = this.as_mut().project().function.take() {
            function();
        }
    }
}

/// An object with work for a [`DelayedRunner`].
pub(crate) trait RunDelayed: Send + Sync + Sized + 'static {
    /// Does the work, on the queue and in process context. Its allocations start no I/O.
    ///
    /// The function may be called again, on another processor too, only if the runner is armed
    /// again; calls never overlap.
    fn run_delayed(this: Arc<Self>);
}

/// Creates an initialiser for a [`DelayedRunner`] with a lock class of its own.
macro_rules! new_delayed_runner {
    ($name:literal) => {
        $crate::kext::workqueue::DelayedRunner::new(
            ::kernel::optional_name!($name),
            ::kernel::static_lock_class!(),
        )
    };
}
pub(crate) use new_delayed_runner;

/// A delayed work item, as a field of `T`, whose expiry can be moved both ways.
///
/// While armed it holds a reference to the object that contains it. That is a cycle: the owner must
/// call [`shutdown_sync`](Self::shutdown_sync) to break it, or let the runner expire.
///
/// # Invariants
///
/// - While the work is pending it owns a reference to the object that `target` points to, and
///   the runner is a part of that object.
/// - The work is pending only on `queue`.
/// - The work is neither cancelled nor disabled before `closed` is set, and not armed after.
#[pin_data]
pub(crate) struct DelayedRunner<T: RunDelayed> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    #[pin]
    state: SpinLockIrq<RunnerState<T>>,
    _object: PhantomData<fn(Arc<T>)>,
}

struct RunnerState<T> {
    /// The object that contains the runner; null until it is armed for the first time.
    target: *const T,
    /// The queue of the first arming, kept because a pending timer refers to it.
    queue: Option<Arc<OwnedQueue>>,
    closed: bool,
}

// SAFETY: The pointer is only used under the rules of the type invariant of `DelayedRunner`, whose
// objects are `Send` and `Sync`.
unsafe impl<T: RunDelayed> Send for RunnerState<T> {}

// SAFETY: A work item can be used from any thread; the state has a lock.
unsafe impl<T: RunDelayed> Send for DelayedRunner<T> {}
// SAFETY: A work item can be used from any thread; the state has a lock.
unsafe impl<T: RunDelayed> Sync for DelayedRunner<T> {}

impl<T: RunDelayed> DelayedRunner<T> {
    /// Creates an initialiser for a runner that is not armed. Use [`new_delayed_runner!`].
    pub(crate) fn new(name: &'static CStr, key: Pin<&'static LockClassKey>) -> impl PinInit<Self> {
        pin_init!(Self {
            work <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes, and `name` and `key` live for ever.
                unsafe {
                    bindings::rust_rdma_init_delayed_work(
                        slot,
                        Some(Self::run),
                        name.as_char_ptr(),
                        key.as_ptr(),
                    )
                }
            }),
            state <- new_spinlock_irq!(
                RunnerState { target: ptr::null(), queue: None, closed: false },
                "DelayedRunner::state"
            ),
            _object: PhantomData,
        })
    }

    /// Arms the runner to run in `delay_us` microseconds on `queue`, or moves its expiry.
    ///
    /// The delay is rounded up to the kernel's tick. Can be called in any context.
    ///
    /// `object` must be the object that contains the runner. The queue of the first call is used by
    /// all later calls, and is kept with the object. Returns whether the runner is armed now, which
    /// is false only after [`shutdown_sync`](Self::shutdown_sync).
    pub(crate) fn arm(&self, object: &Arc<T>, queue: &Arc<OwnedQueue>, delay_us: u64) -> bool {
        let target: *const T = &**object;
        let offset = ptr::from_ref(self).addr().wrapping_sub(target.addr());
        if offset >= size_of::<T>() {
            kernel::pr_warn_once!("a delayed runner was armed with a foreign object\n");
            return false;
        }
        let reference = Arc::into_raw(object.clone());

        let mut state = self.state.lock();
        let pending = if state.closed {
            true
        } else {
            // INVARIANT: The runner is a part of the object, as was just checked.
            state.target = target;
            let queue = state.queue.get_or_insert_with(|| queue.clone()).0.as_ptr();
            // SAFETY: The work is initialised, and the queue is valid for as long as the object.
            // The reference keeps both the object and, as a part of it, the work alive until the
            // work has run. By the type invariant the work is not disabled: either it was pending,
            // with a reference of its own, or it now owns `reference`.
            unsafe {
                bindings::mod_delayed_work_on(
                    bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
                    queue,
                    self.work.get(),
                    bindings::rust_rdma_usecs_to_jiffies(delay_us),
                )
            }
        };
        let armed = !state.closed;
        drop(state);
        if pending {
            // SAFETY: The pointer is from `into_raw` above, and nobody else owns it. `object` is
            // another reference, so that this is not the last one.
            drop(unsafe { Arc::from_raw(reference) });
        }
        armed
    }

    /// Disarms the runner for good, and sleeps until its work is not running either.
    ///
    /// Must not be called by the work itself.
    pub(crate) fn shutdown_sync(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let target = state.target;
        drop(state);
        // SAFETY: The work is initialised. By the type invariant the runner is not armed any more.
        if unsafe { bindings::cancel_delayed_work_sync(self.work.get()) } {
            // SAFETY: The work was pending, so that it owned a reference, which is ours now. The
            // caller refers to a part of the object, so that this is not the last reference.
            drop(unsafe { Arc::from_raw(target) });
        }
    }

    /// Runs the work.
    ///
    /// # Safety
    ///
    /// Called by the work queue, with the work of a `DelayedRunner<T>` that was armed.
    unsafe extern "C" fn run(work: *mut bindings::work_struct) {
        // SAFETY: The work is a part of the delayed work of a runner.
        let runner = unsafe {
            let work = container_of!(work, bindings::delayed_work, work);
            &*container_of!(Opaque::cast_from(work), Self, work)
        };
        let target = runner.state.lock().target;
        let _scope = NoIo::begin();
        // SAFETY: By the type invariant the work owned a reference, and it is not pending any
        // more: the reference is ours. `runner` is not used from here on.
        T::run_delayed(unsafe { Arc::from_raw(target) });
    }
}
