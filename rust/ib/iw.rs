// SPDX-License-Identifier: GPL-2.0

//! The iWARP CM, which connects TCP streams for devices that speak iWARP.
//!
//! C header: [`include/rdma/iw_cm.h`](srctree/include/rdma/iw_cm.h)
//!
//! # Life of an identifier
//!
//! The iWARP CM calls an identifier's owner on an ordered work queue of its own, and the end of an
//! identifier waits until such a call is over. If the peer was asked and has not answered, it waits
//! for that, too. So an [`IwId`] that is dropped is destroyed in the background, and can be dropped
//! anywhere; [`IwId::destroy`] does it at once, where that is allowed.
//!
//! A verb borrows the identifier, so that none runs while it is destroyed.

use super::device::DeviceRef;
use crate::{
    bindings,
    kext::{
        delay,
        error::ToKernel,
        gate::{Gate, OwnedGuard},
        reclaim::NoIo,
        workqueue::{Kind, OwnedQueue},
    },
};
use cmproto::{
    addr::{SockAddr, STORAGE_LEN},
    errno::Errno,
    iwarp::{Depths, Event},
};
use core::{
    cell::Cell,
    ptr::{self, NonNull},
    slice,
};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    error::{from_err_ptr, to_result},
    impl_has_work, new_work,
    prelude::*,
    sync::{
        atomic::{ordering::Full, Atomic},
        Arc, UniqueArc,
    },
    workqueue::{Work, WorkItem},
};

/// Where identifiers are destroyed that nobody waits for.
pub(crate) struct IwCm {
    gate: Arc<Gate>,
    queue: Arc<OwnedQueue>,
}

impl IwCm {
    /// Creates it. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            gate: Arc::pin_init(Gate::new(), GFP_KERNEL)?,
            queue: Arc::new(
                OwnedQueue::new(c"rust_rdma_iwarp", Kind::Unbound)?,
                GFP_KERNEL,
            )?,
        })
    }

    /// Creates no more identifiers, and waits until all are gone.
    ///
    /// To be called before the module goes. The drop does the same.
    pub(crate) fn close(&self) {
        self.gate.close_and_wait();
    }
}

impl Drop for IwCm {
    fn drop(&mut self) {
        self.close();
    }
}

/// What an event says besides what it is.
pub(crate) struct IwEvent<'a> {
    /// The own address; [`SockAddr::Unspec`] if it is not known (any more).
    pub(crate) local: SockAddr,
    /// The peer's, likewise.
    pub(crate) remote: SockAddr,
    /// What the peer sent along.
    pub(crate) private_data: &'a [u8],
    /// RDMA reads that may be outstanding.
    pub(crate) depths: Depths,
}

impl IwEvent<'_> {
    /// # Safety
    ///
    /// `event` must be valid, as the iWARP CM passes it, and not change during `'a`.
    unsafe fn read<'a>(event: *const bindings::iw_cm_event) -> IwEvent<'a> {
        // SAFETY: By the safety requirements.
        let event = unsafe { &*event };
        let len = usize::from(event.private_data_len);
        let private_data = if event.private_data.is_null() {
            &[]
        } else {
            // SAFETY: The iWARP CM has copied so many bytes there.
            unsafe { slice::from_raw_parts(event.private_data.cast_const().cast(), len) }
        };
        // SAFETY: Both are as long, and any bytes may be read.
        let (local, remote) = unsafe {
            (
                &*(&raw const event.local_addr).cast::<[u8; STORAGE_LEN]>(),
                &*(&raw const event.remote_addr).cast::<[u8; STORAGE_LEN]>(),
            )
        };
        IwEvent {
            local: SockAddr::from_bytes(local).unwrap_or_default(),
            remote: SockAddr::from_bytes(remote).unwrap_or_default(),
            private_data,
            depths: Depths {
                ird: event.ird,
                ord: event.ord,
            },
        }
    }
}

