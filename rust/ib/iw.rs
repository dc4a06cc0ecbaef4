// SPDX-License-Identifier: GPL-2.0

//! The iWARP CM (`iw_cm`), which makes connections over TCP for devices that speak iWARP.
//!
//! C header: [`include/rdma/iw_cm.h`](srctree/include/rdma/iw_cm.h)
//!
//! # Lifetime of an identifier
//!
//! The iWARP CM calls the owner of an identifier on an ordered work queue of its own. Destroying an
//! identifier waits for a callback that is running and, if a request was sent, for the answer of
//! the peer. So an [`IwId`] that is dropped is destroyed in the background, and can be dropped
//! anywhere; [`IwId::destroy`] destroys it at once, where waiting is allowed.
//!
//! A verb borrows the identifier, so that it cannot be destroyed while the verb runs.

use super::{device::DeviceRef, restrack::RdmaIdPrivate};
use crate::{
    bindings,
    kext::{
        delay,
        error::ToKernel,
        reclaim::NoIo,
        use_count::{OwnedUse, UseCount},
        workqueue::OwnedQueue,
    },
};
use atomics::VerbState;
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
    sync::{Arc, UniqueArc},
    workqueue::{Work, WorkItem},
};

/// A service that creates identifiers, and destroys dropped ones in the background.
pub(crate) struct IwCm {
    users: Arc<UseCount>,
    queue: Arc<OwnedQueue>,
}

impl IwCm {
    /// Creates the service. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            users: Arc::pin_init(UseCount::new(), GFP_KERNEL)?,
            queue: Arc::new(OwnedQueue::new(c"rust_rdma_iwarp")?, GFP_KERNEL)?,
        })
    }

    /// Stops creating identifiers, and waits until all are destroyed.
    ///
    /// Must be called before the module is unloaded. Dropping the service closes it too.
    pub(crate) fn close(&self) {
        self.users.close_and_wait();
    }
}

impl Drop for IwCm {
    fn drop(&mut self) {
        self.close();
    }
}

/// The parameters of an event.
pub(crate) struct IwEvent<'a> {
    /// The local address; [`SockAddr::Unspec`] if it is not known (any more).
    pub(crate) local: SockAddr,
    /// The address of the peer; [`SockAddr::Unspec`] if it is not known (any more).
    pub(crate) remote: SockAddr,
    /// The private data that the peer has sent.
    pub(crate) private_data: &'a [u8],
    /// The inbound and outbound read depths (IRD and ORD).
    pub(crate) depths: Depths,
}

impl IwEvent<'_> {
    /// Converts an event of C.
    ///
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
            // SAFETY: The iWARP CM has stored that many bytes there.
            unsafe { slice::from_raw_parts(event.private_data.cast_const().cast(), len) }
        };
        // SAFETY: Both fields have this size, and any bytes may be read.
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

