// SPDX-License-Identifier: GPL-2.0

//! The subnet administrator (SA) of InfiniBand, which knows the paths, the services and the
//! multicast groups of a subnet.
//!
//! C header: [`include/rdma/ib_sa.h`](srctree/include/rdma/ib_sa.h)
//!
//! Callbacks run in process context, with no lock of the RDMA core held, and never in the task that
//! is starting or cancelling the request. Often they run on the work queue of the port's MADs, on
//! the work queue of all multicast groups of the host, or in the task of a netlink service that
//! answers in place of the SA. So they may sleep, but should be short, and must wait for nothing
//! but locks.
//!
//! The removal of a device does not depend on an SA: a query drops its [`DeviceRef`] when it is
//! answered or dropped, and a membership when the RDMA core has forgotten it, which takes no
//! message.
//!
//! [`DeviceRef`]: super::device::DeviceRef

mod membership;
mod query;
pub(crate) mod record;

pub(crate) use self::{
    membership::{broadcast_group, JoinDone, SaMembership},
    query::{PathDone, SaQuery, ServiceDone},
};
pub(crate) use cmproto::{
    mcast::{McMember, McRequest},
    sa::{PathClass, PathQuery, ServiceQuery, ServiceRecord},
};

use self::query::Queries;
use super::device::Device;
use crate::{
    bindings,
    kext::{error::ToKernel, use_count::UseCount, workqueue::OwnedQueue},
};
use atomics::Published;
use cmproto::errno::Errno;
use core::ptr::NonNull;
use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    sync::{Arc, Mutex, SpinLock},
    types::Opaque,
};

/// The client that the callbacks of queries use. It is valid for as long as there can be a
/// callback.
///
/// The RDMA core may call back twice for a query that was cancelled, and does not tell when it will
/// not do so any more. So the context of a query is a number, not a pointer to an object that would
/// have to be freed at some time.
static CLIENT: Published<Client> = Published::new();

/// The part of a client that the RDMA core refers to.
///
/// # Invariants
///
/// `raw` was registered, and is still registered if `is_registered`. It is unregistered before the
/// object is freed, unless it was never used: the RDMA core keeps nothing of a client without
/// queries and memberships.
#[pin_data]
struct Client {
    #[pin]
    raw: Opaque<bindings::ib_sa_client>,
    #[pin]
    queries: SpinLock<Queries>,
    #[pin]
    is_registered: Mutex<bool>,
}

// SAFETY: The RDMA core counts atomically in `raw`; all other fields may be used by any task.
unsafe impl Send for Client {}

// SAFETY: The RDMA core counts atomically in `raw`; the other fields have locks.
unsafe impl Sync for Client {}

impl Client {
    /// Creates an initialiser for a client without queries.
    fn new() -> impl PinInit<Self> {
        // INVARIANT: The caller makes a `SaClient` of it, which unregisters it, or does not use it.
        pin_init!(Self {
            raw <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes, and the object that is made there stays
                // there.
                unsafe { bindings::ib_sa_register_client(slot) };
            }),
            queries <- new_spinlock!(Queries::new(), "rdma_cm_sa_queries"),
            is_registered <- new_mutex!(true, "rdma_cm_sa_client"),
        })
    }
}

/// The module as a client of the subnet administrators (`struct ib_sa_client`).
pub(crate) struct SaClient {
    client: Arc<Client>,
    users: Arc<UseCount>,
    /// The queue on which memberships end.
    queue: Arc<OwnedQueue>,
}

impl SaClient {
    /// Registers the client, of which there can be one at a time. May sleep.
    ///
    /// Fails with [`ENOMEM`], and [`EBUSY`] if there is one already.
    pub(crate) fn new() -> Result<Self> {
        let users = Arc::pin_init(UseCount::new(), GFP_KERNEL)?;
        let queue = Arc::new(OwnedQueue::new(c"rust_rdma_sa")?, GFP_KERNEL)?;
        let client = Arc::pin_init(Client::new(), GFP_KERNEL)?;
        if !CLIENT.claim(NonNull::from(&*client)) {
            return Err(EBUSY);
        }
        Ok(Self {
            client,
            users,
            queue,
        })
    }

    /// Stops queries and joins, and waits for those that exist; the caller drops them first.
    ///
    /// When this returns, all queries have been answered or cancelled, all memberships have ended,
    /// and all callbacks have returned. Must be called before the module is unloaded, and not in a
    /// callback. Dropping the client closes it too.
    pub(crate) fn close(&self) {
        self.users.close_and_wait();
        let mut is_registered = self.client.is_registered.lock();
        if *is_registered {
            // SAFETY: By the type invariant the client is registered. The count is closed, so that
            // there are no new requests.
            unsafe { bindings::ib_sa_unregister_client(self.client.raw.get()) };
            // There are no callbacks any more.
            CLIENT.withdraw();
            *is_registered = false;
        }
    }
}

impl Drop for SaClient {
    fn drop(&mut self) {
        self.close();
    }
}

/// Returns the client of a callback.
///
/// # Safety
///
/// To be called in a callback of a query only; the result must not be used after the callback.
unsafe fn client<'a>() -> Option<&'a Client> {
    // SAFETY: The pointer is valid until all callbacks have returned.
    CLIENT.get().map(|client| unsafe { client.as_ref() })
}

/// Checks that the port has a subnet administrator, which the RDMA core does not check.
///
/// Fails with `EOPNOTSUPP` if it has none, or if there is no such port.
fn check_port(device: &Device, port: u32) -> Result {
    if device.cap_ib_sa(port) {
        Ok(())
    } else {
        Err(Errno::EOPNOTSUPP.to_kernel())
    }
}
