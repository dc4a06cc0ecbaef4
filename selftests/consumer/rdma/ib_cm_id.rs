// SPDX-License-Identifier: GPL-2.0

//! Identifiers of the IB CM: listeners, connections, questions.
//!
//! C header: [`include/rdma/ib_cm.h`](srctree/include/rdma/ib_cm.h)

use super::{
    device::Device,
    ib_cm_event::Event,
    ib_cm_param::{PrivateData, RepParam, ReqParam, SidrRepParam, SidrReqParam},
    number::numbers,
    qp_attr::{QpAttr, QpState},
    queue_pair::QueuePair,
    refusal::RejectReason,
};
use crate::bindings;
use core::{cell::Cell, marker::PhantomData, mem::ManuallyDrop, ops::Deref, ptr::NonNull};
use kernel::{
    error::{from_err_ptr, to_result},
    prelude::*,
    sync::{
        atomic::{Atomic, Full, Relaxed},
        Arc,
    },
    types::Opaque,
};

numbers! {
    /// The state of an identifier.
    State {
        IDLE = ib_cm_state_IB_CM_IDLE,
        LISTEN = ib_cm_state_IB_CM_LISTEN,
        REQ_SENT = ib_cm_state_IB_CM_REQ_SENT,
        REQ_RCVD = ib_cm_state_IB_CM_REQ_RCVD,
        MRA_REQ_SENT = ib_cm_state_IB_CM_MRA_REQ_SENT,
        MRA_REQ_RCVD = ib_cm_state_IB_CM_MRA_REQ_RCVD,
        REP_SENT = ib_cm_state_IB_CM_REP_SENT,
        REP_RCVD = ib_cm_state_IB_CM_REP_RCVD,
        MRA_REP_SENT = ib_cm_state_IB_CM_MRA_REP_SENT,
        MRA_REP_RCVD = ib_cm_state_IB_CM_MRA_REP_RCVD,
        ESTABLISHED = ib_cm_state_IB_CM_ESTABLISHED,
        DREQ_SENT = ib_cm_state_IB_CM_DREQ_SENT,
        DREQ_RCVD = ib_cm_state_IB_CM_DREQ_RCVD,
        TIMEWAIT = ib_cm_state_IB_CM_TIMEWAIT,
        SIDR_REQ_SENT = ib_cm_state_IB_CM_SIDR_REQ_SENT,
        SIDR_REQ_RCVD = ib_cm_state_IB_CM_SIDR_REQ_RCVD,
    }
    /// An event of a queue pair that a driver reports to the IB CM.
    QpEvent {
        COMM_EST = ib_event_type_IB_EVENT_COMM_EST,
        PATH_MIG = ib_event_type_IB_EVENT_PATH_MIG,
        PATH_MIG_ERR = ib_event_type_IB_EVENT_PATH_MIG_ERR,
    }
}

/// The bits of the number of a service that say who gave it.
pub(crate) const AGENT_MASK: u64 = 0xff << 56;

/// The number of a service for which the IB CM is to find a number, or which it has found.
pub(crate) const ASSIGN_SERVICE_ID: u64 = 0x02 << 56;

/// The identity of an identifier: to compare, also when there is none any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity(usize);

impl Identity {
    pub(super) fn new(id: *const bindings::ib_cm_id) -> Self {
        Self(id.addr())
    }
}

/// The fate of an identifier after a callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Keep,
    /// The callback returns this number, which is not zero, and the IB CM destroys the identifier.
    /// To use this, its owner must have [lent](IbCmId::lend) it.
    Destroy(i32),
}

/// The receiver of the events of identifiers.
///
/// The callbacks of an identifier come one at a time, with no lock held, and may sleep. They may
/// call all functions of the identifier, but must not wait for its end.
pub(crate) trait Handler: Send + Sync + Sized + 'static {
    /// Somebody asks, with [`Event::Req`] or [`Event::SidrReq`], a listener whose handler this is.
    ///
    /// `new` is the other end. Unless it is kept, the callback returns what [`NewId::refuse_with`]
    /// was told, or 1, and the peer is refused.
    fn request(this: &Arc<Self>, new: NewId<'_, Self>, event: &Event, private_data: &[u8]);

    /// Any other event.
    fn event(this: &Arc<Self>, id: &IbCmIdRef, event: &Event, private_data: &[u8]) -> Verdict;
}