/// The owner of an identifier.
///
/// Calls for all identifiers come one at a time, in process context. They may sleep, but must wait
/// for nothing but locks.
pub(crate) trait IwHandler: Send + Sync + 'static {
    /// Handles a connection request that a listener has received.
    ///
    /// The request is rejected unless this adopts it.
    fn request(self: Arc<Self>, request: &IwRequest<'_>);

    /// Handles an event of a connection.
    fn event(self: Arc<Self>, event: Event, iw_event: &IwEvent<'_>);
}

/// An existing identifier.
///
/// # Invariants
///
/// - `raw` is an identifier of the iWARP CM, of `device`, and is owned by this object.
/// - The context of the identifier points to this object.
#[pin_data(PinnedDrop)]
struct Id {
    raw: NonNull<bindings::iw_cm_id>,
    handler: Arc<dyn IwHandler>,
    #[pin]
    work: Work<Self>,
    queue: Arc<OwnedQueue>,
    users: Arc<UseCount>,
    device: DeviceRef,
    // Dropped last: the task that closes the count waits for this use, and has the last reference
    // to the queue.
    _use: OwnedUse,
}

impl_has_work! {
    impl HasWork<Self> for Id { self.work }
}

// SAFETY: Any task may use an identifier: the iWARP CM does its own locking.
unsafe impl Send for Id {}

// SAFETY: Any task may use an identifier: the iWARP CM does its own locking.
unsafe impl Sync for Id {}

impl Id {
    /// Creates the object that owns the identifier `raw`.
    ///
    /// # Safety
    ///
    /// `raw` must be an identifier of `device`. If this succeeds, the result owns it.
    unsafe fn of(
        raw: NonNull<bindings::iw_cm_id>,
        handler: Arc<dyn IwHandler>,
        device: DeviceRef,
        queue: Arc<OwnedQueue>,
        users: Arc<UseCount>,
    ) -> Result<Pin<KBox<Self>>> {
        let in_use = UseCount::try_get_owned(&users).ok_or(ENODEV)?;
        // INVARIANT: The caller gives up the identifier. Its context is set below.
        let id = KBox::pin_init(
            pin_init!(Self {
                raw,
                handler,
                work <- new_work!("rdma_cm_iwarp"),
                queue,
                users,
                device,
                _use: in_use,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let context: *const Self = &*id;
        // SAFETY: The identifier is valid, and nobody reads the field at the same time, because
        // events come only once the identifier is used.
        unsafe { (*raw.as_ptr()).context = context.cast_mut().cast() };
        Ok(id)
    }

    /// Creates an identifier with `callback` as its event handler.
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
        let (queue, users) = (cm.queue.clone(), cm.users.clone());
        // SAFETY: The identifier was created above, for this device.
        unsafe { Self::of(raw, handler, device.clone(), queue, users) }.inspect_err(|_| {
            // SAFETY: The identifier was not transferred.
            unsafe { bindings::iw_destroy_cm_id(raw.as_ptr()) };
        })
    }

    /// Sets the addresses and the type of service, before the identifier is used.
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

    /// Destroys an identifier that was dropped.
    fn run(this: Pin<KBox<Self>>) {
        let _scope = NoIo::begin();
        drop(this);
    }
}

#[pinned_drop]
impl PinnedDrop for Id {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariant the identifier is ours. None of its verbs is running,
        // because a verb borrows the object. Its handler is not called any more when this returns,
        // so that nobody refers to the object.
        unsafe { bindings::iw_destroy_cm_id(self.raw.as_ptr()) };
    }
}

type Callback = unsafe extern "C" fn(*mut bindings::iw_cm_id, *mut bindings::iw_cm_event) -> c_int;

/// Handles a connection request; called by the iWARP CM.
///
/// `raw` is the new identifier for the connection. A non-zero result rejects the request.
///
/// # Safety
///
/// Only the iWARP CM may call this, for a listener of [`IwListener`].
unsafe extern "C" fn on_request(
    raw: *mut bindings::iw_cm_id,
    event: *mut bindings::iw_cm_event,
) -> c_int {
    let _scope = NoIo::begin();
    let refused = Errno::ECONNABORTED.to_kernel().to_errno();
    // SAFETY: The new identifier has the context of the listener, whose destruction waits for this
    // callback.
    let listener = unsafe { &*(*raw).context.cast_const().cast::<Id>() };
    // SAFETY: The iWARP CM passes valid pointers.
    let (kind, iw_event) = unsafe { ((*event).event, IwEvent::read(event)) };
    let (bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REQUEST, Some(raw)) =
        (kind, NonNull::new(raw))
    else {
        return refused;
    };
    let request = IwRequest {
        raw,
        listener,
        iw_event,
        is_adopted: Cell::new(false),
    };
    listener.handler.clone().request(&request);
    if request.is_adopted.get() {
        0
    } else {
        refused
    }
}

/// Handles an event of a connection; called by the iWARP CM.
///
/// Returns 0, so that the owner keeps the identifier.
///
/// # Safety
///
/// Only the iWARP CM may call this, for an identifier of [`IwId`].
unsafe extern "C" fn on_event(
    raw: *mut bindings::iw_cm_id,
    event: *mut bindings::iw_cm_event,
) -> c_int {
    let _scope = NoIo::begin();
    // SAFETY: By the invariant of `Id`, whose destruction waits for this callback.
    let id = unsafe { &*(*raw).context.cast_const().cast::<Id>() };
    // SAFETY: The iWARP CM passes valid pointers.
    let (kind, status, iw_event) =
        unsafe { ((*event).event, (*event).status, IwEvent::read(event)) };
    delay::point();
    let depths = iw_event.depths;
    let event = match kind {
        bindings::iw_cm_event_type_IW_CM_EVENT_CONNECT_REPLY => Event::Reply { status, depths },
        bindings::iw_cm_event_type_IW_CM_EVENT_ESTABLISHED => Event::Established(depths),
        bindings::iw_cm_event_type_IW_CM_EVENT_CLOSE => Event::Close,
        _ => return 0,
    };
    id.handler.clone().event(event, &iw_event);
    0
}

/// A connection request, for the duration of its callback.
pub(crate) struct IwRequest<'a> {
    raw: NonNull<bindings::iw_cm_id>,
    listener: &'a Id,
    /// The parameters of the request.
    pub(crate) iw_event: IwEvent<'a>,
    is_adopted: Cell<bool>,
}

impl IwRequest<'_> {
    /// Returns the device that has received the request.
    pub(crate) fn device(&self) -> &DeviceRef {
        &self.listener.device
    }

    /// Takes over the request, which is to be answered with the result.
    ///
    /// `handler` gets the events of the connection. Dropping the result without an answer rejects
    /// the request. Fails with [`ENOMEM`], and [`EBUSY`] if the request was adopted before.
    pub(crate) fn adopt(&self, handler: Arc<dyn IwHandler>) -> Result<Arc<IwId>> {
        if self.is_adopted.get() {
            return Err(EBUSY);
        }
        let memory = UniqueArc::<IwId>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        let (queue, users) = (self.listener.queue.clone(), self.listener.users.clone());
        // SAFETY: The identifier is one of the listener's device, and is ours because the callback
        // is going to return 0.
        let id = unsafe { Id::of(self.raw, handler, self.device().clone(), queue, users) }?;
        self.is_adopted.set(true);
        // SAFETY: The identifier is valid, and has no events before the request is answered.
        unsafe { (*self.raw.as_ptr()).cm_handler = Some(on_event) };
        Ok(memory.write(IwId::new(id, true)).into())
    }
}

