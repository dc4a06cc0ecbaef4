// SPDX-License-Identifier: GPL-2.0

//! Questions to a subnet administrator for paths and services.
//!
//! # Life of a query
//!
//! What is under way stands in a table, under a number that is never used again and is all that the
//! RDMA core is given. Whoever takes it out of the table ends the query: the callback, which then
//! tells of the answer; or the drop of the [`SaQuery`], after which no callback finds anything.
//!
//! The drop cancels while it holds the lock of the table. A callback needs that lock first, and the
//! RDMA core frees a query only after a callback of it has returned. So a query that is in the table
//! is one that can be cancelled; without that order the RDMA core might look at a message that it is
//! freeing at this moment.
//!
//! Lock order: the lock of the table is below all others of the module. With it held, the RDMA core
//! takes spin locks of its own; nothing is allocated, called back or dropped.

use super::{check_port, record, Client, PathQuestion, SaClient, ServiceQuestion, ServiceRecord};
use crate::{
    bindings,
    ib::device::DeviceRef,
    kext::{
        error::{from_code, ResultExt},
        reclaim::NoIo,
    },
};
use cmproto::{sa::PathAnswer, ucma::path::PathRecord};
use core::{ptr, slice};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    error::to_result,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Arc,
};

/// How long an administrator may take to find services, in milliseconds.
const SERVICE_TIMEOUT_MS: u32 = 2_000;

/// How many services are taken of an answer, which can be of any length. It is 176 kB.
const MAX_SERVICES: usize = 1_024;

/// Who wants to know a path.
pub(crate) trait PathDone: Send + Sync + 'static {
    /// The administrator, or a service of this host in its place, has answered.
    ///
    /// The result can be, among others, `ETIMEDOUT`, [`EINVAL`] (there is no such path), [`EIO`] (the
    /// message could not be sent) and [`EINTR`] (the device goes away).
    ///
    /// Called at most once, in process context as [said](super) for all; may sleep, and may drop the
    /// [`SaQuery`].
    fn path_done(self: Arc<Self>, result: Result<PathRecord>);
}

/// Who wants to know services.
pub(crate) trait ServiceDone: Send + Sync + 'static {
    /// The administrator has answered. There is at least one record in a result that is no error, and
    /// no more than 1,024.
    ///
    /// The result can be, among others, `ETIMEDOUT`, [`EINVAL`] (there is no such service), `ENODATA`
    /// (an empty answer), [`ENOMEM`], [`EIO`] and [`EINTR`].
    ///
    /// Called as [`PathDone::path_done`].
    fn service_done(self: Arc<Self>, result: Result<KVec<ServiceRecord>>);
}

/// Who is told of an answer.
enum Done {
    Path(Arc<dyn PathDone>),
    Service(Arc<dyn ServiceDone>),
}

/// A query under way.
struct Pending {
    done: Done,
    // Keeps the administrator's part of the RDMA core.
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
    /// Enters a query in the table. Returns its number. May sleep.
    fn enter(&self, pending: Pending) -> Result<usize> {
        let room = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?;
        let mut queries = self.queries.lock();
        let number = queries.next;
        // As many are not asked before the machine is scrapped.
        queries.next = number.wrapping_add(1);
        let before = queries.pending.insert(room.into_node(number, pending));
        drop(queries);
        drop(before);
        Ok(number)
    }

    /// Takes a query out of the table, unless it was. Ends with the lock released, so that the result
    /// can be dropped.
    fn take(&self, number: usize) -> Option<Pending> {
        self.queries.lock().pending.remove(&number)
    }
}

/// Takes out of the table what a callback is for, and lets go of the device.
///
/// # Safety
///
/// To be called in a callback only, with its context.
unsafe fn answered(context: *mut c_void) -> Option<Done> {
    // SAFETY: This is a callback.
    let client = unsafe { super::client() }?;
    Some(client.take(context.addr())?.done)
}

/// Called when there is an answer to a question for a path, or none will come.
///
/// # Safety
///
/// To be called by the RDMA core only, for a query of [`SaClient::query_path`]. If `status` is 0,
/// `resp` must point to `num` records, whose kind says which part of them is there.
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
        // SAFETY: By the safety requirements. They do not change during the call.
        let records = unsafe { slice::from_raw_parts(resp, usize::try_from(num).unwrap_or(0)) };
        let answers = records.iter().map(|raw| PathAnswer {
            record: record::path_from_raw(raw),
            flags: raw.flags,
        });
        PathAnswer::choose(answers).kernel()
    };
    done.path_done(result);
}

/// Called when there is an answer to a question for services, or none will come.
///
/// # Safety
///
/// To be called by the RDMA core only, for a query of [`SaClient::query_service`]. If `status` is 0,
/// `resp` must point to `num` records, all of which is there but what is reserved.
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