/// The values for the users of an identifier.
mod owner {
    /// The [`IbCmId`](super::IbCmId) and callbacks have it.
    pub(super) const OWNED: i32 = 0;
    /// Only callbacks.
    pub(super) const LENT: i32 = 1;
    /// Nobody: a callback has ended it. Only the context is left to free.
    pub(super) const GONE: i32 = 2;
}

/// The object that `ib_cm_id.context` points to.
struct Context<H> {
    handler: Arc<H>,
    device: Device,
    owner: Atomic<i32>,
}

/// A borrowed identifier (`struct ib_cm_id`).
///
/// # Invariants
///
/// The identifier is there as long as there is a reference to this.
#[repr(transparent)]
pub(crate) struct IbCmIdRef(Opaque<bindings::ib_cm_id>);

// SAFETY: The IB CM lets any task use an identifier.
unsafe impl Send for IbCmIdRef {}

// SAFETY: It does its own locking.
unsafe impl Sync for IbCmIdRef {}

impl IbCmIdRef {
    /// Turns a pointer of the kernel into a reference.
    ///
    /// # Safety
    ///
    /// The identifier must be there for all of `'a`.
    unsafe fn from_raw<'a>(id: *mut bindings::ib_cm_id) -> &'a Self {
        // SAFETY: This is a transparent wrapper, and the caller promises that it is there.
        unsafe { &*id.cast() }
    }

    fn as_raw(&self) -> *mut bindings::ib_cm_id {
        self.0.get()
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::new(self.as_raw())
    }

    pub(crate) fn is_of(&self, device: &Device) -> bool {
        // SAFETY: By the type invariant; the field does not change.
        unsafe { (*self.as_raw()).device == device.as_raw() }
    }

    pub(crate) fn state(&self) -> State {
        // SAFETY: By the type invariant. The IB CM changes it meanwhile: any value will do.
        State(unsafe { (&raw const (*self.as_raw()).state).read_volatile() })
    }

    pub(crate) fn service_id(&self) -> u64 {
        // SAFETY: As above.
        u64::from_be(unsafe { (&raw const (*self.as_raw()).service_id).read_volatile() })
    }

    /// The number of this end, as the IB CM has made it.
    pub(crate) fn local_id(&self) -> u32 {
        // SAFETY: As above.
        unsafe { (&raw const (*self.as_raw()).local_id).read_volatile() }
    }

    /// The number of the other end.
    pub(crate) fn remote_id(&self) -> u32 {
        // SAFETY: As above.
        unsafe { (&raw const (*self.as_raw()).remote_id).read_volatile() }
    }

    pub(crate) fn remote_cm_qpn(&self) -> u32 {
        // SAFETY: As above.
        unsafe { (&raw const (*self.as_raw()).remote_cm_qpn).read_volatile() }
    }

    pub(crate) fn listen(&self, service_id: u64) -> Result {
        // SAFETY: By the type invariant; so for all that follow.
        to_result(unsafe { bindings::ib_cm_listen(self.as_raw(), service_id.to_be()) })
    }

    pub(crate) fn send_req(&self, param: &ReqParam<'_>) -> Result {
        param.with_raw(|raw| {
            // SAFETY: As above. The data are copied.
            to_result(unsafe { bindings::ib_send_cm_req(self.as_raw(), raw) })
        })
    }

