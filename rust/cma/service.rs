// SPDX-License-Identifier: GPL-2.0

//! Resolving a service: which port has it.

use crate::{
    endpoint::{Addressee, Endpoint, EndpointRef, Event},
    ib::{
        debug::{self, Failure},
        sa::{ServiceDone, ServiceQuestion, ServiceRecord},
    },
    kext::error::ToKernel,
};
use cmproto::{
    addr::{Gid, SockAddr},
    cma::State,
    errno::Errno,
    ucma_abi::CmEvent,
};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// The services that a subnet administrator knows.
pub(crate) type Services = Arc<KVec<ServiceRecord>>;

impl Endpoint {
    /// Asks the subnet administrator for ports that have a service; the outcome comes as an event.
    ///
    /// Fails with `EINVAL` unless the endpoint is bound to a device and nothing more, with
    /// `EOPNOTSUPP` if its port has no subnet administrator, which those of RoCE have not, and with
    /// `EAGAIN` or `ENOMEM`; nothing has changed then.
    pub(crate) fn resolve_ib_service(self: &EndpointRef, question: &ServiceQuestion) -> Result {
        let mut inner = self.inner.lock();
        let attachment = inner.device.as_ref().ok_or(EINVAL)?;
        if inner.state != State::AddrBound {
            return Err(EINVAL);
        }
        if !attachment.is_ib() {
            return Err(Errno::EOPNOTSUPP.to_kernel());
        }
        let (device, port) = (&attachment.device.device, attachment.port_num);
        // It finds the lock taken if it answers before this is over.
        let addressee = Addressee::new(self)?;
        let query = self
            .core
            .sa
            .query_service(device, port, question, addressee)?;
        inner.asking = Some(KBox::new(query, GFP_KERNEL_ACCOUNT)?);
        self.set_state(&mut inner, State::AddrinfoQuery);
        Ok(())
    }

    /// The services that were found, if any were asked for.
    pub(crate) fn services(&self) -> Option<Services> {
        self.inner.lock().services.clone()
    }
}

/// The address of the port that has a service.
fn place(record: &ServiceRecord) -> SockAddr {
    SockAddr::Ib {
        pkey: record.pkey.get(),
        flowinfo: 0,
        gid: Gid(record.gid),
        sid: record.id.get(),
        sid_mask: 0,
        scope_id: 0,
    }
}

impl ServiceDone for Addressee {
    fn service_done(self: Arc<Self>, result: Result<KVec<ServiceRecord>>) {
        let found = result.and_then(|records| {
            let first = records.first().map(place).ok_or(ENOENT)?;
            Ok((first, Arc::new(records, GFP_KERNEL_ACCOUNT)?))
        });
        let endpoint = self.endpoint();
        let mut inner = endpoint.inner.lock();
        if inner.state != State::AddrinfoQuery {
            return;
        }
        let asked = inner.asking.take();
        let found = match &inner.services {
            Some(_) => Err(Errno::EALREADY.to_kernel()),
            None => found,
        };
        let (state, event) = match found {
            Ok((first, services)) => {
                // The first is where the route will lead.
                if let SockAddr::Ib { pkey, .. } = first {
                    inner.pkey = pkey;
                }
                inner.dst = first;
                inner.services = Some(services);
                let event = Event::new(CmEvent::AddrinfoResolved, 0);
                (State::AddrinfoResolved, event)
            }
            Err(error) => {
                let status = error.to_errno();
                debug::tell(&endpoint.head, Failure::ServiceUnresolved, status);
                let event = Event::new(CmEvent::AddrinfoError, status);
                (State::AddrBound, event)
            }
        };
        endpoint.set_state(&mut inner, state);
        endpoint.show(&inner);
        endpoint.deliver(&inner, &event);
        drop(inner);
        drop(asked);
    }
}
