// SPDX-License-Identifier: GPL-2.0

//! Queries to a subnet administrator for paths and services.
//!
//! # Lifetime of a query
//!
//! Pending queries are in a table, with a number as key that is not reused and is the only context
//! that the RDMA core gets. The one who removes a query from the table ends it: either the
//! callback, which then reports the answer, or the drop of the [`SaQuery`], after which a callback
//! finds nothing.
//!
//! The drop cancels the query while it holds the lock of the table. A callback needs that lock
//! first, and the RDMA core frees a query only after its callback has returned. So a query that is
//! in the table can be cancelled. Without that order, the RDMA core might access a message that is
//! being freed.
//!
//! Lock order: the lock of the table is below all other locks of the module. While it is held, the
//! RDMA core takes its own spin locks; nothing is allocated, called back or dropped.

use super::{check_port, record, Client, PathQuery, SaClient, ServiceQuery, ServiceRecord};
use crate::{
    bindings,
    ib::device::DeviceRef,
    kext::{
        error::{from_code, ResultExt},
        reclaim::NoIo,
    },
};
use cmproto::{
    sa::{ChosenPath, PathResponse},
    ucma::path::PathRecord,
};
use core::{ptr, slice};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    error::to_result,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Arc,
};

/// The timeout of a query for services, in milliseconds.
const SERVICE_TIMEOUT_MS: u32 = 2_000;

/// The maximum number of services that are taken from an answer of any length; they take 176 kB.
const MAX_SERVICES: usize = 1_024;

/// A receiver of the result of a path query.
pub(crate) trait PathDone: Send + Sync + 'static {
    /// Handles the answer of the administrator, or of a service on this host in its place.
    ///
    /// The error can be, among others, `ETIMEDOUT`, [`EINVAL`] (there is no such path), [`EIO`]
    /// (the message could not be sent) and [`EINTR`] (the device is being removed).
    ///
    /// Called at most once, in process context as [described](super) for all callbacks; may sleep,
    /// and may drop the [`SaQuery`].
    fn path_done(self: Arc<Self>, result: Result<ChosenPath>);
}

/// A receiver of the result of a service query.
pub(crate) trait ServiceDone: Send + Sync + 'static {
    /// Handles the answer of the administrator: 1 to 1,024 records, or an error.
    ///
    /// The error can be, among others, `ETIMEDOUT`, [`EINVAL`] (there is no such service),
    /// `ENODATA` (an empty answer), [`ENOMEM`], [`EIO`] and [`EINTR`].
    ///
    /// Called under the conditions of [`PathDone::path_done`].
    fn service_done(self: Arc<Self>, result: Result<KVec<ServiceRecord>>);
}

/// The receiver of an answer.
enum Done {
    Path(Arc<dyn PathDone>),
    Service(Arc<dyn ServiceDone>),
}

/// A pending query.
struct Pending {
    done: Done,
    // Keeps the device, to which the SA client data of the RDMA core belong.
    _device: DeviceRef,
}

/// The queries under way.
pub(super) struct Queries {
    pending: RBTree<usize, Pending>,
    next: usize,
}

impl Queries {
    pub(super) fn new() -> Self {
        Self {
            pending: RBTree::new(),
            next: 1,
        }
    }
}

impl Client {
    /// Adds a query to the table and returns its number. May sleep.
    fn enter(&self, pending: Pending) -> Result<usize> {
        let reservation = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut queries = self.queries.lock();
        let number = queries.next;
        // The counter does not overflow in the lifetime of a machine.
        queries.next = number.wrapping_add(1);
        let before = queries
            .pending
            .insert(reservation.into_node(number, pending));
        drop(queries);
        drop(before);
        Ok(number)
    }

    /// Removes a query from the table, unless it was removed before.
    ///
    /// The lock is released on return, so that the caller can drop the result.
    fn take(&self, number: usize) -> Option<Pending> {
        self.queries.lock().pending.remove(&number)
    }
}