/// Who has an identifier.
///
/// The calls come one at a time for all identifiers there are, in process context; they may sleep, but
/// must not wait for anything but locks.
pub(crate) trait IwHandler: Send + Sync + 'static {
    /// A peer asks for a connection, of a listener. It is refused unless the request is adopted.
    fn request(self: Arc<Self>, request: &IwRequest<'_>);

    /// Something happened to a connection.
    fn event(self: Arc<Self>, event: Event, what: &IwEvent<'_>);
}

/// An identifier that exists.
///
/// # Invariants
///
/// - `raw` is an identifier of the iWARP CM that belongs to this object, of `device`.
/// - Its context points to this object.
#[pin_data(PinnedDrop)]
struct Id {
    raw: NonNull<bindings::iw_cm_id>,
    handler: Arc<dyn IwHandler>,
    #[pin]
    work: Work<Self>,
    queue: Arc<OwnedQueue>,
    gate: Arc<Gate>,
    device: DeviceRef,
    // Dropped last: whoever closes the gate waits for it, and has the last reference to the queue.
    _inside: OwnedGuard,
}

impl_has_work! {
    impl HasWork<Self> for Id { self.work }
}

// SAFETY: Any task may use an identifier: the iWARP CM does its own locking.
unsafe impl Send for Id {}

// SAFETY: As above.
unsafe impl Sync for Id {}

impl Id {
    /// Makes the object that an identifier belongs to.
    ///
    /// # Safety
    ///
    /// `raw` must be an identifier of `device`. It belongs to the result, if this succeeds.
    unsafe fn of(
        raw: NonNull<bindings::iw_cm_id>,
        handler: Arc<dyn IwHandler>,
        device: DeviceRef,
        queue: Arc<OwnedQueue>,
        gate: Arc<Gate>,
    ) -> Result<Pin<KBox<Self>>> {
        let inside = Gate::enter_owned(&gate).ok_or(ENODEV)?;
        // INVARIANT: The identifier is handed over. Its context is set right below.
        let id = KBox::pin_init(
            pin_init!(Self {
                raw,
                handler,
                work <- new_work!("rdma_cm_iwarp"),
                queue,
                gate,
                device,
                _inside: inside,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let context: *const Self = &*id;
        // SAFETY: The identifier is valid, and nobody reads the field meanwhile: events of it come
        // only once it is used.
        unsafe { (*raw.as_ptr()).context = context.cast_mut().cast() };
        Ok(id)
    }

    /// Creates an identifier whose events go to `callback`.
    fn new(
        cm: &IwCm,
        device: &DeviceRef,
        handler: Arc<dyn IwHandler>,
        callback: Callback,
    ) -> Result<Pin<KBox<Self>>> {
        // SAFETY: The device is registered. The context is set before there are events.
        let raw = from_err_ptr(unsafe {
            bindings::iw_create_cm_id(device.as_raw(), Some(callback), ptr::null_mut())
        })?;
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        let (queue, gate) = (cm.queue.clone(), cm.gate.clone());
        // SAFETY: Created just now, for this device.
        unsafe { Self::of(raw, handler, device.clone(), queue, gate) }.inspect_err(|_| {
            // SAFETY: It was not handed over.
            unsafe { bindings::iw_destroy_cm_id(raw.as_ptr()) };
        })
    }

    /// Sets addresses and type of service, before the identifier is used.
    fn prepare(&self, local: &SockAddr, remote: &SockAddr, tos: Option<u8>) {
        let raw = self.raw.as_ptr();
        // SAFETY: The identifier is valid and not in use; the fields have the size of an address.
        unsafe {
            (&raw mut (*raw).local_addr)
                .cast::<[u8; STORAGE_LEN]>()
                .write(local.to_storage());
            (&raw mut (*raw).remote_addr)
                .cast::<[u8; STORAGE_LEN]>()
                .write(remote.to_storage());
            (*raw).tos = tos.unwrap_or(0);
            (*raw).set_tos_set(tos.is_some());
        }
    }
}

impl WorkItem for Id {
    type Pointer = Pin<KBox<Self>>;

    /// Destroys what was dropped.
    fn run(this: Pin<KBox<Self>>) {
        let _scope = NoIo::begin();
        drop(this);
    }
}

#[pinned_drop]
impl PinnedDrop for Id {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the identifier is ours. No verb of it runs, because that
        // borrows the object. Its handler is not called any more when this returns, so that nobody
        // refers to the object.
        unsafe { bindings::iw_destroy_cm_id(self.raw.as_ptr()) };
    }
}

type Callback = unsafe extern "C" fn(*mut bindings::iw_cm_id, *mut bindings::iw_cm_event) -> c_int;

/// Called when a peer asks for a connection, with the identifier that is to be the connection's. What
/// is not 0 refuses it.
///
/// # Safety
///
/// To be called by the iWARP CM only, for a listener of [`IwListener`].
unsafe extern "C" fn on_request(
    raw: *mut bindings::iw_cm_id,
    event: *mut bindings::iw_cm_event,
) -> c_int {
    let _scope = NoIo::begin();
    let refused = Errno::ECONNABORTED.to_kernel().to_errno();
    // SAFETY: The new identifier has the context of the listener, whose end waits for us.
    let listener = unsafe { &*(*raw).context.cast_const().cast::<Id>() };
    // SAFETY: The iWARP CM passes valid pointers.
    let (kind, what) = unsafe { ((*event).event, IwEvent::read(event)) };
    let (bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REQUEST, Some(raw)) =
        (kind, NonNull::new(raw))
    else {
        return refused;
    };
    let request = IwRequest {
        raw,
        listener,
        what,
        is_adopted: Cell::new(false),
    };
    listener.handler.clone().request(&request);
    if request.is_adopted.get() {
        0
    } else {
        refused
    }
}

/// Called when something happened to a connection. Returns 0, which leaves the identifier with its
/// owner.
///
/// # Safety
///
/// To be called by the iWARP CM only, for an identifier of [`IwId`].
unsafe extern "C" fn on_event(
    raw: *mut bindings::iw_cm_id,
    event: *mut bindings::iw_cm_event,
) -> c_int {
    let _scope = NoIo::begin();
    // SAFETY: By the invariant of `Id`, whose end waits for us.
    let id = unsafe { &*(*raw).context.cast_const().cast::<Id>() };
    // SAFETY: The iWARP CM passes valid pointers.
    let (kind, status, what) = unsafe { ((*event).event, (*event).status, IwEvent::read(event)) };
    delay::point();
    let depths = what.depths;
    let event = match kind {
        bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REPLY => Event::Reply { status, depths },
        bindings::iw_cm_event_type_IW_CM_EVENT_ESTABLISHED => Event::Established(depths),
        bindings::iw_cm_event_type_IW_CM_EVENT_CLOSE => Event::Close,
        _ => return 0,
    };
    id.handler.clone().event(event, &what);
    0
}

/// A request for a connection, during the call that tells of it.
pub(crate) struct IwRequest<'a> {
    raw: NonNull<bindings::iw_cm_id>,
    listener: &'a Id,
    /// What the peer says.
    pub(crate) what: IwEvent<'a>,
    is_adopted: Cell<bool>,
}

impl IwRequest<'_> {
    /// The device that the request came to.
    pub(crate) fn device(&self) -> &DeviceRef {
        &self.listener.device
    }

    /// Takes the request over, for `handler` to answer. Dropping the result without an answer refuses
    /// it.
    ///
    /// Fails with [`ENOMEM`], and [`EBUSY`] if that was done before.
    pub(crate) fn adopt(&self, handler: Arc<dyn IwHandler>) -> Result<Arc<IwId>> {
        if self.is_adopted.get() {
            return Err(EBUSY);
        }
        let room = UniqueArc::<IwId>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let (queue, gate) = (self.listener.queue.clone(), self.listener.gate.clone());
        // SAFETY: The identifier is of the listener's device, and is ours because the callback is going
        // to return 0.
        let id = unsafe { Id::of(self.raw, handler, self.device().clone(), queue, gate) }?;
        self.is_adopted.set(true);
        // SAFETY: The identifier is valid, and there are no events of it before it is answered.
        unsafe { (*self.raw.as_ptr()).cm_handler = Some(on_event) };
        Ok(room.write(IwId::new(id, true)).into())
    }
}

/// What a consumer says about a connection.
pub(crate) struct IwParam<'a> {
    /// The number of the QP of this end.
    pub(crate) qp_num: u32,
    /// Inbound and outbound read depth.
    pub(crate) depths: Depths,
    /// For the peer.
    pub(crate) private_data: &'a [u8],
}