    pub(crate) fn send_rep(&self, param: &RepParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_send_cm_rep(self.as_raw(), &mut raw) })
    }

    pub(crate) fn send_rtu(&self, data: PrivateData<'_>) -> Result {
        let (data, length) = data.to_raw()?;
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_send_cm_rtu(self.as_raw(), data, length) })
    }

    pub(crate) fn send_dreq(&self, data: PrivateData<'_>) -> Result {
        let (data, length) = data.to_raw()?;
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_send_cm_dreq(self.as_raw(), data, length) })
    }

    pub(crate) fn send_drep(&self, data: PrivateData<'_>) -> Result {
        let (data, length) = data.to_raw()?;
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_send_cm_drep(self.as_raw(), data, length) })
    }

    pub(crate) fn send_rej(
        &self,
        reason: RejectReason,
        ari: PrivateData<'_>,
        data: PrivateData<'_>,
    ) -> Result {
        let (ari, ari_length) = ari.to_raw()?;
        let (data, length) = data.to_raw()?;
        // SAFETY: As above. The target of `ari` is only read.
        to_result(unsafe {
            bindings::ib_send_cm_rej(
                self.as_raw(),
                reason.0,
                ari.cast_mut(),
                ari_length,
                data,
                length,
            )
        })
    }

    pub(crate) fn prepare_mra(&self) -> Result {
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_prepare_cm_mra(self.as_raw()) })
    }

    pub(crate) fn notify(&self, event: QpEvent) -> Result {
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_cm_notify(self.as_raw(), event.0) })
    }

    pub(crate) fn init_qp_attr(&self, state: QpState) -> Result<QpAttr> {
        QpAttr::ask(state, |attr, mask| {
            // SAFETY: As above.
            unsafe { bindings::ib_cm_init_qp_attr(self.as_raw(), attr, mask) }
        })
    }

    /// Takes a queue pair to a state, with the attributes for it.
    pub(crate) fn take_along(&self, qp: &QueuePair, state: QpState) -> Result {
        let mut attr = bindings::ib_qp_attr {
            qp_state: state.0,
            ..Default::default()
        };
        let mut mask = 0;
        // SAFETY: As above; the queue pair is valid.
        unsafe {
            to_result(bindings::ib_cm_init_qp_attr(
                self.as_raw(),
                &mut attr,
                &mut mask,
            ))?;
            to_result(bindings::ib_modify_qp(qp.as_raw(), &mut attr, mask))
        }
    }

    pub(crate) fn send_sidr_req(&self, param: &SidrReqParam<'_>) -> Result {
        param.with_raw(|raw| {
            // SAFETY: As above. The data are copied.
            to_result(unsafe { bindings::ib_send_cm_sidr_req(self.as_raw(), raw) })
        })
    }

    pub(crate) fn send_sidr_rep(&self, param: &SidrRepParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: As above.
        to_result(unsafe { bindings::ib_send_cm_sidr_rep(self.as_raw(), &mut raw) })
    }
}

/// An identifier, and its owner: destroyed when dropped, which waits for its callbacks. Not to be
/// dropped in one of them.
///
/// # Invariants
///
/// `id` is there, its context is `context`, a box that is ours, and says `OWNED`. Callbacks use the
/// context only while `id` is there.
pub(crate) struct IbCmId<H: Handler> {
    id: NonNull<bindings::ib_cm_id>,
    context: NonNull<Context<H>>,
}

// SAFETY: The IB CM lets any task use and destroy an identifier, and so does the handler.
unsafe impl<H: Handler> Send for IbCmId<H> {}

// SAFETY: As above.
unsafe impl<H: Handler> Sync for IbCmId<H> {}

impl<H: Handler> Context<H> {
    fn new(device: &Device, handler: Arc<H>) -> Result<NonNull<Self>> {
        let context = KBox::new(
            Self {
                handler,
                device: device.clone(),
                owner: Atomic::new(owner::OWNED),
            },
            GFP_KERNEL,
        )?;
        Ok(NonNull::from(KBox::leak(context)))
    }

    /// Frees the context.
    ///
    /// # Safety
    ///
    /// `context` must be of [`Self::new`], and not be used any more.
    unsafe fn free(context: NonNull<Self>) {
        // SAFETY: By the safety requirements.
        drop(unsafe { KBox::from_raw(context.as_ptr()) });
    }
}