/// Removes the query of a callback from the table, and drops its device reference.
///
/// # Safety
///
/// To be called in a callback only, with the callback's context.
unsafe fn answered(context: *mut c_void) -> Option<Done> {
    // SAFETY: This is a callback.
    let client = unsafe { super::client() }?;
    Some(client.take(context.addr())?.done)
}

/// Handles the result of a path query; called by the RDMA core.
///
/// # Safety
///
/// Only the RDMA core may call this, for a query of [`SaClient::query_path`]. If `status` is 0,
/// `resp` must point to `num` records, in which the fields of their record type are initialised.
unsafe extern "C" fn on_path(
    status: c_int,
    resp: *mut bindings::sa_path_rec,
    num: c_uint,
    context: *mut c_void,
) {
    let _scope = NoIo::begin();
    // SAFETY: This is a callback, with its context.
    let Some(Done::Path(done)) = (unsafe { answered(context) }) else {
        return;
    };
    let result = if status != 0 {
        Err(from_code(status))
    } else if resp.is_null() {
        Err(EINVAL)
    } else {
        // SAFETY: By the safety requirements. The records do not change during the call.
        let records = unsafe { slice::from_raw_parts(resp, usize::try_from(num).unwrap_or(0)) };
        let answers = records.iter().map(|raw| PathResponse {
            record: record::path_from_raw(raw),
            flags: raw.flags,
        });
        PathResponse::choose(answers).kernel()
    };
    done.path_done(result);
}

/// Handles the result of a service query; called by the RDMA core.
///
/// # Safety
///
/// Only the RDMA core may call this, for a query of [`SaClient::query_service`]. If `status` is 0,
/// `resp` must point to `num` records, initialised except for reserved fields.
unsafe extern "C" fn on_service(
    status: c_int,
    resp: *mut bindings::sa_service_rec,
    num: c_uint,
    context: *mut c_void,
) {
    let _scope = NoIo::begin();
    // SAFETY: This is a callback, with its context.
    let Some(Done::Service(done)) = (unsafe { answered(context) }) else {
        return;
    };
    let result = if status != 0 {
        Err(from_code(status))
    } else if resp.is_null() || num == 0 {
        Err(ENOENT)
    } else {
        // SAFETY: By the safety requirements.
        unsafe { services(resp, usize::try_from(num).unwrap_or(0)) }
    };
    done.service_done(result);
}

/// Copies at most [`MAX_SERVICES`] service records.
///
/// # Safety
///
/// `records` must point to `num` records, initialised except for reserved fields.
unsafe fn services(
    records: *const bindings::sa_service_rec,
    num: usize,
) -> Result<KVec<ServiceRecord>> {
    let num = num.min(MAX_SERVICES);
    let mut services = KVec::with_capacity(num, GFP_KERNEL)?;
    for index in 0..num {
        // SAFETY: By the safety requirements; `index` is less than `num`.
        let service = unsafe { record::service_from_raw(records.add(index)) };
        // The vector has room. Unlike `push`, this has no panic that the compiler fails to remove.
        services.push_within_capacity(service).map_err(|_| ENOMEM)?;
    }
    Ok(services)
}

/// A query that is pending or finished; dropping it cancels the query.
///
/// The drop never waits. After it, [`PathDone::path_done`] or [`ServiceDone::service_done`] is not
/// called any more. A call may be running, so the query may be dropped in that call, and with locks
/// held that the call takes.
///
/// # Invariants
///
/// While `number` is in the table of `client`, `raw` and `id` are those of a query of the RDMA core
/// that is not freed.
#[must_use = "dropping it cancels the query"]
pub(crate) struct SaQuery {
    client: Arc<Client>,
    number: usize,
    id: c_int,
    raw: *mut bindings::ib_sa_query,
}

// SAFETY: Any task may cancel a query.
unsafe impl Send for SaQuery {}

// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for SaQuery {}

impl Drop for SaQuery {
    fn drop(&mut self) {
        let mut queries = self.client.queries.lock();
        let pending = queries.pending.remove(&self.number);
        if pending.is_some() {
            // SAFETY: By the type invariant the query exists up to now. It exists until the call
            // returns, because a callback takes the lock before the RDMA core frees the query.
            unsafe { bindings::ib_sa_cancel_query(self.id, self.raw) };
        }
        drop(queries);
        drop(pending);
    }
}