/// The parameters that a consumer passes to connect or accept.
pub(crate) struct IwParam<'a> {
    /// The number of the local QP.
    pub(crate) qp_num: u32,
    /// The inbound and outbound read depths (IRD and ORD).
    pub(crate) depths: Depths,
    /// The private data for the peer.
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

/// The identifier of a connection or of a connection request.
///
/// Dropping it destroys it in the background, which ends the connection or rejects the request.
pub(crate) struct IwId {
    /// The identifier; `None` only while this is dropped.
    id: Option<Pin<KBox<Id>>>,
    /// The verb that may be called. The iWARP CM relies on its callers not to answer twice.
    state: VerbState,
}

impl IwId {
    /// Creates an identifier for an active connection. May sleep.
    ///
    /// Fails with [`ENOMEM`], and [`ENODEV`] if the module is being unloaded.
    pub(crate) fn create(
        cm: &IwCm,
        device: &DeviceRef,
        handler: Arc<dyn IwHandler>,
    ) -> Result<Arc<Self>> {
        let id = Id::new(cm, device, handler, on_event)?;
        Ok(Arc::new(Self::new(id, false), GFP_KERNEL_ACCOUNT)?)
    }

    fn new(id: Pin<KBox<Id>>, is_request: bool) -> Self {
        let state = if is_request {
            VerbState::requested()
        } else {
            VerbState::unused()
        };
        Self {
            id: Some(id),
            state,
        }
    }

    /// Shows the identifier to drivers as that of `id_priv`.
    pub(crate) fn show_at(&self, id_priv: &RdmaIdPrivate) {
        if let Some(id) = &self.id {
            id_priv.set_iw(id.raw.as_ptr());
        }
    }

    fn raw(&self) -> Result<*mut bindings::iw_cm_id> {
        Ok(self.id.as_ref().ok_or(ENODEV)?.raw.as_ptr())
    }

    /// Begins a verb by `begin`, and returns the identifier for it.
    fn begin(&self, begin: impl FnOnce(&VerbState) -> bool) -> Result<*mut bindings::iw_cm_id> {
        let raw = self.raw()?;
        begin(&self.state).then_some(raw).ok_or(EINVAL)
    }

