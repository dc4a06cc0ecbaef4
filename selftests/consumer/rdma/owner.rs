// SPDX-License-Identifier: GPL-2.0

//! Identifiers of the RDMA CM: who has one, whom it calls, and how it ends.
//!
//! # Life of an identifier
//!
//! An [`Owner`] creates one, or adopts the one that comes with a request. It ends once: from
//! outside, by [`Owner::destroy`], or in a callback, by what that returns. The second of them finds
//! it gone. An end in a callback waits for those that use the identifier from outside, so that none
//! of these must wait for that callback.

use super::{
    cm_id::{CmId, LockedId, PortSpace, QpType},
    event::{Event, EventType},
    queue_pair::QueuePair,
};
use crate::bindings;
use core::ptr;
use kernel::{
    error::from_err_ptr,
    new_condvar, new_mutex, new_spinlock,
    prelude::*,
    sync::{
        atomic::{Acquire, Atomic, Release},
        Arc, ArcBorrow, CondVar, Mutex, SpinLock,
    },
};

/// The return value of a callback.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict(pub(crate) i32);

impl Verdict {
    /// The identifier stays.
    pub(crate) const KEEP: Self = Self(0);
    /// The identifier ends; so does any other number.
    pub(crate) const END: Self = Self(1);
}

impl From<Result> for Verdict {
    fn from(result: Result) -> Self {
        Self(result.map_or_else(|error| error.to_errno(), |()| 0))
    }
}

