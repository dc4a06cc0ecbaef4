// SPDX-License-Identifier: GPL-2.0

//! Identifiers of the RDMA CM, and the functions of one that exists.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)

pub(crate) use super::qp_attr::QpType;
use super::{
    address::Address,
    device::Device,
    event::{raw_data, ConnParam, Ece, Event},
    gid::Gid,
    number::numbers,
    owner::{Handler, Owner},
    path::Path,
    qp_attr::{QpAttr, QpState},
    queue_pair::{CompletionQueue, ProtectionDomain, QpInit, QueuePair},
    refusal::RejectReason,
};
use crate::bindings;
use core::{marker::PhantomData, net::SocketAddr, ops::Deref, ptr};
use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc,
    types::{NotThreadSafe, Opaque},
};

/// The kind of hardware that an interface of IP over InfiniBand is.
const ARPHRD_INFINIBAND: u16 = 32;

numbers! {
    /// The port space of an identifier.
    PortSpace {
        TCP = rdma_ucm_port_space_RDMA_PS_TCP,
        UDP = rdma_ucm_port_space_RDMA_PS_UDP,
    }
    /// The kind of a device.
    NodeType {
        IB_CA = RDMA_NODE_IB_CA,
        IB_SWITCH = RDMA_NODE_IB_SWITCH,
        UNSPECIFIED = RDMA_NODE_UNSPECIFIED,
    }
    /// An event of a device that a consumer passes on.
    DeviceEvent {
        COMM_EST = ib_event_type_IB_EVENT_COMM_EST,
        PATH_MIG_ERR = ib_event_type_IB_EVENT_PATH_MIG_ERR,
    }
}

/// An identifier, for as long as the reference. The [`Owner`] ends it.
///
/// # Invariants
///
/// It has been created by an [`Owner<H>`], or adopted by one, to which its context leads, and it is
/// not destroyed before the reference is gone.
#[repr(transparent)]
pub(crate) struct CmId<H: Handler>(Opaque<bindings::rdma_cm_id>, PhantomData<fn(H)>);

// SAFETY: The RDMA CM has its own locks; a reader of a field does not need them.
unsafe impl<H: Handler> Sync for CmId<H> {}

/// Reads a field that the RDMA CM may write meanwhile, as one word.
macro_rules! read {
    ($id:expr, $($field:ident).+) => {
        // SAFETY: The identifier is valid by the type invariant, and any value is one of the type.
        unsafe { ptr::read_volatile(&raw const (*$id.as_raw()).$($field).+) }
    };
}

/// The address of a parameter that may be left out.
fn raw_or_null<T>(parameter: Option<&mut T>) -> *mut T {
    parameter.map_or(ptr::null_mut(), ptr::from_mut)
}

impl<H: Handler> CmId<H> {
    /// Turns a pointer of the kernel into a reference.
    ///
    /// # Safety
    ///
    /// The invariants of the type must hold.
    pub(super) unsafe fn from_raw<'a>(id: *mut bindings::rdma_cm_id) -> &'a Self {
        // SAFETY: By the safety requirements; the type is transparent.
        unsafe { &*id.cast::<Self>() }
    }

    pub(super) fn as_raw(&self) -> *mut bindings::rdma_cm_id {
        self.0.get()
    }

    fn owner(&self) -> &Owner<H> {
        let context = read!(self, context);
        // SAFETY: By the type invariant the context is that of an owner, which the identifier has a
        // reference to.
        unsafe { &*context.cast_const().cast::<Owner<H>>() }
    }

    /// Returns the handler that it tells of its events.
    pub(crate) fn handler(&self) -> &Arc<H> {
        self.owner().handler()
    }

    /// Returns true if both call the same function.
    pub(crate) fn calls_what_calls(&self, other: &Self) -> bool {
        let mine = read!(self, event_handler).map(|handler| handler as usize);
        mine == read!(other, event_handler).map(|handler| handler as usize)
    }

    pub(crate) fn port_space(&self) -> PortSpace {
        PortSpace(read!(self, ps))
    }

    pub(crate) fn qp_type(&self) -> QpType {
        QpType(read!(self, qp_type))
    }

