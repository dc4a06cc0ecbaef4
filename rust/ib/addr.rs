// SPDX-License-Identifier: GPL-2.0

//! Address resolution: from IP addresses to link-layer addresses.
//!
//! C header: [`include/rdma/ib_addr.h`](srctree/include/rdma/ib_addr.h)
//!
//! # Lifetime of a query
//!
//! The RDMA core keeps a pointer to the `struct rdma_dev_addr` of a query from its start until the
//! callback has returned, and a query is cancelled by that pointer. If the memory was reused for
//! another query before the RDMA core has forgotten the first one, the second one could not be
//! cancelled. So the memory is freed only after `rdma_addr_cancel()`, and outside of the callback:
//! by the drop of the [`Query`], or, if that is dropped while the callback runs, by a work item.

use super::{
    asked_neighbour::AskedNeighbour,
    dev_addr::DevAddr,
    gid::{ip_of, link_local_mac, GidAttr},
};
use crate::{
    bindings,
    kext::{
        delay,
        net::Net,
        reclaim::NoIo,
        use_count::{OwnedUse, UseCount},
        workqueue::OwnedQueue,
    },
};
use atomics::QueryState;
use cmproto::addr::{Gid, SockAddr, STORAGE_LEN};
use core::ptr;
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    error::to_result,
    impl_has_work, new_spinlock, new_work,
    prelude::*,
    sync::{aref::ARef, Arc, SpinLock},
    types::Opaque,
    workqueue::{Work, WorkItem},
};

/// A socket address in the layout of C.
#[repr(C, align(8))]
pub(super) struct Storage([u8; SockAddr::MAX_LEN]);

impl Storage {
    pub(super) fn new(addr: &SockAddr) -> Self {
        Self(addr.to_bytes())
    }

    pub(super) fn as_ptr(&self) -> *const bindings::sockaddr {
        self.0.as_ptr().cast()
    }
}

/// A receiver of the result of a query.
pub(crate) trait AddrDone: Send + Sync + 'static {
    /// Handles the result: the source IP address and the properties of the link.
    ///
    /// If `status` is an error, for instance `ETIMEDOUT`, the other arguments are meaningless.
    /// Called at most once, in process context on a work queue of the RDMA core; may sleep, and may
    /// drop the [`Query`].
    fn done(self: Arc<Self>, status: Result, src: SockAddr, addr: &DevAddr);
}

/// The objects that a query gives back when it ends.
struct Held {
    context: Option<Arc<dyn AddrDone>>,
    /// The neighbour of a query by GID. It is forgotten after the query has ended.
    asked: Option<AskedNeighbour>,
}

/// The part of a query that the RDMA core refers to.
///
/// # Invariants
///
/// - From the start of the query on, the RDMA core owns a reference to the object. The callback
///   takes it over when it begins by `state`. The drop of the [`Query`] takes it over when it
///   cancels the query by `state`, but only after `rdma_addr_cancel()`.
/// - A query that was started is freed only after `rdma_addr_cancel()` was called for `addr`.
#[pin_data]
struct Request {
    state: QueryState,
    addr: Opaque<bindings::rdma_dev_addr>,
    #[pin]
    held: SpinLock<Held>,
    #[pin]
    work: Work<Self>,
    queue: Arc<OwnedQueue>,
    // The objects that `addr` points to.
    _net: Option<ARef<Net>>,
    _sgid: Option<GidAttr>,
    // Dropped last: the resolver waits for this guard, and then holds the last reference to the
    // queue, which must not be dropped by work on the queue itself.
    _use: OwnedUse,
}

impl_has_work! {
    impl HasWork<Self> for Request { self.work }
}

// SAFETY: `addr` is used by the RDMA core while the query is there, and by the callback after it;
// all other fields may be used by any task.
unsafe impl Send for Request {}

// SAFETY: The fields that change are atomic or have a lock; `addr` is used as said above.
unsafe impl Sync for Request {}

impl Request {
    /// Cancels the query in the RDMA core, and waits for the callback if it is running.
    fn cancel_and_wait(&self) {
        // SAFETY: The pointer is only compared with the pointers of queries.
        unsafe { bindings::rdma_addr_cancel(self.addr.get()) };
    }