impl IwParam<'_> {
    fn to_raw(&self) -> bindings::iw_cm_conn_param {
        bindings::iw_cm_conn_param {
            private_data: self.private_data.as_ptr().cast(),
            private_data_len: u16::try_from(self.private_data.len()).unwrap_or(u16::MAX),
            ord: self.depths.ord.into(),
            ird: self.depths.ird.into(),
            qpn: self.qp_num,
        }
    }
}

/// How far an [`IwId`] is used.
mod used {
    /// Active side: not yet.
    pub(super) const NOT: u32 = 0;
    /// Passive side: not answered.
    pub(super) const ASKED: u32 = 1;
    /// It was.
    pub(super) const YES: u32 = 2;
}

/// The identifier of a connection.
///
/// Dropping it destroys it in the background, and ends the connection or refuses the request.
pub(crate) struct IwId {
    /// Always there, but for the drop.
    id: Option<Pin<KBox<Id>>>,
    /// The iWARP CM relies on its callers here.
    used: Atomic<u32>,
}

impl IwId {
    /// Creates an identifier to connect with. May sleep.
    ///
    /// Fails with [`ENOMEM`], and [`ENODEV`] if the module is going away.
    pub(crate) fn create(
        cm: &IwCm,
        device: &DeviceRef,
        handler: Arc<dyn IwHandler>,
    ) -> Result<Arc<Self>> {
        let id = Id::new(cm, device, handler, on_event)?;
        Ok(Arc::new(Self::new(id, false), GFP_KERNEL_ACCOUNT)?)
    }