    /// The number of the port of the device.
    pub(crate) fn port_num(&self) -> u32 {
        read!(self, port_num)
    }

    /// Returns true if it is bound to a device.
    pub(crate) fn has_device(&self) -> bool {
        !read!(self, device).is_null()
    }

    /// Returns true if it is bound to this device.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        read!(self, device) == device.as_raw()
    }

    /// Returns true if it is bound to a device that speaks iWARP.
    pub(crate) fn is_iwarp(&self) -> bool {
        let device = read!(self, device);
        // SAFETY: An identifier keeps its device, and `port_num` is one of its ports.
        !device.is_null() && unsafe { bindings::rust_test_is_iwarp(device, self.port_num()) }
    }

    /// Returns true if it has a queue pair.
    pub(crate) fn has_qp(&self) -> bool {
        !read!(self, qp).is_null()
    }

    /// The own address, if it is one of IP.
    pub(crate) fn source(&self) -> Option<SocketAddr> {
        // SAFETY: The identifier is valid, and an address is as many bytes.
        let storage = unsafe {
            let address = &raw const (*self.as_raw()).route.addr.src_addr;
            ptr::read_volatile(address.cast())
        };
        Address::parse(&storage)
    }

    /// Returns the number of paths that it knows.
    pub(crate) fn num_paths(&self) -> i32 {
        read!(self, route.num_pri_alt_paths)
    }

    /// The path to the other end, once that is known, if it is one of RoCE v2 or InfiniBand.
    pub(crate) fn path(&self) -> Option<Path> {
        if !self.owner().has_path() {
            return None;
        }
        let path = read!(self, route.path_rec);
        // SAFETY: A route that is resolved stays as long as the identifier.
        unsafe { path.as_ref() }.and_then(Path::from_raw)
    }

    /// The GIDs in the link-layer addresses of both ends, the own one first, if it is IP over InfiniBand.
    pub(crate) fn ipoib_gids(&self) -> Option<(Gid, Gid)> {
        let address = read!(self, route.addr.dev_addr);
        if address.dev_type != ARPHRD_INFINIBAND {
            return None;
        }
        let gid_of = |address: &[u8]| address.get(4..20)?.try_into().ok().map(Gid);
        Some((
            gid_of(&address.src_dev_addr)?,
            gid_of(&address.dst_dev_addr)?,
        ))
    }

    /// The id and the GID of the first service that was found, and how many there are. Asked in the
    /// callback that tells of them, or after that.
    pub(crate) fn first_service(&self) -> Option<(u64, Gid, u32)> {
        let (services, count) = (
            read!(self, route.service_recs),
            read!(self, route.num_service_recs),
        );
        // SAFETY: Records that were found stay as long as the identifier.
        let first = unsafe { services.as_ref() }?;
        Some((u64::from_be(first.id), Gid(first.gid), count))
    }

    /// Binds it to an address, and perhaps to a device.
    pub(crate) fn bind_addr(&self, mut address: Address) -> Result {
        // SAFETY: The identifier is valid, and so is the address.
        to_result(unsafe { bindings::rdma_bind_addr(self.as_raw(), address.as_mut_raw()) })
    }

    /// Asks for the device that leads to an address.
    pub(crate) fn resolve_addr(
        &self,
        mut source: Option<Address>,
        mut destination: Address,
        timeout_ms: usize,
    ) -> Result {
        let source = source.as_mut().map_or(ptr::null_mut(), Address::as_mut_raw);
        // SAFETY: The identifier is valid, and so are the addresses, which are copied.
        to_result(unsafe {
            bindings::rdma_resolve_addr(self.as_raw(), source, destination.as_mut_raw(), timeout_ms)
        })
    }

    /// Asks for the path to the address.
    pub(crate) fn resolve_route(&self, timeout_ms: usize) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_resolve_route(self.as_raw(), timeout_ms) })
    }

    /// Asks for a service record.
    pub(crate) fn resolve_ib_service(&self, service_id: u64) -> Result {
        let mut service = bindings::rdma_ucm_ib_service {
            service_id,
            flags: bindings::RDMA_USER_CM_IB_SERVICE_FLAG_ID,
            service_name: [0; 64],
            reserved: 0,
        };
        // SAFETY: The identifier is valid, and the service is copied.
        to_result(unsafe { bindings::rdma_resolve_ib_service(self.as_raw(), &raw mut service) })
    }

    /// Says what the path is, which then nobody is asked for.
    pub(crate) fn set_ib_path(&self, path: &Path) -> Result {
        let mut path = path.to_raw();
        // SAFETY: The identifier is valid, and the path is copied.
        to_result(unsafe { bindings::rdma_set_ib_path(self.as_raw(), &raw mut path) })?;
        self.owner().note_path();
        Ok(())
    }

    /// Waits for requests; of no more than `backlog` at a time where the device counts them.
    pub(crate) fn listen(&self, backlog: i32) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_listen(self.as_raw(), backlog) })
    }

    /// Sends a request. Takes the lock of the handler.
    pub(crate) fn connect(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: The identifier is valid, and so are the parameters and their data.
        to_result(unsafe { bindings::rdma_connect(self.as_raw(), &raw mut raw) })
    }

    /// Connects like [`Self::connect`], with options.
    pub(crate) fn connect_ece(&self, param: &ConnParam<'_>, ece: Ece) -> Result {
        let mut raw = param.to_raw()?;
        let mut ece = ece.to_raw();
        // SAFETY: As in `connect`.
        to_result(unsafe { bindings::rdma_connect_ece(self.as_raw(), &raw mut raw, &raw mut ece) })
    }

    /// Passes on what the device has told of the queue pair.
    pub(crate) fn notify(&self, event: DeviceEvent) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_notify(self.as_raw(), event.0) })
    }

    /// Refuses a request or an answer.
    pub(crate) fn reject(&self, data: Option<&[u8]>, reason: RejectReason) -> Result {
        let (data, len) = raw_data(data)?;
        let reason = reason.0.try_into().map_err(|_| EINVAL)?;
        // SAFETY: The identifier is valid, and so are the data.
        to_result(unsafe { bindings::rdma_reject(self.as_raw(), data, len, reason) })
    }

    /// Ends a connection.
    pub(crate) fn disconnect(&self) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_disconnect(self.as_raw()) })
    }

    /// Joins a group. The events that tell of it have `group`.
    pub(crate) fn join_multicast(&self, mut address: Address, state: u8, group: usize) -> Result {
        let context = ptr::without_provenance_mut(group);
        // SAFETY: The identifier is valid, and the address is copied; nobody follows the context.
        to_result(unsafe {
            bindings::rdma_join_multicast(self.as_raw(), address.as_mut_raw(), state, context)
        })
    }

    /// Leaves a group, if it is in it.
    pub(crate) fn leave_multicast(&self, mut address: Address) {
        // SAFETY: The identifier is valid, and so is the address.
        unsafe { bindings::rdma_leave_multicast(self.as_raw(), address.as_mut_raw()) };
    }

    pub(crate) fn restrict_node_type(&self, kind: NodeType) -> Result {
        let kind = kind.0.try_into().map_err(|_| EINVAL)?;
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_restrict_node_type(self.as_raw(), kind) })
    }

    pub(crate) fn set_service_type(&self, tos: i32) {
        // SAFETY: The identifier is valid.
        unsafe { bindings::rdma_set_service_type(self.as_raw(), tos) };
    }

    pub(crate) fn set_reuseaddr(&self, reuse: bool) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_set_reuseaddr(self.as_raw(), reuse.into()) })
    }

    pub(crate) fn set_afonly(&self, afonly: bool) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_set_afonly(self.as_raw(), afonly.into()) })
    }

    pub(crate) fn set_ack_timeout(&self, timeout: u8) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_set_ack_timeout(self.as_raw(), timeout) })
    }

    pub(crate) fn set_min_rnr_timer(&self, timer: u8) -> Result {
        // SAFETY: The identifier is valid.
        to_result(unsafe { bindings::rdma_set_min_rnr_timer(self.as_raw(), timer) })
    }

    /// The service ID that goes with an address.
    pub(crate) fn service_id(&self, mut address: Address) -> u64 {
        // SAFETY: The identifier is valid, and so is the address.
        let service = unsafe { bindings::rdma_get_service_id(self.as_raw(), address.as_mut_raw()) };
        u64::from_be(service)
    }

    /// Reads the GIDs of both ends: zeros where there is no device.
    pub(crate) fn read_gids(&self, own: Option<&mut Gid>, far: Option<&mut Gid>) {
        let (own, far) = (raw_or_null(own), raw_or_null(far));
        // SAFETY: The identifier is valid, and the GIDs, whose type is one of 16 bytes, are valid for
        // writes or left out.
        unsafe { bindings::rdma_read_gids(self.as_raw(), own.cast(), far.cast()) };
    }

    /// The address of the peer as the identifier of the iWARP CM has it, if there is one.
    pub(crate) fn iw_peer(&self) -> Option<SocketAddr> {
        let at = |iw: *mut bindings::iw_cm_id| {
            // SAFETY: The identifier is one of the iWARP CM, and an address is as many bytes.
            let storage = unsafe { ptr::read_volatile((&raw const (*iw).remote_addr).cast()) };
            Address::parse(&storage)
        };
        self.iw_cm_id().and_then(at)
    }

    /// Returns true if there is an identifier of the iWARP CM behind it, which is at its device.
    pub(crate) fn has_iw_cm_id(&self) -> bool {
        // SAFETY: The identifier is one of the iWARP CM.
        let is_there = |iw: *mut bindings::iw_cm_id| unsafe { (*iw).device } == read!(self, device);
        self.iw_cm_id().is_some_and(is_there)
    }

    fn iw_cm_id(&self) -> Option<*mut bindings::iw_cm_id> {
        if !self.has_device() {
            return None;
        }
        // SAFETY: The identifier is valid and has a device.
        let iw = unsafe { bindings::rdma_iw_cm_id(self.as_raw()) };
        (!iw.is_null()).then_some(iw)
    }

    /// Returns C's text for the status of a rejection; none where there is no device.
    pub(crate) fn reject_message(&self, status: i32) -> Option<&'static CStr> {
        if !self.has_device() {
            return None;
        }
        // SAFETY: The identifier is valid and has a device, and the text is constant.
        Some(unsafe { CStr::from_char_ptr(bindings::rdma_reject_msg(self.as_raw(), status)) })
    }

    /// Returns the data of the other end's consumer when it rejected, if it was the consumer, and
    /// their reported length. None where there is no device.
    pub(crate) fn consumer_reject_data<'a>(
        &self,
        event: &'a Event,
    ) -> Option<(Option<&'a [u8]>, u8)> {
        if !self.has_device() {
            return None;
        }
        let mut raw = event.to_raw();
        // Not what is to be there.
        let mut len = 77;
        // SAFETY: The identifier is valid and has a device, and the event has its data.
        let data = unsafe {
            bindings::rdma_consumer_reject_data(self.as_raw(), &raw mut raw, &raw mut len)
        };
        let said = event.private_data();
        let is_said = !data.is_null() && data.addr() == said.as_ptr().addr();
        Some((is_said.then_some(said), len))
    }

    /// Returns the attributes that take a queue pair to a state. `ENODEV` where there is no device.
    pub(crate) fn init_qp_attr(&self, state: QpState) -> Result<QpAttr> {
        if !self.has_device() {
            return Err(ENODEV);
        }
        QpAttr::ask(state, |attr, mask| {
            // SAFETY: The identifier is valid and has a device.
            unsafe { bindings::rdma_init_qp_attr(self.as_raw(), attr, mask) }
        })
    }

    /// Gives it a queue pair, which the RDMA CM takes through its states. There can be one at a time.
    pub(crate) fn create_qp(
        &self,
        pd: &Arc<ProtectionDomain>,
        cq: &Arc<CompletionQueue>,
        init: &QpInit,
    ) -> Result {
        let mut slot = self.owner().qp().lock();
        if slot.is_some() {
            return Err(EBUSY);
        }
        let mut attr = init.to_raw(cq);
        // SAFETY: The identifier, the domain and the queues are valid.
        to_result(unsafe { bindings::rdma_create_qp(self.as_raw(), pd.as_raw(), &raw mut attr) })?;
        let qp = read!(self, qp);
        // SAFETY: The identifier has a queue pair now, of that domain and those queues, which the
        // owner destroys; nobody else does, or changes the pointer, without that lock.
        *slot = unsafe { QueuePair::from_raw(qp, pd.clone(), cq.clone()) };
        Ok(())
    }

    /// Destroys the queue pair, if there is one.
    pub(crate) fn destroy_qp(&self) {
        let mut slot = self.owner().qp().lock();
        if let Some(qp) = slot.take() {
            qp.forget();
            // SAFETY: The identifier is valid and has a queue pair, which nobody uses: that needs
            // the lock.
            unsafe { bindings::rdma_destroy_qp(self.as_raw()) };
        }
    }

    /// Does something with the queue pair, if there is one.
    pub(crate) fn with_qp<R>(&self, f: impl FnOnce(&QueuePair) -> R) -> Option<R> {
        self.owner().qp().lock().as_ref().map(f)
    }

    /// Waits for a callback that runs, and lets none run until the lock is dropped.
    pub(crate) fn lock_handler(&self) -> HandlerLock<'_, H> {
        // SAFETY: The identifier is valid.
        unsafe { bindings::rdma_lock_handler(self.as_raw()) };
        HandlerLock(LockedId(self, NotThreadSafe::default()))
    }
}