    /// Handles the result of the query.
    ///
    /// # Safety
    ///
    /// Only the RDMA core may call this, with the request as context and a `struct
    /// sockaddr_storage` as source address.
    unsafe extern "C" fn callback(
        status: c_int,
        src: *mut bindings::sockaddr,
        _addr: *mut bindings::rdma_dev_addr,
        context: *mut c_void,
    ) {
        let this = context.cast_const().cast::<Self>();
        // SAFETY: The RDMA core's reference keeps the object. A task that cancels the query waits
        // for this callback before it takes over the reference.
        let state = unsafe { &(*this).state };
        delay::at("query-answered");
        if !state.begin() {
            return;
        }
        let _scope = NoIo::begin();
        // SAFETY: By the type invariant the reference is ours now.
        let this = unsafe { Arc::from_raw(this) };
        let context = this.held.lock().context.take();
        delay::point();
        delay::at("query-begun");
        if let Some(context) = context {
            // SAFETY: The RDMA core passes a `struct sockaddr_storage`.
            let src = unsafe { &*src.cast::<[u8; STORAGE_LEN]>() };
            let src = SockAddr::from_bytes(src).unwrap_or_default();
            // SAFETY: The RDMA core has finished with the memory.
            let addr = unsafe { DevAddr::read(this.addr.get()) };
            let (status, addr) = match (to_result(status), addr) {
                (Ok(()), Ok(addr)) => (Ok(()), addr),
                (Err(error), _) | (_, Err(error)) => (Err(error), DevAddr::NONE),
            };
            context.done(status, src, &addr);
        }
        delay::point();
        if this.state.finish() {
            // The `Query` still exists and frees the memory, after it has waited for this callback.
            drop(this);
            delay::at("query-forgotten");
        } else {
            let queue = this.queue.clone();
            // The work was not enqueued before, so this does not fail. The work waits until this
            // callback has returned, so that `queue` is not the last reference.
            let _ = queue.enqueue(this);
        }
    }
}

impl WorkItem for Request {
    type Pointer = Arc<Self>;

    /// Frees a query whose [`Query`] was dropped during the callback.
    fn run(this: Arc<Self>) {
        this.cancel_and_wait();
    }
}

/// A query that is in progress or finished; dropping it cancels the query.
///
/// After the drop, [`AddrDone::done`] is not called any more. If it is running already, the drop
/// does not wait for it; so the query may be dropped in that call. It is dropped without the locks
/// that the call takes: otherwise the drop waits for the work of the RDMA core, although that work
/// takes no lock if the query is cancelled, and lockdep cannot know this.
pub(crate) struct Query {
    request: Arc<Request>,
}

impl Query {
    /// Cancels the query, which was just started, if the neighbour is `known`.
    ///
    /// A neighbour that answers at once does so before the RDMA core has listed the query. The
    /// RDMA core then waits for the timeout.
    fn unless_known(self, known: Option<(SockAddr, DevAddr)>) -> Started {
        match known {
            Some((src, addr)) if self.request.state.cancel() => Started::Known {
                src,
                addr,
                cancelled: Some(self),
            },
            _ => Started::Pending(self),
        }
    }
}

impl Drop for Query {
    fn drop(&mut self) {
        // The same place as behind the callback, which may begin and finish meanwhile.
        delay::at("query-forgotten");
        let request = &self.request;
        if request.state.cancel() {
            request.cancel_and_wait();
            // SAFETY: By the invariant of `Request` the reference of the RDMA core is ours now.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(request)) });
            let context = request.held.lock().context.take();
            drop(context);
        } else if !request.state.abandon() {
            // The query is finished. If the callback is about to return, this waits for it.
            request.cancel_and_wait();
        }
        let asked = request.held.lock().asked.take();
        drop(asked);
    }
}

/// The progress of a resolution that has been started.
pub(crate) enum Started {
    /// The neighbour is known. [`AddrDone::done`] is not called.
    Known {
        /// The source IP address.
        src: SockAddr,
        /// The properties of the link.
        addr: DevAddr,
        /// The query, if one was started before the neighbour became known. It is to be dropped
        /// without locks.
        cancelled: Option<Query>,
    },
    /// The neighbour is asked for its link-layer address.
    Pending(Query),
}

/// A service that starts address queries and waits for their end when it is closed.
pub(crate) struct Resolver {
    users: Arc<UseCount>,
    queue: Arc<OwnedQueue>,
}

