// SPDX-License-Identifier: GPL-2.0

//! Listeners on service ids.

use super::super::KernelId;
use crate::{
    endpoint::{ServiceConsumer, View},
    ib::device::DeviceTraits,
    kext::error::ResultExt,
    table::listeners::{Added, ListenerReservation, ServiceListener},
};
use cmproto::{
    cm,
    cma::Trigger,
    ibcm::{requested_service_id, RequestedServiceId},
};
use kernel::{prelude::*, sync::Arc};

impl KernelId {
    /// Listens on a service id at the device.
    ///
    /// Fails with `EINVAL` (the state, or a service id that the module assigns itself), and with
    /// `EBUSY` if there is another listener on it.
    pub(crate) fn listen_service(
        self: &Arc<Self>,
        device: DeviceTraits,
        service_id: u64,
    ) -> Result {
        self.serve(device, service_id, None).map(|_| ())
    }

    /// Listens on a service id, or shares the listener with the same name, which is returned.
    ///
    /// Fails like [`KernelId::listen_service`], but with `EINVAL` instead of `EBUSY`.
    pub(crate) fn share_service(
        self: &Arc<Self>,
        device: DeviceTraits,
        service_id: u64,
        name: usize,
    ) -> Result<Option<ServiceConsumer>> {
        let served = self.serve(device, service_id, Some(name));
        served.map_err(|error| if error == EBUSY { EINVAL } else { error })
    }

    /// Returns the consumer of a listener that is shared.
    pub(crate) fn of_service(consumer: &ServiceConsumer) -> Option<&Self> {
        consumer.downcast_ref()
    }

    fn serve(
        self: &Arc<Self>,
        device: DeviceTraits,
        service_id: u64,
        name: Option<usize>,
    ) -> Result<Option<ServiceConsumer>> {
        let ib_cm_id = self.ib_cm_id().ok_or(EINVAL)?;
        let globals = &self.endpoint.globals;
        let mut inner = self.endpoint.inner.lock();
        if inner.is_dead() || inner.cm_state() != cm::State::Idle {
            return Err(EINVAL);
        }
        let service_id = match requested_service_id(service_id).kernel()? {
            RequestedServiceId::Assigned => globals.listeners.assign(),
            RequestedServiceId::Exactly(service_id) => service_id,
        };
        // A task that finds the entry and shares it has a listener, and may release it. That needs
        // the lock of the queue, which is held until the handle is stored there.
        let memory = ListenerReservation::new()?;
        let listener = ServiceListener {
            endpoint: self.endpoint.clone(),
            consumer: self.clone() as ServiceConsumer,
            device,
            name,
        };
        self.endpoint.step(&mut inner, Trigger::Serve)?;
        let before = ib_cm_id.service();
        ib_cm_id.show_service(service_id);
        ib_cm_id.show(View::of(&inner));
        let mut queue = self.queue.lock();
        let added = globals.listeners.add_service(memory, service_id, listener);
        let other = match added {
            Ok(Added::New(service)) => {
                queue.service = Some(service);
                return Ok(None);
            }
            Ok(Added::Shared(other)) => Ok(Some(other)),
            Err(error) => Err(error),
        };
        drop(queue);
        self.endpoint.step(&mut inner, Trigger::ServeFailed)?;
        ib_cm_id.show_service(before);
        ib_cm_id.show(View::of(&inner));
        other
    }
}