/// An identifier the lock of whose handler is held by this task: by a [`HandlerLock`], or because it
/// is in a callback.
pub(crate) struct LockedId<'a, H: Handler>(&'a CmId<H>, NotThreadSafe);

impl<'a, H: Handler> LockedId<'a, H> {
    /// Wraps an identifier whose handler is locked.
    ///
    /// # Safety
    ///
    /// The lock must be held as long as this lives.
    pub(super) unsafe fn new(id: &'a CmId<H>) -> Self {
        Self(id, NotThreadSafe::default())
    }

    /// Sends a request.
    pub(crate) fn connect_locked(&self, param: &ConnParam<'_>) -> Result {
        let mut raw = param.to_raw()?;
        // SAFETY: The identifier is valid and its lock is held; the parameters and data are valid.
        to_result(unsafe { bindings::rdma_connect_locked(self.as_raw(), &raw mut raw) })
    }

    /// Accepts a request, with parameters, or an answer, without.
    pub(crate) fn accept(&self, param: Option<&ConnParam<'_>>) -> Result {
        let mut raw = param.map(|param| param.to_raw()).transpose()?;
        // SAFETY: The identifier is valid and its lock is held; the parameters and data are valid.
        to_result(unsafe { bindings::rdma_accept(self.as_raw(), raw_or_null(raw.as_mut())) })
    }

    /// Accepts a request like [`Self::accept`], with options.
    pub(crate) fn accept_ece(&self, param: &ConnParam<'_>, ece: Ece) -> Result {
        let mut raw = param.to_raw()?;
        let mut ece = ece.to_raw();
        // SAFETY: The identifier is valid and its lock is held; the parameters and data are valid.
        to_result(unsafe { bindings::rdma_accept_ece(self.as_raw(), &raw mut raw, &raw mut ece) })
    }
}

impl<H: Handler> Deref for LockedId<'_, H> {
    type Target = CmId<H>;

    fn deref(&self) -> &CmId<H> {
        self.0
    }
}

/// The lock of a handler.
pub(crate) struct HandlerLock<'a, H: Handler>(LockedId<'a, H>);

impl<'a, H: Handler> Deref for HandlerLock<'a, H> {
    type Target = LockedId<'a, H>;

    fn deref(&self) -> &LockedId<'a, H> {
        &self.0
    }
}

impl<H: Handler> Drop for HandlerLock<'_, H> {
    fn drop(&mut self) {
        // SAFETY: This task has the lock.
        unsafe { bindings::rdma_unlock_handler(self.as_raw()) };
    }
}