/// The parameters of a query.
struct QueryParams<'a> {
    src: &'a SockAddr,
    dst: &'a SockAddr,
    net: Option<ARef<Net>>,
    bound_dev_if: i32,
    sgid: Option<GidAttr>,
}

impl<'a> QueryParams<'a> {
    /// Creates a query for the route to `dst` in `net`.
    ///
    /// The source address is `src` if it is given, and the interface is `bound_dev_if` if that is
    /// not 0.
    fn of_ip(src: &'a SockAddr, dst: &'a SockAddr, net: ARef<Net>, bound_dev_if: i32) -> Self {
        QueryParams {
            src,
            dst,
            net: Some(net),
            bound_dev_if,
            sgid: None,
        }
    }

    /// Checks that the RDMA core supports the address families.
    fn check(&self) -> Result {
        match (self.src, self.dst) {
            (SockAddr::Unspec | SockAddr::V4 { .. }, SockAddr::V4 { .. })
            | (SockAddr::Unspec | SockAddr::V6 { .. }, SockAddr::V6 { .. }) => Ok(()),
            _ => Err(EINVAL),
        }
    }

    fn to_dev_addr(&self) -> bindings::rdma_dev_addr {
        bindings::rdma_dev_addr {
            bound_dev_if: self.bound_dev_if,
            // A query by GID is looked up in the namespace of the GID's network device, but the
            // field must not be null.
            net: self.net.as_deref().unwrap_or(Net::init()).as_raw(),
            sgid_attr: self.sgid.as_ref().map_or(ptr::null(), GidAttr::as_raw),
            ..pin_init::zeroed()
        }
    }

    /// Returns the answer if the routing and neighbour tables have it already.
    fn known(&self) -> Option<(SockAddr, DevAddr)> {
        self.look_up(None)
    }

    /// Returns the answer if the routing and neighbour tables have it already, and otherwise sets
    /// `asked` to the neighbour, if it has an entry.
    fn known_or_asked(&self, asked: &mut Option<AskedNeighbour>) -> Option<(SockAddr, DevAddr)> {
        let mut neighbour = ptr::null_mut();
        let known = self.look_up(Some(&mut neighbour));
        // SAFETY: The pointer is null or that of an entry, with a reference for us.
        *asked = unsafe { AskedNeighbour::from_raw(neighbour) };
        known
    }

    /// Looks up the answer. `asked` is set to a reference to the entry of a neighbour that has not
    /// answered, if there is one.
    fn look_up(&self, asked: Option<&mut *mut bindings::neighbour>) -> Option<(SockAddr, DevAddr)> {
        let mut addr = self.to_dev_addr();
        let dst = Storage::new(self.dst);
        let wildcard = self.dst.wildcard();
        let mut src = Storage::new(if self.src.is_unspec() {
            &wildcard
        } else {
            self.src
        });
        let (from, to) = (src.0.as_mut_ptr(), dst.0.as_ptr());
        // SAFETY: The addresses are of the same family and as long as any address, and `addr` names
        // a namespace that `self` keeps. All are used during the call only.
        let is_known = unsafe {
            bindings::rust_rdma_known_neigh(
                from.cast(),
                to.cast(),
                &raw mut addr,
                asked.map_or(ptr::null_mut(), ptr::from_mut),
            )
        };
        if !is_known {
            return None;
        }
        // SAFETY: The struct is ours.
        let addr = unsafe { DevAddr::read(&raw const addr) }.ok()?;
        Some((SockAddr::from_bytes(&src.0).unwrap_or_default(), addr))
    }

    /// Starts the query in the RDMA core.
    ///
    /// # Safety
    ///
    /// `addr` must have been made by [`QueryParams::to_dev_addr`]. It and the objects that it
    /// points to must stay valid until the callback has returned or the query is cancelled. The
    /// callback must accept `context` until then.
    unsafe fn start(
        &self,
        addr: *mut bindings::rdma_dev_addr,
        timeout_ms: u32,
        callback: Callback,
        context: *const c_void,
    ) -> Result {
        let mut src = Storage::new(self.src);
        let dst = Storage::new(self.dst);
        let src = if self.src.is_unspec() {
            ptr::null_mut()
        } else {
            src.0.as_mut_ptr().cast()
        };
        // SAFETY: The addresses are copied; the caller guarantees the rest.
        to_result(unsafe {
            bindings::rdma_resolve_ip(
                src,
                dst.0.as_ptr().cast(),
                addr,
                c_ulong::try_from(timeout_ms).unwrap_or(c_ulong::MAX),
                Some(callback),
                self.sgid.is_some(),
                context.cast_mut(),
            )
        })
    }
}