impl<H: Handler> IbCmId<H> {
    /// An identifier, whose events `handler` is told of.
    pub(crate) fn new(device: &Device, handler: Arc<H>) -> Result<Self> {
        let context = Context::new(device, handler)?;
        // SAFETY: The device is there. The context stays until the identifier is gone.
        let id = from_err_ptr(unsafe {
            bindings::ib_create_cm_id(
                device.as_raw(),
                Some(trampoline::<H>),
                context.as_ptr().cast(),
            )
        });
        match id.and_then(|id| NonNull::new(id).ok_or(EFAULT)) {
            // INVARIANT: It has just been made.
            Ok(id) => Ok(Self { id, context }),
            Err(e) => {
                // SAFETY: Nobody was given it.
                unsafe { Context::free(context) };
                Err(e)
            }
        }
    }

    /// Returns true if the identifier has the context that it was given.
    pub(crate) fn has_context(&self) -> bool {
        // SAFETY: By the type invariant; the IB CM does not change the field.
        unsafe { (*self.id.as_ptr()).context == self.context.as_ptr().cast() }
    }

    /// Leaves the identifier to its callbacks, which may end it.
    pub(crate) fn lend(self) -> Lent<H> {
        // SAFETY: The context is ours by the type invariant.
        unsafe { self.context.as_ref() }
            .owner
            .store(owner::LENT, Relaxed);
        let this = ManuallyDrop::new(self);
        // INVARIANT: `this` is forgotten, and the context says so.
        Lent {
            id: this.id,
            context: this.context,
        }
    }
}

impl<H: Handler> Deref for IbCmId<H> {
    type Target = IbCmIdRef;

    fn deref(&self) -> &IbCmIdRef {
        // SAFETY: The identifier is there as long as `self` by the type invariant.
        unsafe { IbCmIdRef::from_raw(self.id.as_ptr()) }
    }
}

impl<H: Handler> Drop for IbCmId<H> {
    fn drop(&mut self) {
        // SAFETY: The identifier is ours by the type invariant. This waits for its callbacks, after
        // which nobody uses the context.
        unsafe {
            bindings::ib_destroy_cm_id(self.id.as_ptr());
            Context::free(self.context);
        }
    }
}

/// An identifier that was left to its callbacks. Destroyed when dropped, unless they have.
///
/// # Invariants
///
/// As those of [`IbCmId`], but that the context says `LENT`, and `id` is there, or `GONE`, and only
/// the context is there.
pub(crate) struct Lent<H: Handler> {
    id: NonNull<bindings::ib_cm_id>,
    context: NonNull<Context<H>>,
}

// SAFETY: As for `IbCmId`.
unsafe impl<H: Handler> Send for Lent<H> {}

// SAFETY: As above.
unsafe impl<H: Handler> Sync for Lent<H> {}

impl<H: Handler> Lent<H> {
    /// Takes the identifier back, unless a callback has ended it.
    pub(crate) fn reclaim(self) -> Option<IbCmId<H>> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is forgotten.
        unsafe { this.take() }
    }

    /// Takes the identifier back, unless a callback has ended it.
    ///
    /// # Safety
    ///
    /// `self` must not be used any more.
    unsafe fn take(&mut self) -> Option<IbCmId<H>> {
        // SAFETY: The context is there by the type invariant.
        let owner = &unsafe { self.context.as_ref() }.owner;
        if owner.cmpxchg(owner::LENT, owner::OWNED, Full).is_ok() {
            // INVARIANT: Callbacks cannot end it any more, and have not.
            return Some(IbCmId {
                id: self.id,
                context: self.context,
            });
        }
        // SAFETY: The callback that has ended the identifier was its last, and does not use the
        // context after it has said so.
        unsafe { Context::free(self.context) };
        None
    }
}

impl<H: Handler> Drop for Lent<H> {
    fn drop(&mut self) {
        // SAFETY: This is the end of `self`.
        drop(unsafe { self.take() });
    }
}