/// Copies records of services, as many as are wanted.
///
/// # Safety
///
/// `records` must point to `num` records, all of which is there but what is reserved.
unsafe fn services(
    records: *const bindings::sa_service_rec,
    num: usize,
) -> Result<KVec<ServiceRecord>> {
    let num = num.min(MAX_SERVICES);
    let mut services = KVec::with_capacity(num, GFP_KERNEL)?;
    for index in 0..num {
        // SAFETY: By the safety requirements, for which `index` is small enough.
        let service = unsafe { record::service_from_raw(records.add(index)) };
        // There is room, and this cannot panic, of which the compiler is sure, too.
        services.push_within_capacity(service).map_err(|_| ENOMEM)?;
    }
    Ok(services)
}

/// A query under way, or one that is over. Dropping it cancels.
///
/// The drop never waits. After it [`PathDone::path_done`] or [`ServiceDone::service_done`] does not
/// start any more; it may be running, so the drop may happen there, and with locks held that are
/// taken there.
///
/// # Invariants
///
/// While `number` is in the table of `client`, `raw` and `id` are a query of the RDMA core, which is
/// not freed.
#[must_use = "dropping it cancels the query"]
pub(crate) struct SaQuery {
    client: Arc<Client>,
    number: usize,
    id: c_int,
    raw: *mut bindings::ib_sa_query,
}

// SAFETY: Any task may cancel a query.
unsafe impl Send for SaQuery {}

// SAFETY: There is nothing to do with a shared reference.
unsafe impl Sync for SaQuery {}

impl Drop for SaQuery {
    fn drop(&mut self) {
        let mut queries = self.client.queries.lock();
        let pending = queries.pending.remove(&self.number);
        if pending.is_some() {
            // SAFETY: By the type invariant the query is there up to now, and the lock, which the
            // callback takes before the RDMA core frees the query, keeps it until the call returns.
            unsafe { bindings::ib_sa_cancel_query(self.id, self.raw) };
        }
        drop(queries);
        drop(pending);
    }
}

/// What the RDMA core takes of every query: the client, what to call back with, and where to tell
/// what it made.
struct Call {
    client: *mut bindings::ib_sa_client,
    context: *mut c_void,
    query: *mut *mut bindings::ib_sa_query,
}

impl SaClient {
    /// Asks the administrator of a port, or a service of this host that answers in its place, for a
    /// path. May sleep.
    ///
    /// The administrator is asked up to eleven times, a tenth of `timeout_ms` milliseconds apart.
    ///
    /// Fails, without calling `context`, with `EOPNOTSUPP` if the port has no administrator,
    /// [`EAGAIN`] if it is not known at the moment, [`ENODEV`] if the module is going away, and
    /// [`ENOMEM`].
    pub(crate) fn query_path(
        &self,
        device: &DeviceRef,
        port: u32,
        question: &PathQuestion,
        timeout_ms: u32,
        context: Arc<dyn PathDone>,
    ) -> Result<SaQuery> {
        let mut rec = record::path_to_raw(&question.record());
        self.ask(device, port, Done::Path(context), |call| {
            // SAFETY: The device is registered and its port has an administrator; the client is
            // registered, and the record is used during the call only. The callback accepts the
            // context until it has returned.
            unsafe {
                bindings::ib_sa_path_rec_get(
                    call.client,
                    device.as_raw(),
                    port,
                    &raw mut rec,
                    question.mask().to_be(),
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
    /// Fails as [`SaClient::query_path`].
    pub(crate) fn query_service(
        &self,
        device: &DeviceRef,
        port: u32,
        question: &ServiceQuestion,
        context: Arc<dyn ServiceDone>,
    ) -> Result<SaQuery> {
        let mut rec = record::service_to_raw(question);
        self.ask(device, port, Done::Service(context), |call| {
            // SAFETY: As in `query_path`.
            unsafe {
                bindings::ib_sa_service_rec_get(
                    call.client,
                    device.as_raw(),
                    port,
                    &raw mut rec,
                    question.mask().to_be(),
                    c_ulong::try_from(SERVICE_TIMEOUT_MS).unwrap_or(c_ulong::MAX),
                    bindings::GFP_KERNEL_ACCOUNT,
                    Some(on_service),
                    call.context,
                    call.query,
                )
            }
        })
    }

    /// Puts a question, by `get`, which returns the id of the query or an error.
    fn ask(
        &self,
        device: &DeviceRef,
        port: u32,
        done: Done,
        get: impl FnOnce(Call) -> c_int,
    ) -> Result<SaQuery> {
        check_port(device, port)?;
        let _inside = self.gate.enter().ok_or(ENODEV)?;
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
        // INVARIANT: The query was just made. A callback has taken `number` out of the table, or will
        // before the query is freed.
        Ok(SaQuery {
            client: self.client.clone(),
            number,
            id,
            raw,
        })
    }
}