/// The receiver of the events of identifiers.
///
/// The callbacks may sleep. One identifier makes one at a time, with the lock of its handler.
pub(crate) trait Handler: Send + Sync + Sized + 'static {
    /// Something has happened to `id`, which the handler has.
    fn event(this: &Arc<Self>, id: &LockedId<'_, Self>, event: &Event) -> Verdict;

    /// Somebody wants to be connected with what the handler's identifier listens for. A request that
    /// is not adopted is refused, whatever the verdict.
    fn request(this: &Arc<Self>, request: &mut Request<'_, Self>, event: &Event) -> Verdict;
}

struct State {
    /// The number of calls from outside that use the identifier.
    users: u32,
    /// True if it has ended, or is about to.
    gone: bool,
    /// True if its path is known, which does not change any more.
    has_path: bool,
}

/// The owner of an identifier, and of the reference to its handler.
///
/// # Invariants
///
/// `id` is null until there is one. Then it is valid, and its context is a reference to this, until
/// `state.gone`, and while there are `state.users`.
#[pin_data]
pub(crate) struct Owner<H: Handler> {
    id: Atomic<*mut bindings::rdma_cm_id>,
    handler: Arc<H>,
    #[pin]
    state: SpinLock<State>,
    #[pin]
    unused: CondVar,
    /// Taken within the lock of the handler, if both.
    #[pin]
    qp: Mutex<Option<QueuePair>>,
}

// SAFETY: All of it can be used and dropped by any task.
unsafe impl<H: Handler> Send for Owner<H> {}

// SAFETY: The pointer is atomic, and what it points to has its own locks.
unsafe impl<H: Handler> Sync for Owner<H> {}

impl<H: Handler> Owner<H> {
    fn new(handler: Arc<H>) -> Result<Arc<Self>> {
        // INVARIANT: There is no identifier.
        Arc::pin_init(
            pin_init!(Self {
                id: Atomic::new(ptr::null_mut()),
                handler,
                state <- new_spinlock!(State {
                    users: 0,
                    gone: false,
                    has_path: false,
                }),
                unused <- new_condvar!(),
                qp <- new_mutex!(None),
            }),
            GFP_KERNEL,
        )
    }

    /// Creates an identifier in the first network namespace.
    pub(crate) fn create(handler: Arc<H>, ps: PortSpace, qp_type: QpType) -> Result<Arc<Self>> {
        Self::create_by(handler, |context| {
            let name = <crate::LocalModule as kernel::ModuleMetadata>::NAME;
            // SAFETY: The namespace and the name live as long as the module, and the context as long
            // as the identifier.
            unsafe {
                bindings::__rdma_create_kernel_id(
                    &raw mut bindings::init_net,
                    Some(Self::callback),
                    context,
                    ps.0,
                    qp_type.0,
                    name.as_char_ptr(),
                )
            }
        })
    }

    /// Creates one in the network namespace of the calling program, as for that.
    pub(crate) fn create_user(
        handler: Arc<H>,
        ps: PortSpace,
        qp_type: QpType,
    ) -> Result<Arc<Self>> {
        Self::create_by(handler, |context| {
            // SAFETY: The context lives as long as the identifier.
            unsafe { bindings::rdma_create_user_id(Some(Self::callback), context, ps.0, qp_type.0) }
        })
    }

    fn create_by(
        handler: Arc<H>,
        create: impl FnOnce(*mut c_void) -> *mut bindings::rdma_cm_id,
    ) -> Result<Arc<Self>> {
        let owner = Self::new(handler)?;
        let context = owner.clone().into_raw();
        match from_err_ptr(create(context.cast_mut().cast())) {
            Ok(id) => {
                // INVARIANT: The identifier has just been created, with that context.
                owner.id.store(id, Release);
                Ok(owner)
            }
            Err(e) => {
                // SAFETY: The reference is that of the identifier that does not exist.
                drop(unsafe { Arc::from_raw(context) });
                Err(e)
            }
        }
    }

    pub(super) fn handler(&self) -> &Arc<H> {
        &self.handler
    }

    pub(super) fn qp(&self) -> &Mutex<Option<QueuePair>> {
        &self.qp
    }

    pub(super) fn has_path(&self) -> bool {
        self.state.lock().has_path
    }

    pub(super) fn note_path(&self) {
        self.state.lock().has_path = true;
    }

    /// Returns true if it has this identifier.
    pub(crate) fn has(&self, id: &CmId<H>) -> bool {
        self.id.load(Acquire) == id.as_raw()
    }

    /// Returns true if the identifier has ended, or is about to.
    pub(crate) fn is_gone(&self) -> bool {
        self.state.lock().gone
    }

    /// Does something with the identifier, unless it is gone. Not for callbacks, which are given it.
    pub(crate) fn with<R>(&self, f: impl FnOnce(&CmId<H>) -> R) -> Option<R> {
        let mut state = self.state.lock();
        if state.gone {
            return None;
        }
        state.users = state.users.wrapping_add(1);
        drop(state);
        // SAFETY: By the type invariant: there is a user, so that it is valid until below.
        let result = f(unsafe { CmId::from_raw(self.id.load(Acquire)) });
        let mut state = self.state.lock();
        state.users = state.users.wrapping_sub(1);
        if state.users == 0 {
            self.unused.notify_all();
        }
        Some(result)
    }

    /// Claims the end of the identifier, and waits until nobody uses it from outside. Returns false
    /// if it has been claimed before.
    fn claim(&self) -> bool {
        let mut state = self.state.lock();
        if state.gone {
            return false;
        }
        state.gone = true;
        while state.users > 0 {
            self.unused.wait(&mut state);
        }
        true
    }

    /// Drops the reference that is the context of the identifier.
    ///
    /// # Safety
    ///
    /// To be called once, by the task that has claimed the end, when no callback needs the context.
    unsafe fn drop_context(&self) {
        // SAFETY: By the safety requirements and the type invariant there is that reference.
        drop(unsafe { Arc::from_raw(ptr::from_ref(self)) });
    }

    /// Destroys the identifier, and its queue pair before, unless it is gone. Waits for a callback
    /// that runs, so that it must not be called in one.
    pub(crate) fn destroy(self: &Arc<Self>) {
        if !self.claim() {
            return;
        }
        let id = self.id.load(Acquire);
        // SAFETY: By the type invariant: it is claimed, and so ends below.
        unsafe { CmId::<H>::from_raw(id) }.destroy_qp();
        // SAFETY: As above; nobody uses it but callbacks, which this waits for.
        unsafe { bindings::rdma_destroy_id(id) };
        // SAFETY: The end is claimed, and there are no more callbacks.
        unsafe { self.drop_context() };
    }

    /// Destroys the queue pair that was left by an identifier that has ended in a callback. Returns
    /// whether there was one.
    pub(crate) fn destroy_left_qp(&self) -> bool {
        self.is_gone() && self.qp.lock().take().is_some()
    }

    /// The one function that the RDMA CM calls.
    ///
    /// # Safety
    ///
    /// To be called by the RDMA CM only, for an identifier of an owner's or one that comes with a
    /// request for it, which has the same context.
    unsafe extern "C" fn callback(
        id: *mut bindings::rdma_cm_id,
        event: *mut bindings::rdma_cm_event,
    ) -> c_int {
        // SAFETY: The context is a reference to an owner, by its invariant.
        let told = unsafe { ArcBorrow::from_raw((*id).context.cast_const().cast::<Self>()) };
        // One more reference: that of the identifier may end here.
        let told = Arc::from(told);
        // SAFETY: The identifier and the event are valid.
        let event = unsafe { Event::from_raw(event, QpType((*id).qp_type)) };
        let (verdict, owner) = if event.kind == EventType::CONNECT_REQUEST {
            let mut request = Request {
                id,
                listener: &told,
                owner: None,
            };
            let verdict = H::request(&told.handler, &mut request, &event);
            let Some(owner) = request.owner else {
                return if verdict == Verdict::KEEP {
                    Verdict::END
                } else {
                    verdict
                }
                .0;
            };
            (verdict, owner)
        } else {
            if event.kind == EventType::ROUTE_RESOLVED {
                told.note_path();
            }
            // SAFETY: The identifier is not destroyed before this returns, and its context is that of
            // its owner.
            let id = unsafe { CmId::from_raw(id) };
            // SAFETY: The RDMA CM has the lock when it calls back.
            let held = unsafe { LockedId::new(id) };
            (H::event(&told.handler, &held, &event), told)
        };
        if verdict == Verdict::KEEP || !owner.claim() {
            return Verdict::KEEP.0;
        }
        // SAFETY: The end is claimed, and this was the last callback.
        unsafe { owner.drop_context() };
        verdict.0
    }
}

/// A request for a listener, with an identifier of its own that nobody has yet.
pub(crate) struct Request<'a, H: Handler> {
    id: *mut bindings::rdma_cm_id,
    listener: &'a Arc<Owner<H>>,
    owner: Option<Arc<Owner<H>>>,
}

impl<H: Handler> Request<'_, H> {
    /// Returns true if it came with the identifier of the listener, which it must not.
    pub(crate) fn is_of_listener(&self) -> bool {
        self.listener.id.load(Acquire) == self.id
    }

    /// Takes the identifier, which tells `handler` from now on.
    pub(crate) fn adopt(&mut self, handler: Arc<H>) -> Result<(Arc<Owner<H>>, LockedId<'_, H>)> {
        if self.owner.is_some() {
            return Err(EBUSY);
        }
        let owner = Owner::new(handler)?;
        // INVARIANT: The identifier is there until this callback returns, which ends it or keeps it.
        owner.id.store(self.id, Release);
        // SAFETY: Nobody else knows the identifier, so that nobody reads its context meanwhile.
        unsafe { (*self.id).context = owner.clone().into_raw().cast_mut().cast() };
        self.owner = Some(owner.clone());
        // SAFETY: The identifier is not destroyed before the callback returns, and has an owner.
        let id = unsafe { CmId::from_raw(self.id) };
        // SAFETY: The RDMA CM has the lock of the identifier when it calls back.
        Ok((owner, unsafe { LockedId::new(id) }))
    }
}
