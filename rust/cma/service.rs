// SPDX-License-Identifier: GPL-2.0

//! Service resolution: finds the ports that have an InfiniBand service.

use crate::{
    endpoint::{CallbackContext, Endpoint, EndpointRef, PathRecords, Services},
    ib::{
        debug::Failure,
        sa::{ServiceDone, ServiceQuery, ServiceRecord},
    },
    kext::error::ToKernel,
};
use cmproto::{
    addr::{Gid, SockAddr},
    cma::{State, Trigger},
    errno::Errno,
    ucma_abi::CmEvent,
};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

impl Endpoint {
    /// Asks the subnet administrator for the ports that have a service. The outcome is reported as
    /// an event.
    ///
    /// # Errors
    ///
    /// On failure nothing has changed.
    ///
    /// - `EINVAL` unless the endpoint is bound to a device, and has resolved nothing yet;
    /// - `EOPNOTSUPP` if the port has no subnet administrator, as those of RoCE;
    /// - `EAGAIN` if there is no subnet administrator at the moment;
    /// - `ENOMEM` if there is no memory.
    pub(crate) fn resolve_ib_service(self: &EndpointRef, query: &ServiceQuery) -> Result {
        let mut inner = self.inner.lock();
        let attachment = inner.device.as_ref().ok_or(EINVAL)?;
        if inner.state() != State::AddrBound {
            return Err(EINVAL);
        }
        if !attachment.is_ib() {
            return Err(Errno::EOPNOTSUPP.to_kernel());
        }
        let (device, port) = (&attachment.device.device, attachment.port_num);
        // If the answer comes before this returns, its callback waits for the endpoint's lock.
        let context = CallbackContext::new(self)?;
        let query = self
            .globals
            .sa
            .query_service(device, port, query, context)?;
        inner.route.sa_query = Some(KBox::new(query, GFP_KERNEL_ACCOUNT)?);
        self.step(&mut inner, Trigger::ResolveService)
    }

    /// Returns the service records that were found, if there are any.
    pub(crate) fn services(&self) -> Option<Services> {
        self.inner.lock().route.services().cloned()
    }
}

/// Returns the address of the port that has a service.
fn service_addr(record: &ServiceRecord) -> SockAddr {
    SockAddr::ib(record.pkey.get(), Gid(record.gid), record.id.get())
}

impl ServiceDone for CallbackContext {
    fn service_done(self: Arc<Self>, result: Result<KVec<ServiceRecord>>) {
        let found = result.and_then(|records| {
            let first = records.first().map(service_addr).ok_or(ENOENT)?;
            let services = Arc::new(records, GFP_KERNEL_ACCOUNT)?;
            Ok((first, PathRecords::of_services(services)?))
        });
        let endpoint = self.endpoint();
        let mut inner = endpoint.inner.lock();
        if inner.state() != State::AddrinfoQuery {
            return;
        }
        let sa_query = inner.route.sa_query.take();
        let found = match inner.route.services() {
            Some(_) => Err(Errno::EALREADY.to_kernel()),
            None => found,
        };
        let found = found.map(|(first, records)| {
            // The route will lead to the first record's port.
            if let SockAddr::Ib { pkey, .. } = first {
                inner.addr.pkey = pkey;
            }
            endpoint.set_dst(&mut inner, &first);
            inner.route.add_records(records);
        });
        let resolved = (Trigger::ServiceResolved, CmEvent::AddrinfoResolved);
        let failed = (Trigger::ServiceFailed, CmEvent::AddrinfoError);
        endpoint.query_done(
            &mut inner,
            found,
            resolved,
            failed,
            Failure::ServiceUnresolved,
        );
        drop(inner);
        drop(sa_query);
    }
}