/// The arguments that all queries of the RDMA core have: the client, the context of the callback,
/// and the place for the pointer to the query.
struct Call {
    client: *mut bindings::ib_sa_client,
    context: *mut c_void,
    query: *mut *mut bindings::ib_sa_query,
}

impl SaClient {
    /// Asks the administrator of a port, or a service on this host in its place, for a path. May
    /// sleep.
    ///
    /// The administrator is asked up to eleven times, a tenth of `timeout_ms` milliseconds apart.
    ///
    /// Fails, without calling `context`, with `EOPNOTSUPP` if the port has no administrator,
    /// [`EAGAIN`] if it is not known at the moment, [`ENODEV`] if the module is being unloaded, and
    /// [`ENOMEM`].
    pub(crate) fn query_path(
        &self,
        device: &DeviceRef,
        port: u32,
        query: &PathQuery,
        timeout_ms: u32,
        context: Arc<dyn PathDone>,
    ) -> Result<SaQuery> {
        // The RDMA core asks for a record of Omni-Path where the administrator has these.
        let asked = match device.has_opa_lids(port) {
            true => PathRecord::of_opa(query.record(), 0, 0),
            false => query.record().into(),
        };
        let mut rec = record::path_to_raw(&asked);
        self.start(device, port, Done::Path(context), |call| {
            // SAFETY: The device is registered and its port has an administrator; the client is
            // registered, and the record is used during the call only. The callback accepts the
            // context until it has returned.
            unsafe {
                bindings::ib_sa_path_rec_get(
                    call.client,
                    device.as_raw(),
                    port,
                    &raw mut rec,
                    query.mask().to_be(),
                    c_ulong::try_from(timeout_ms).unwrap_or(c_ulong::MAX),
                    bindings::GFP_KERNEL_ACCOUNT,
                    Some(on_path),
                    call.context,
                    call.query,
                )
            }
        })
    }

    /// Asks the administrator of a port for services, for about two seconds. May sleep.
    ///
    /// Fails like [`SaClient::query_path`].
    pub(crate) fn query_service(
        &self,
        device: &DeviceRef,
        port: u32,
        query: &ServiceQuery,
        context: Arc<dyn ServiceDone>,
    ) -> Result<SaQuery> {
        let mut rec = record::service_to_raw(query);
        self.start(device, port, Done::Service(context), |call| {
            // SAFETY: The device is registered and its port has an administrator; the client is
            // registered, and the record is used during the call only. The callback accepts the
            // context until it has returned.
            unsafe {
                bindings::ib_sa_service_rec_get(
                    call.client,
                    device.as_raw(),
                    port,
                    &raw mut rec,
                    query.mask().to_be(),
                    c_ulong::try_from(SERVICE_TIMEOUT_MS).unwrap_or(c_ulong::MAX),
                    bindings::GFP_KERNEL_ACCOUNT,
                    Some(on_service),
                    call.context,
                    call.query,
                )
            }
        })
    }

    /// Starts a query by calling `get`, which returns the id of the query or an error.
    fn start(
        &self,
        device: &DeviceRef,
        port: u32,
        done: Done,
        get: impl FnOnce(Call) -> c_int,
    ) -> Result<SaQuery> {
        check_port(device, port)?;
        let _use = self.users.try_get().ok_or(ENODEV)?;
        let number = self.client.enter(Pending {
            done,
            _device: device.clone(),
        })?;
        let mut raw = ptr::null_mut();
        let id = get(Call {
            client: self.client.raw.get(),
            context: ptr::without_provenance_mut(number),
            query: &raw mut raw,
        });
        if let Err(error) = to_result(id) {
            // There was no callback, and there will be none.
            drop(self.client.take(number));
            return Err(error);
        }
        // INVARIANT: The query was made above. A callback has removed `number` from the table, or
        // removes it before the query is freed.
        Ok(SaQuery {
            client: self.client.clone(),
            number,
            id,
            raw,
        })
    }
}
