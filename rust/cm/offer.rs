// SPDX-License-Identifier: GPL-2.0

//! The offer of a request to its listener, and to another one that shares the address of this one
//! if it has gone.
//!
//! A listener may go at any moment. A request that is being offered to it is then offered to
//! another member of its group ([`cmproto::reuseport`]). A request that its owner has not read is
//! handed over by its consumer, which has taken the event out of the queue. Each consumer takes the
//! event and the end of the listener under one lock, so that no request is forgotten between the
//! two.

use super::child;
use crate::{
    device::port::Port,
    endpoint::{Admitted, Attachment, Endpoint, EndpointRef, Event, Exchange, IdKind, Inner},
    kext::delay,
    table::{
        listeners::{AddressListener, Destination},
        parked::Parked,
    },
};
use cmproto::{
    addr::SockAddr,
    cm::{self, DestroyCause, Tunable},
    cma::State,
    dropped::Dropped,
    listen::RequestView,
    node::{Admission, Asker, Declined, Priority},
    private_data::{Header, IpHeader},
    reuseport::Sender,
    service_id::ServiceId,
    stored_addr::StoredAddr,
};
use core::result::Result;

/// Returns the sender of the request of an endpoint, unless it was answered.
fn unanswered(exchange: &Exchange) -> Option<Sender> {
    match exchange {
        Exchange::Connection(conn) => {
            let is_unanswered = matches!(
                conn.machine.state(),
                cm::State::ReqRcvd | cm::State::MraReqSent
            );
            is_unanswered.then(|| Sender {
                origin: conn.peer,
                comm_id: conn.machine.remote_comm_id(),
                qpn: conn.machine.remote_qpn(),
            })
        }
        Exchange::Sidr(sidr) => sidr.request.as_ref().map(|_| Sender {
            origin: sidr.peer,
            comm_id: sidr.machine.request_id(),
            qpn: 0,
        }),
        Exchange::None | Exchange::Iwarp(_) => None,
    }
}

impl Endpoint {
    /// Returns the most requests to the endpoint, which listens, that may be parked now. `port` is
    /// that at which one arrives.
    pub(super) fn parking(&self, port: &Port) -> u32 {
        let wanted = self.inner.lock().tuned_at(Tunable::Parking, Some(port));
        self.globals.parking.share(wanted)
    }

    /// Finds another listener for the request of this endpoint, which is not answered: one of the
    /// group in which its listener is or was.
    fn next_listener(&self) -> Option<AddressListener<EndpointRef>> {
        let inner = self.inner.lock();
        let group = inner.addr.port_group?;
        if inner.state() != State::Connect {
            return None;
        }
        let attachment = inner.device.as_ref()?;
        let sender = unanswered(&inner.exchange)?;
        let (own, peer) = (self.src(&inner).read(), self.dst(&inner));
        let (header, interface) = match own {
            SockAddr::Ib { .. } => (Header::AfIb, None),
            _ => {
                let header = IpHeader {
                    src: peer,
                    dst: own,
                };
                (Header::Ip(header), Some(inner.addr.bound_if))
            }
        };
        let found = self.globals.listeners.find(&Destination {
            service_id: ServiceId::of_address(self.ps, &own),
            net: self.net.hash_key(),
            device: &attachment.device.traits,
            request: RequestView {
                header: &header,
                interface,
                port: attachment.port_num,
            },
            sender,
        });
        found.filter(|found| found.port_group == Some(group))
    }

    /// Makes the endpoint of a request one of another listener than before.
    fn follow(self: &EndpointRef, listener: &Endpoint) {
        let tuning = listener.inner.lock().tuning;
        // It is shown as one of the other process.
        self.id_priv.del();
        delay::point();
        let mut inner = self.inner.lock();
        inner.tuning = tuning;
        if let Some(attachment) = inner.device.as_ref().filter(|_| !inner.is_dead()) {
            self.id_priv.own_as(&listener.id_priv);
            // Without memory it is not shown.
            let _ = self
                .id_priv
                .add(&attachment.device.device, attachment.port_num);
        }
    }