/// The identifier of somebody who asks a listener, during the callback.
pub(crate) struct NewId<'a, H: Handler> {
    id: &'a IbCmIdRef,
    device: &'a Device,
    answer: &'a Cell<i32>,
    _handler: PhantomData<H>,
}

impl<H: Handler> NewId<'_, H> {
    /// Keeps the identifier, whose events `handler` is told of from now on. The caller owns it.
    pub(crate) fn keep(self, handler: Arc<H>) -> Result<IbCmId<H>> {
        let context = Context::new(self.device, handler)?;
        // SAFETY: The identifier is there. Its only callback is that in which we are.
        unsafe { (*self.id.as_raw()).context = context.as_ptr().cast() };
        self.answer.set(0);
        Ok(IbCmId {
            id: NonNull::from(self.id).cast(),
            context,
        })
    }

    /// Refuses: the callback returns this number, or 1 if it is 0.
    pub(crate) fn refuse_with(self, number: i32) {
        self.answer.set(if number == 0 { 1 } else { number });
    }
}

impl<H: Handler> Deref for NewId<'_, H> {
    type Target = IbCmIdRef;

    fn deref(&self) -> &IbCmIdRef {
        self.id
    }
}

/// A listener that others may have, too; it refuses all requests. Given back when dropped.
///
/// # Invariants
///
/// The identifier is there, and one of its users is us.
pub(crate) struct SharedListener(NonNull<bindings::ib_cm_id>);

// SAFETY: The IB CM lets any task use and destroy an identifier.
unsafe impl Send for SharedListener {}

impl SharedListener {
    /// A listener for the service, or the one that there is with the same kind of handler.
    pub(crate) fn insert<H: Handler>(device: &Device, service_id: u64) -> Result<Self> {
        // SAFETY: The device is there, and the callback needs no context.
        let id = from_err_ptr(unsafe {
            bindings::ib_cm_insert_listen(
                device.as_raw(),
                Some(trampoline::<H>),
                service_id.to_be(),
            )
        })?;
        // INVARIANT: It was given to us.
        Ok(Self(NonNull::new(id).ok_or(EFAULT)?))
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity::new(self.0.as_ptr())
    }
}

impl Drop for SharedListener {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. If we are the last user this waits for callbacks.
        unsafe { bindings::ib_destroy_cm_id(self.0.as_ptr()) };
    }
}

/// Called when an identifier is told of something.
///
/// # Safety
///
/// To be called by the IB CM only, for an identifier with the context of one of the handler's, or,
/// when it is somebody who asks, with that of such a listener, or with none.
unsafe extern "C" fn trampoline<H: Handler>(
    id: *mut bindings::ib_cm_id,
    event: *const bindings::ib_cm_event,
) -> c_int {
    // SAFETY: The identifier stays for the time of the call. The context of a listener does, too,
    // whose end waits for this call, and that of any other: by the invariants of `IbCmId`.
    let (id, context) = unsafe {
        let context: *const Context<H> = (*id).context.cast_const().cast();
        (IbCmIdRef::from_raw(id), context.as_ref())
    };
    let Some(context) = context else {
        return 1;
    };
    // SAFETY: The event is one of the IB CM's, and used during this call.
    let (event, data) = unsafe { Event::from_raw(event) };
    if matches!(event, Event::Req(_) | Event::SidrReq(_)) {
        let answer = Cell::new(1);
        let new = NewId {
            id,
            device: &context.device,
            answer: &answer,
            _handler: PhantomData,
        };
        H::request(&context.handler, new, &event, data);
        return answer.get();
    }
    match H::event(&context.handler, id, &event, data) {
        Verdict::Keep | Verdict::Destroy(0) => 0,
        Verdict::Destroy(number) => {
            // INVARIANT: After this the identifier ends, and the context is not used here.
            let ended = context.owner.cmpxchg(owner::LENT, owner::GONE, Full);
            if ended.is_err() {
                pr_err!("an identifier is not destroyed: its owner has not lent it\n");
                return 0;
            }
            number
        }
    }
}