    fn new(id: Pin<KBox<Id>>, is_request: bool) -> Self {
        let used = if is_request { used::ASKED } else { used::NOT };
        Self {
            id: Some(id),
            used: Atomic::new(used),
        }
    }

    fn raw(&self) -> Result<*mut bindings::iw_cm_id> {
        Ok(self.id.as_ref().ok_or(ENODEV)?.raw.as_ptr())
    }

    /// Uses the identifier for what can be done once.
    fn begin(&self, from: u32) -> Result<*mut bindings::iw_cm_id> {
        let raw = self.raw()?;
        let begun = self.used.cmpxchg(from, used::YES, Full);
        begun.map(|_| raw).map_err(|_| EINVAL)
    }

    /// Asks `remote` for a connection from `local`. Sleeps, perhaps until the TCP connection is there
    /// or could not be made, or a signal comes.
    ///
    /// Fails with [`EINVAL`] if there is no such QP, or if it was called before, and with what the
    /// driver says, for instance `ECONNREFUSED`; there are no events then.
    pub(crate) fn connect(
        &self,
        local: &SockAddr,
        remote: &SockAddr,
        tos: Option<u8>,
        param: &IwParam<'_>,
    ) -> Result {
        let raw = self.begin(used::NOT)?;
        if let Some(id) = &self.id {
            id.prepare(local, remote, tos);
        }
        let mut param = param.to_raw();
        // SAFETY: The identifier is valid and was not used before; the parameters are used during the
        // call only.
        to_result(unsafe { bindings::iw_cm_connect(raw, &raw mut param) })
    }

    /// Accepts the request. Sleeps.
    ///
    /// Fails with [`EINVAL`] if there is no such QP, or if the request was answered before, and with
    /// what the driver says, for instance `ECONNRESET` if the peer has gone. The peer is refused then.
    pub(crate) fn accept(&self, param: &IwParam<'_>) -> Result {
        let raw = self.begin(used::ASKED)?;
        let mut param = param.to_raw();
        // SAFETY: The identifier is that of a request, which was not answered before. The parameters
        // are used during the call only.
        unsafe {
            to_result(bindings::iw_cm_accept(raw, &raw mut param)).inspect_err(|_| {
                let _ = bindings::iw_cm_reject(raw, ptr::null(), 0);
            })
        }
    }