    /// Requests a connection from `local` to `remote`.
    ///
    /// Sleeps, perhaps until the TCP connection is established or has failed, or a signal arrives.
    ///
    /// Fails with [`EINVAL`] if there is no such QP, or if it was called before, and with errors of
    /// the driver, for instance `ECONNREFUSED`. After an error there are no events.
    pub(crate) fn connect(
        &self,
        local: &SockAddr,
        remote: &SockAddr,
        tos: Option<u8>,
        param: &IwParam<'_>,
    ) -> Result {
        let raw = self.begin(VerbState::connect)?;
        if let Some(id) = &self.id {
            id.prepare(local, remote, tos);
        }
        let mut param = param.to_raw();
        // SAFETY: The identifier is valid and was not used before; the parameters are used during
        // the call only.
        to_result(unsafe { bindings::iw_cm_connect(raw, &raw mut param) })
    }

    /// Accepts the connection request. Sleeps.
    ///
    /// Fails with [`EINVAL`] if there is no such QP, or if the request was answered before, and
    /// with errors of the driver, for instance `ECONNRESET` if the peer has gone. An error of the
    /// driver rejects the request.
    pub(crate) fn accept(&self, param: &IwParam<'_>) -> Result {
        let raw = self.begin(VerbState::answer)?;
        let mut param = param.to_raw();
        // SAFETY: The identifier is that of a request, which was not answered before. The
        // parameters are used during the call only.
        unsafe {
            to_result(bindings::iw_cm_accept(raw, &raw mut param)).inspect_err(|_| {
                let _ = bindings::iw_cm_reject(raw, ptr::null(), 0);
            })
        }
    }

    /// Rejects the connection request, with at most 255 bytes of private data. Sleeps.
    ///
    /// Fails with [`EINVAL`] if the request was answered before, and with errors of the driver, for
    /// instance `ECONNRESET` if the peer has gone.
    pub(crate) fn reject(&self, private_data: &[u8]) -> Result {
        let raw = self.begin(VerbState::answer)?;
        let len = u8::try_from(private_data.len()).unwrap_or(u8::MAX);
        // SAFETY: The identifier is that of a request, which was not answered before. The data is
        // used during the call only.
        to_result(unsafe { bindings::iw_cm_reject(raw, private_data.as_ptr().cast(), len) })
    }

    /// Closes the connection, if it is established; an event reports when it is closed.
    ///
    /// May be called in an event of the identifier. Sleeps while a request that was sent is not
    /// answered.
    pub(crate) fn disconnect(&self) -> Result {
        let raw = self.raw()?;
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::iw_cm_disconnect(raw, 0) })
    }

    /// Returns the attributes for a transition of the QP to `state`, an `enum ib_qp_state`.
    ///
    /// The result is an `enum ib_qp_attr_mask`, which names the attributes, and the remote access,
    /// an `enum ib_access_flags`. Does not sleep. Fails with [`EINVAL`] if the state of the
    /// connection has no attributes for `state`.
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

    /// Destroys the identifier, which ends the connection.
    ///
    /// Waits for a callback that is running and, if a request was sent, for the answer of the peer.
    /// If a verb is running, the identifier is destroyed in the background instead. Must not be
    /// called in an event.
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

/// The address and the options of a listener.
pub(crate) struct IwAddress {
    /// The local address; a wildcard stands for all addresses of the device.
    pub(crate) addr: SockAddr,
    /// The type of service of the connections, if it was set.
    pub(crate) tos: Option<u8>,
    /// Set if a wildcard accepts only its own address family.
    pub(crate) afonly: bool,
    /// The maximum number of requests that wait for their handler.
    pub(crate) backlog: i32,
}

/// A listener at an iWARP device.
///
/// Dropping it destroys it, and waits for a request that is being handled; so it must not be
/// dropped in an event.
pub(crate) struct IwListener(Pin<KBox<Id>>);

impl IwListener {
    /// Starts to listen. May sleep.
    ///
    /// The TCP socket is created in the network namespace of the current task. Fails with
    /// [`ENOMEM`], and with errors of the driver, for instance `EADDRINUSE`.
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

    /// Shows the listener to drivers as that of `id_priv`.
    pub(crate) fn show_at(&self, id_priv: &RdmaIdPrivate) {
        id_priv.set_iw(self.0.raw.as_ptr());
    }
}
