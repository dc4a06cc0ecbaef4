// SPDX-License-Identifier: GPL-2.0

//! The consumer of an endpoint, to which events are reported, and the view that it has of the
//! endpoint.

use super::{Attachment, ClaimSlot, EndpointRef, Event, EventParam, Inner};
use crate::{
    ib::{dev_addr::DevAddr, qp::NextHop},
    kext::users::IdCharge,
};
use cmproto::{
    cm,
    ibcm::EventType,
    node::{Admission, Asker, Declined},
    ucma::backlog::Backlog,
    ucma_abi::{CmEvent, UverbsAhAttr},
    wire::MAD_LEN,
};
use core::any::Any;
use kernel::{
    prelude::*,
    sync::{Arc, MutexGuard},
};

/// A reference to the consumer of a listener of the InfiniBand CM, whose type its API knows.
pub(crate) type ServiceConsumer = Arc<dyn Any + Send + Sync>;

/// The view that a consumer has of an endpoint, whose lock is held as long as there is one.
#[derive(Clone, Copy)]
pub(crate) struct View<'a>(&'a Inner);

impl<'a> View<'a> {
    /// Returns the view of an endpoint whose locked state is `inner`.
    #[inline]
    pub(crate) fn of(inner: &'a Inner) -> Self {
        View(inner)
    }

    /// Returns the type of service that the consumer has set; 0 if none.
    #[inline]
    pub(crate) fn tos(self) -> u8 {
        self.0.tos()
    }

    /// Returns the MAC address of the next hop, if it is known.
    pub(crate) fn dst_mac(self) -> Option<[u8; 6]> {
        self.0.resolution.dev_addr.as_ref().map(DevAddr::dst_mac)
    }

    /// Returns the next hop to the peer.
    pub(crate) fn next_hop(self) -> NextHop {
        let is_opa = self.0.device.as_ref().is_some_and(Attachment::is_opa);
        match &self.0.route.path {
            Some(path) if is_opa => NextHop::OpaLid(path.dlid),
            _ => NextHop::Mac(self.dst_mac().unwrap_or_default()),
        }
    }

    /// Returns the address vector of `event` as a program gets it, if that is another one.
    #[inline]
    pub(crate) fn shown_vector(self, event: &Event<'_>) -> Option<UverbsAhAttr> {
        match (event.kind, &event.param) {
            (CmEvent::Established, EventParam::Ud(param)) => {
                let mut vector = param.ah_attr;
                self.0.show_opa_lid(&mut vector);
                (vector != param.ah_attr).then_some(vector)
            }
            _ => None,
        }
    }

    /// Returns the state as the InfiniBand CM defines it.
    pub(crate) fn cm_state(self) -> cm::State {
        self.0.cm_state()
    }

    /// Returns the communication ids of this side and of the peer; 0 for one that is not known.
    pub(crate) fn comm_ids(self) -> (u32, u32) {
        match self.0.exchange.conn() {
            Some(conn) => (conn.machine.local_comm_id(), conn.machine.remote_comm_id()),
            None => (0, 0),
        }
    }
}

/// A connection request that a consumer has taken, but cannot answer yet: the endpoint of the
/// request has been locked since before the consumer's owner could see the request.
pub(crate) struct Admitted<'a> {
    /// The state of the request's endpoint.
    pub(crate) inner: MutexGuard<'a, Inner>,
    /// The place of the request: in the backlog, or parked.
    pub(crate) admission: Admission,
    /// The consumer of the request that [gives way](Consumer::give_way) to this one, if one does.
    pub(crate) replaced: Option<Arc<dyn Consumer>>,
}

impl<'a> Admitted<'a> {
    /// Locks the endpoint of a request, which nobody can see before `queue` queues it. `queue`
    /// returns the last two fields.
    pub(crate) fn lock(
        child: &'a EndpointRef,
        queue: impl FnOnce() -> Result<(Admission, Option<Arc<dyn Consumer>>), Declined>,
    ) -> Result<Self, Declined> {
        let inner = child.inner.lock();
        let (admission, replaced) = queue()?;
        Ok(Admitted {
            inner,
            admission,
            replaced,
        })
    }
}

/// The owner of an endpoint: a context of a user's channel, or a kernel consumer.
pub(crate) trait Consumer: Send + Sync {
    /// Queues an event, which the consumer also [traces](super::Endpoint::traced) when it tells its
    /// owner.
    ///
    /// Called with the endpoint's lock held, in the order in which the events happened. Must not
    /// lock the endpoint, and cannot fail.
    fn event(&self, view: View<'_>, event: &Event<'_>);

    /// Queues an event of the IB CM for an endpoint whose consumer is one of the [InfiniBand
    /// CM](super::IdKind::IbCm). `mad` is the message that caused the event, if one did.
    /// Called with the endpoint's lock held.
    fn message(&self, _event: EventType, _mad: Option<Arc<[u8; MAD_LEN]>>) {}

    /// Notes that the state of such an endpoint's connection may have changed. Called with the
    /// endpoint's lock held.
    fn state_changed(&self, _view: View<'_>) {}

    /// Queues an event of the multicast group that the endpoint joined as `group`. Called as
    /// [`event`](Self::event).
    fn group_event(&self, view: View<'_>, group: u64, event: &Event<'_>);

    /// Checks whether a connection request would probably be taken now, which saves the work for
    /// one that would not, and charges a program for it. It may be parked beside a full backlog if
    /// there is an `asker`.
    ///
    /// Called with no lock held.
    fn takes_requests(
        &self,
        asker: Option<Asker>,
    ) -> Result<(Admission, Option<IdCharge>), Declined>;

    /// Offers a connection request that arrived for this listener.
    ///
    /// Called with no lock held, possibly while the listener is being destroyed. The consumer gives
    /// `child` a consumer of its own, and locks `child`, before anybody can see the request. It may
    /// be parked beside a full backlog if there is an `asker`, and another one may give way to it.
    fn connect_request<'a>(
        &self,
        child: &'a EndpointRef,
        event: &Event<'_>,
        asker: Option<Asker>,
    ) -> Result<Admitted<'a>, Declined>;

    /// Returns a copy of the backlog of a listener that has one.
    ///
    /// Called with no lock held.
    fn backlog(&self) -> Option<Backlog> {
        None
    }

    /// Destroys the endpoint of a parked request that has given way to another one.
    ///
    /// Called with no lock held.
    fn give_way(&self) {}

    /// Returns the slot for the endpoint's claim to the number of a queue pair. Parts of the kernel
    /// claim none.
    fn claim_slot(&self) -> Option<&ClaimSlot> {
        None
    }

    /// Notes that the device is being removed. This comes before the event that reports the
    /// removal; the endpoint is dead.
    ///
    /// Called with the endpoint's lock held.
    fn device_removed(&self);
}