    /// Refuses the request. Sleeps. No more than 255 bytes of `private_data` are for the peer.
    ///
    /// Fails with [`EINVAL`] if it was answered before, and with what the driver says, for instance
    /// `ECONNRESET` if the peer has gone.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result {
        let raw = self.begin(used::ASKED)?;
        let len = u8::try_from(private_data.len()).unwrap_or(u8::MAX);
        // SAFETY: As above.
        to_result(unsafe { bindings::iw_cm_reject(raw, private_data.as_ptr().cast(), len) })
    }

    /// Closes the connection, if it is there; an event says when it is closed. May be called in an
    /// event of the identifier. If an answer is awaited, sleeps until it comes.
    pub(crate) fn disconnect(&self) -> Result {
        let raw = self.raw()?;
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::iw_cm_disconnect(raw, 0) })
    }

    /// The attributes for moving the QP to `state`, an `enum ib_qp_state`: which ones count, an `enum
    /// ib_qp_attr_mask`, and the access that the peer has, of `enum ib_access_flags`. Does not sleep.
    ///
    /// Fails with [`EINVAL`] for a state that the connection does not lead to, or not any more.
    pub(crate) fn init_qp_attr(&self, state: u32) -> Result<(u32, u32)> {
        let raw = self.raw()?;
        let mut attr = bindings::ib_qp_attr {
            qp_state: state,
            ..pin_init::zeroed()
        };
        let mut mask = 0;
        // SAFETY: The identifier is valid, and so are the places for the results.
        to_result(unsafe { bindings::iw_cm_init_qp_attr(raw, &raw mut attr, &raw mut mask) })?;
        let access = u32::try_from(attr.qp_access_flags).unwrap_or(0);
        Ok((u32::try_from(mask).unwrap_or(0), access))
    }

    /// Destroys the identifier: ends the connection, and waits for an event that is being handled,
    /// and for the peer if it was asked and has not answered. If a verb runs at this moment, that is
    /// left to the background.
    ///
    /// Must not be called in an event.
    pub(crate) fn destroy(this: Arc<Self>) {
        if let Some(mut last) = Arc::into_unique_or_drop(this) {
            drop(last.id.take());
        }
    }
}

impl Drop for IwId {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let queue = id.queue.clone();
            queue.enqueue::<_, 0>(id);
        }
    }
}

/// Where a listener listens.
pub(crate) struct IwAddress {
    /// The address; a wildcard stands for those of the device.
    pub(crate) addr: SockAddr,
    /// Type of service of the connections, if it was set.
    pub(crate) tos: Option<u8>,
    /// Whether a wildcard stands for its own address family only.
    pub(crate) afonly: bool,
    /// How many requests may wait for their handler.
    pub(crate) backlog: i32,
}

/// A listener at a device.
///
/// Dropping it ends it, and waits for a request that is being handled: not to be done in an event.
pub(crate) struct IwListener(Pin<KBox<Id>>);

impl IwListener {
    /// Starts to listen. May sleep. A TCP socket is made in the network namespace of the current task.
    ///
    /// Fails with [`ENOMEM`], and with what the driver says, for instance `EADDRINUSE`.
    pub(crate) fn new(
        cm: &IwCm,
        device: &DeviceRef,
        handler: Arc<dyn IwHandler>,
        address: &IwAddress,
    ) -> Result<Self> {
        let id = Id::new(cm, device, handler, on_request)?;
        id.prepare(&address.addr, &SockAddr::Unspec, address.tos);
        let raw = id.raw.as_ptr();
        // SAFETY: The identifier is valid and not in use.
        unsafe {
            (*raw).set_afonly(address.afonly);
            to_result(bindings::iw_cm_listen(raw, address.backlog))?;
        }
        Ok(Self(id))
    }
}