    /// Offers the request of this endpoint to the consumer of `listener`, or to the next one that
    /// shares its address if it has gone.
    ///
    /// Fails with [`Declined::Gone`] if there is no other.
    pub(super) fn offer(
        self: &EndpointRef,
        listener: &EndpointRef,
        event: &Event<'_>,
        asker: Option<Asker>,
    ) -> Result<(), Declined> {
        let mut next = None;
        loop {
            delay::point();
            let other = next.as_ref();
            let listener = other.unwrap_or(listener);
            let offered = {
                // The memory cgroup of the listener that gets the request pays for it.
                let _scope = other.and_then(|other| other.memcg_scope());
                self.offer_once(listener, event, asker)
            };
            match offered {
                // Each round leaves one listener fewer that can be found.
                Err(Declined::Gone) => listener.vacancy.close(),
                other => return other,
            }
            let found = self.next_listener().ok_or(Declined::Gone)?.endpoint;
            self.follow(&found);
            next = Some(found);
        }
    }

    fn offer_once(
        self: &EndpointRef,
        listener: &Endpoint,
        event: &Event<'_>,
        asker: Option<Asker>,
    ) -> Result<(), Declined> {
        let consumer = child::consumer_of(listener)?;
        let Admitted {
            mut inner,
            admission,
            replaced,
        } = consumer.connect_request(self, event, asker)?;
        self.admitted(&mut inner, admission);
        drop(inner);
        if let Some(replaced) = replaced {
            replaced.give_way();
        }
        Ok(())
    }

    /// Lets repeated REQs be answered from now on, and tells the sender of one that is parked.
    fn admitted(self: &EndpointRef, inner: &mut Inner, admission: Admission) {
        let Some(conn) = inner.exchange.conn_mut() else {
            return;
        };
        let is_new = conn.machine.state() == cm::State::ReqRcvd;
        match admission {
            Admission::Parked | Admission::Replaces if is_new => self.park(inner, admission),
            // It was offered before, so that an MRA is prepared.
            Admission::Parked | Admission::Replaces => {
                conn.parked
                    .get_or_insert_with(|| Parked::new(&self.globals.parking));
            }
            // A consumer of the InfiniBand CM prepares the MRA itself.
            Admission::Queued if self.kind == IdKind::IbCm => {}
            Admission::Queued if is_new => {
                // It fails if the peer has withdrawn its request.
                let _ = self.prepare_mra(inner);
            }
            Admission::Queued => conn.parked = None,
        }
    }

    /// Hands the request of this endpoint, whose listener has gone, to another one that shares its
    /// address. `parked` is the priority of the request if it was parked. The consumer of the
    /// endpoint has taken care that its owner cannot find the request any more.
    ///
    /// Returns false if there is no other listener, or the request was answered or has ended. The
    /// sender is told nothing, and if the other listener has no room it tries again.
    pub(crate) fn hand_over(
        self: &EndpointRef,
        event: &Event<'_>,
        parked: Option<Priority>,
    ) -> bool {
        let Some(AddressListener { endpoint: next, .. }) = self.next_listener() else {
            return false;
        };
        self.follow(&next);
        // The cgroup of the next listener pays, not that of the task that has ended this one.
        let _scope = next.memcg_scope();
        let port = self
            .inner
            .lock()
            .device
            .as_ref()
            .and_then(Attachment::port)
            .cloned();
        let parking = port.as_ref().map_or(0, |port| next.parking(port));
        let asker = Asker {
            // It was here before.
            priority: parked.unwrap_or(Priority::Repeated),
            parking,
        };
        match self.offer(&next, event, (parking != 0).then_some(asker)) {
            Ok(()) => true,
            Err(Declined::NoRoom | Declined::OverLimit) => {
                if let Some(port) = port {
                    port.counts.dropped(Dropped::Overload);
                }
                self.end(DestroyCause::NoMemory);
                true
            }
            Err(Declined::Refused | Declined::Gone) => false,
        }
    }

    /// Ends the request of this endpoint in silence, if it is not answered and another listener
    /// shares the address of its own: its owner has read it and gone, so that nobody has the event
    /// any more, and its sender asks again.
    pub(crate) fn end_unanswered(self: &EndpointRef) {
        if self.next_listener().is_some() {
            delay::point();
            self.end(DestroyCause::NoMemory);
        }
    }

    /// Returns whether the endpoint shares its address with others, or is a request to one that
    /// does.
    pub(crate) fn has_port_group(&self) -> bool {
        self.inner.lock().addr.port_group.is_some()
    }
}
