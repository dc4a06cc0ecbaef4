// SPDX-License-Identifier: GPL-2.0

//! The subnet administrators (SA) of InfiniBand, which know the paths, the services and the
//! multicast groups of their subnets.
//!
//! C header: [`include/rdma/ib_sa.h`](srctree/include/rdma/ib_sa.h)
//!
//! All calls back come in process context with no lock of the RDMA core held, and never while the
//! question is put or cancelled by the same task; often on the work queue of the port's management
//! messages, on that of all multicast groups of the host, or from the task of a service that answers
//! in place of the administrators by netlink. So they may sleep, but must be done soon, and must not
//! wait for anything but locks.
//!
//! What becomes of a device does not depend on any administrator: a query lets go of its
//! [`DeviceRef`] when it is answered or dropped, a membership when the RDMA core has forgotten it,
//! which takes no message.
//!
//! [`DeviceRef`]: super::device::DeviceRef

mod membership;
mod query;
pub(crate) mod record;

// A library of its own, like all of `ib`.
#[allow(unused_imports)]
pub(crate) use self::{
    membership::{broadcast_group, JoinDone, SaMembership},
    query::{PathDone, SaQuery, ServiceDone},
};
#[allow(unused_imports)]
pub(crate) use cmproto::{
    mcast::{McMember, McRequest},
    sa::{PathClass, PathQuestion, ServiceQuestion, ServiceRecord},
};

use self::query::Queries;
use super::device::Device;
use crate::{
    bindings,
    kext::{
        error::ToKernel,
        gate::Gate,
        workqueue::{Kind, OwnedQueue},
    },
};
use cmproto::errno::Errno;
use core::ptr;
use kernel::{
    new_mutex, new_spinlock,
    prelude::*,
    sync::{
        atomic::{ordering::Acquire, ordering::Full, ordering::Release, Atomic},
        Arc, Mutex, SpinLock,
    },
    types::Opaque,
};

/// Where the calls back of queries find the client: null, or a client that is valid for as long as
/// there can be one.
///
/// The RDMA core may call back twice for a query that was cancelled, and says nothing when it will
/// not do so any more. So it is given a number to call back with, and no pointer to anything that
/// would have to be freed some time.
static CLIENT: Atomic<*const Client> = Atomic::new(ptr::null());

/// The client as the RDMA core sees it.
///
/// # Invariants
///
/// `raw` was registered, and not unregistered yet if `is_registered`. It was unregistered before the
/// object is freed, unless it was never used: the RDMA core keeps nothing of a client that has no
/// queries and no memberships.
#[pin_data]
struct Client {
    #[pin]
    raw: Opaque<bindings::ib_sa_client>,
    #[pin]
    queries: SpinLock<Queries>,
    #[pin]
    is_registered: Mutex<bool>,
}

// SAFETY: The RDMA core counts atomically in `raw`; all else may be used by any task.
unsafe impl Send for Client {}

// SAFETY: As above.
unsafe impl Sync for Client {}

impl Client {
    /// Creates an initialiser for a client without queries.
    fn new() -> impl PinInit<Self> {
        // INVARIANT: A `SaClient` is made of it, which unregisters it, or it is not used.
        pin_init!(Self {
            raw <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes, and what is made there stays there.
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
    gate: Arc<Gate>,
    /// Where memberships end.
    queue: Arc<OwnedQueue>,
}

impl SaClient {
    /// Registers the client, of which there can be one at a time. May sleep.
    ///
    /// Fails with [`ENOMEM`], and [`EBUSY`] if there is one.
    pub(crate) fn new() -> Result<Self> {
        let gate = Arc::pin_init(Gate::new(), GFP_KERNEL)?;
        let queue = Arc::new(OwnedQueue::new(c"rust_rdma_sa", Kind::Unbound)?, GFP_KERNEL)?;
        let client = Arc::pin_init(Client::new(), GFP_KERNEL)?;
        CLIENT
            .cmpxchg(ptr::null(), Arc::as_ptr(&client), Full)
            .map_err(|_| EBUSY)?;
        Ok(Self {
            client,
            gate,
            queue,
        })
    }

    /// Asks and joins no more, and waits until all queries have been answered or cancelled, all
    /// memberships have ended, and all calls back have returned: drop them first.
    ///
    /// To be called before the module goes, and never in a call back. The drop does the same.
    pub(crate) fn close(&self) {
        self.gate.close_and_wait();
        let mut is_registered = self.client.is_registered.lock();
        if *is_registered {
            // SAFETY: By the type invariant the client is registered. Nobody uses it for anything new
            // since the gate is closed.
            unsafe { bindings::ib_sa_unregister_client(self.client.raw.get()) };
            // There are no calls back any more.
            CLIENT.store(ptr::null(), Release);
            *is_registered = false;
        }
    }
}

impl Drop for SaClient {
    fn drop(&mut self) {
        self.close();
    }
}

/// The client that a call back is for.
///
/// # Safety
///
/// To be called in a call back of a query only, and the result not to be used after it.
unsafe fn client<'a>() -> Option<&'a Client> {
    // SAFETY: The pointer is null or valid until all calls back have returned.
    unsafe { CLIENT.load(Acquire).as_ref() }
}

/// Whether there is an administrator for the port; the RDMA core does not look.
///
/// Fails with `EOPNOTSUPP` if not, or if there is no such port.
fn check_port(device: &Device, port: u32) -> Result {
    if device.cap_ib_sa(port) {
        Ok(())
    } else {
        Err(Errno::EOPNOTSUPP.to_kernel())
    }
}