type Callback =
    unsafe extern "C" fn(c_int, *mut bindings::sockaddr, *mut bindings::rdma_dev_addr, *mut c_void);

impl Resolver {
    /// Creates a resolver. May sleep.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            users: Arc::pin_init(UseCount::new(), GFP_KERNEL)?,
            queue: Arc::new(OwnedQueue::new(c"rust_rdma_addr")?, GFP_KERNEL)?,
        })
    }

    /// Starts to resolve the link by which `dst` is reached from `net`.
    ///
    /// The source address is `src` or, if that is [`SockAddr::Unspec`], the address that the route
    /// prefers. If `bound_dev_if` is not 0, only the interface with that index is used.
    ///
    /// To be called if [`lookup_ip`] has returned `None`. The result is passed to `context` unless
    /// the neighbour has become known meanwhile. May sleep.
    ///
    /// Fails at once if there is no route, for instance with `ENETUNREACH`; or with [`EINVAL`] if
    /// the addresses are not both IPv4 or both IPv6.
    pub(crate) fn resolve_ip(
        &self,
        net: &Net,
        src: &SockAddr,
        dst: &SockAddr,
        bound_dev_if: i32,
        timeout_ms: u32,
        context: Arc<dyn AddrDone>,
    ) -> Result<Started> {
        let params = QueryParams::of_ip(src, dst, net.into(), bound_dev_if);
        let query = self.start_query(&params, timeout_ms, context)?;
        Ok(query.unless_known(params.known()))
    }

    /// Starts to resolve the link by which `dgid` is reached from `sgid`, both GIDs of RoCE.
    ///
    /// To be called if [`lookup_gid`] has returned `None`. Otherwise like [`Resolver::resolve_ip`],
    /// except that a neighbour that does not answer has no entry when the query has been dropped.
    pub(crate) fn resolve_gid(
        &self,
        sgid: &GidAttr,
        dgid: &Gid,
        timeout_ms: u32,
        context: Arc<dyn AddrDone>,
    ) -> Result<Started> {
        let src = ip_of(&sgid.gid());
        let params = QueryParams {
            src: &src,
            dst: &ip_of(dgid),
            net: None,
            bound_dev_if: 0,
            sgid: Some(sgid.clone()),
        };
        let query = self.start_query(&params, timeout_ms, context)?;
        let mut asked = None;
        let known = look_up_gid(sgid, dgid, |params| params.known_or_asked(&mut asked));
        let known = known.ok().flatten();
        query.request.held.lock().asked = asked;
        Ok(query.unless_known(known.map(|addr| (src, addr))))
    }

    /// Stops starting queries, and waits until all queries are gone; the caller cancels them first.
    ///
    /// Must be called before the module is unloaded, and not in [`AddrDone::done`]. Dropping the
    /// resolver closes it too.
    pub(crate) fn close(&self) {
        self.users.close_and_wait();
    }

    /// Starts a query with these parameters.
    fn start_query(
        &self,
        params: &QueryParams<'_>,
        timeout_ms: u32,
        context: Arc<dyn AddrDone>,
    ) -> Result<Query> {
        params.check()?;
        let in_use = UseCount::try_get_owned(&self.users).ok_or(ENODEV)?;
        let addr = params.to_dev_addr();
        let net = params.net.clone();
        let sgid = params.sgid.clone();
        let queue = self.queue.clone();
        let request = Arc::pin_init(
            pin_init!(Request {
                state: QueryState::new(),
                addr: Opaque::new(addr),
                held <- new_spinlock!(
                    Held {
                        context: Some(context),
                        asked: None,
                    },
                    "rdma_cm_addr_context"
                ),
                work <- new_work!("rdma_cm_addr"),
                queue,
                _net: net,
                _sgid: sgid,
                _use: in_use,
            }),
            GFP_KERNEL_ACCOUNT,
        )?;
        let theirs = Arc::into_raw(request.clone());
        // INVARIANT: `theirs` is the reference that the RDMA core owns.
        // SAFETY: That reference keeps all that the RDMA core uses, and the callback expects it.
        let result = unsafe {
            params.start(
                request.addr.get(),
                timeout_ms,
                Request::callback,
                theirs.cast(),
            )
        };
        if let Err(e) = result {
            // SAFETY: The query was not started, so the reference is still ours.
            drop(unsafe { Arc::from_raw(theirs) });
            return Err(e);
        }
        delay::point();
        Ok(Query { request })
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the link by which `dgid` is reached from `sgid`, both GIDs of RoCE, if the neighbour is
/// known.
///
/// Does not wait for the network, and makes no entry in the neighbour table. The result also is
/// `None` if there is no route: then [`Resolver::resolve_gid`] resolves the neighbour or returns
/// the error.
///
/// Fails with [`EINVAL`] if the addresses are not both IPv4 or both IPv6, and [`ENODEV`] or
/// [`EINVAL`] if the interface is gone.
pub(crate) fn lookup_gid(sgid: &GidAttr, dgid: &Gid) -> Result<Option<DevAddr>> {
    look_up_gid(sgid, dgid, |params| params.known())
}

/// Returns the result of `look_up` for a query by IP, which is like the one by GID.
fn look_up_gid(
    sgid: &GidAttr,
    dgid: &Gid,
    look_up: impl FnOnce(&QueryParams<'_>) -> Option<(SockAddr, DevAddr)>,
) -> Result<Option<DevAddr>> {
    if let Some(mac) = link_local_mac(sgid, dgid) {
        return Ok(Some(DevAddr {
            hop_limit: u8::MAX,
            ..DevAddr::to_mac(mac)
        }));
    }
    let (net, index) = sgid.with_ndev(|ndev| (ndev.net(), ndev.ifindex()))?;
    let (src, dst) = (ip_of(&sgid.gid()), ip_of(dgid));
    let params = QueryParams::of_ip(&src, &dst, net.ok_or(ENODEV)?, index);
    params.check()?;
    Ok(look_up(&params).map(|(_, addr)| DevAddr {
        bound_dev_if: 0,
        ..addr
    }))
}

/// Returns the source address and the link by which `dst` is reached, if the neighbour is known.
///
/// Arguments and results are those of [`Resolver::resolve_ip`]. Does not wait for the network. The
/// result also is `None` after any error: then [`Resolver::resolve_ip`] returns the error.
pub(crate) fn lookup_ip(
    net: &Net,
    src: &SockAddr,
    dst: &SockAddr,
    bound_dev_if: i32,
) -> Option<(SockAddr, DevAddr)> {
    let params = QueryParams::of_ip(src, dst, net.into(), bound_dev_if);
    params.check().ok()?;
    params.known()
}

/// Returns the link of a local IP address.
///
/// The interface is the one with the index `bound_dev_if` or, if that is 0, the one that has
/// `addr`. The fields that describe a peer or a route are zero. Does not wait for the network, but
/// may sleep.
///
/// Fails with `EADDRNOTAVAIL` if no interface has the address, [`ENODEV`] if there is no such
/// interface, and [`ENOMEM`].
pub(crate) fn translate_ip(net: &Net, addr: &SockAddr, bound_dev_if: i32) -> Result<DevAddr> {
    let params = QueryParams {
        src: &SockAddr::Unspec,
        dst: addr,
        net: Some(net.into()),
        bound_dev_if,
        sgid: None,
    };
    let mut dev_addr = params.to_dev_addr();
    let addr = Storage::new(addr);
    // SAFETY: Both are used during the call only.
    to_result(unsafe { bindings::rdma_translate_ip(addr.0.as_ptr().cast(), &raw mut dev_addr) })?;
    // SAFETY: The struct is ours.
    unsafe { DevAddr::read(&raw const dev_addr) }
}

/// Returns the path MTU of RoCE over a network device with an MTU of `mtu` bytes.
///
/// The result is an `enum ib_mtu`, from 1 for 256 bytes to 5 for 4096 bytes, or `None` if 256 bytes
/// do not fit.
pub(crate) fn roce_path_mtu(mtu: u32) -> Option<u8> {
    // SAFETY: The function only computes.
    let mtu = unsafe { bindings::rust_rdma_iboe_get_mtu(i32::try_from(mtu).unwrap_or(i32::MAX)) };
    u8::try_from(mtu).ok().filter(|mtu| *mtu != 0)
}
