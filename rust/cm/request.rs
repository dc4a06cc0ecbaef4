// SPDX-License-Identifier: GPL-2.0

//! Connection requests that come in.
//!
//! What is cheap comes first: a REQ is decoded and matched against the known peers and the
//! listeners before anything is allocated for it.

use super::{
    held::Held,
    ids::CommId,
    parked::Parked,
    port::transaction_id,
    reach::{search, Purpose, Sender, Waiting, Way},
    receive::Arrived,
    remote::{Space, Track},
    target::{self, Asked, Heard},
};
use crate::{
    endpoint::{Conn, ConnEventParam, Ece, Endpoint, EndpointRef, Event, EventParam, KeptEvent},
    ib::{
        dev_addr::DevAddr,
        trace::icm::{self, IcmId},
    },
    kext::delay,
};
use cmproto::{
    addr::Gid,
    cm::{self, Connection, DestroyCause, Tunable},
    dropped::Dropped,
    path::Path,
    reject::Reason,
    ucma::backlog::Admission,
    ucma_abi::CmEvent,
    wire::{Header, Req, Transport},
};
use kernel::prelude::*;

/// `enum ib_qp_type` of reliable connections.
const QPT_RC: u8 = 2;
/// `enum ib_qp_type` of unreliable connections.
const QPT_UC: u8 = 3;
/// `enum ib_qp_type` of the target end of extended reliable connections.
const QPT_XRC_TGT: u8 = 10;

/// The type of QP that can serve a REQ of this transport.
fn qp_type(transport: Transport) -> Option<u8> {
    match transport {
        Transport::Rc => Some(QPT_RC),
        Transport::Uc => Some(QPT_UC),
        Transport::Xrc => Some(QPT_XRC_TGT),
        Transport::Other(..) => None,
    }
}

/// Why a REQ does not become a connection request.
enum Refusal {
    /// The peer is told.
    Reject(Reason),
    /// The peer is told nothing and tries again.
    Drop,
    /// The peer cannot be told.
    Unreachable,
}

/// Why a request that there is no room for is refused.
const FULL: Reason = Reason::NO_RESOURCES;

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        if error == ENOMEM {
            Refusal::Drop
        } else if error == ENOSPC {
            Refusal::Reject(FULL)
        } else {
            Refusal::Reject(Reason::CONSUMER_DEFINED)
        }
    }
}

/// A REQ for which an endpoint was made.
struct Arrival {
    held: Held,
    /// How many requests may wait beyond the backlog.
    parking: u32,
}

/// A REQ that waits until its sender can be answered.
struct Waits {
    arrival: Arrival,
    /// What the listener's consumer will hear.
    event: KeptEvent,
}

impl Waiting for Waits {
    const PURPOSE: Purpose = Purpose::Request;

    fn sender(&self) -> &Sender {
        &self.arrival.held.sender
    }

    fn held(&self) -> Option<&Held> {
        Some(&self.arrival.held)
    }

    fn reached(&self, link: Result<&DevAddr>) {
        self.arrival.reached(link, &self.event.get());
    }
}

impl Arrival {
    /// The sender was found at `link`, or cannot be found.
    fn reached(&self, link: Result<&DevAddr>, event: &Event<'_>) {
        let (Some(ah), Ok(link)) = (self.held.address(link), link) else {
            return;
        };
        {
            let mut inner = self.held.child.inner.lock();
            match &mut inner.conn {
                Some(conn) => conn.ah = Some(ah),
                // The peer took its request back meanwhile, or the device went away.
                None => return,
            }
            // On InfiniBand both were known before.
            if self.held.sender.link.is_none() {
                if let Some(path) = &mut inner.path {
                    path.hop_limit = link.hop_limit;
                }
                inner.link = Some(link.clone());
            }
        }
        self.offer(event);
    }

    /// Offers the request to the listener's consumer.
    fn offer(&self, event: &Event<'_>) {
        let Held {
            listener, child, ..
        } = &self.held;
        // Taken before it is known whether it is needed: there are always enough but for a moment.
        let parked = Parked::take(&child.core);
        let parking = match parked {
            Some(_) => self.parking,
            None => 0,
        };
        delay::point();
        let offered = target::offer(listener, child, event, parking);
        delay::point();
        let admission = match offered.map_err(Refusal::from) {
            Ok(admission) => admission,
            Err(refusal) => return self.refuse(&refusal),
        };
        let mut inner = child.inner.lock();
        match (&mut inner.conn, admission) {
            (None, _) => {}
            (Some(conn), Admission::Parked) => {
                conn.parked = parked;
                child.park(&mut inner);
            }
            // One who speaks of messages says so itself.
            (Some(_), Admission::Queued) if child.speaks_messages => {}
            (Some(_), Admission::Queued) => child.prepare_mra(&mut inner),
        }
    }

    /// Refuses the request, for which an endpoint was made already.
    fn refuse(&self, refusal: &Refusal) {
        let Held { counts, child, .. } = &self.held;
        let cause = match refusal {
            Refusal::Reject(FULL) => {
                counts.dropped(Dropped::Overload);
                let _ = child.reject(&[], FULL.0 as u8);
                DestroyCause::NoMemory
            }
            Refusal::Reject(_) => DestroyCause::User,
            Refusal::Drop | Refusal::Unreachable => {
                counts.dropped(Dropped::Overload);
                DestroyCause::NoMemory
            }
        };
        child.end(cause);
    }
}

/// The event that reports a REQ, with the resources as this end sees them.
fn req_event<'a>(header: &Header, req: &Req<'_>, private_data: &'a [u8]) -> Event<'a> {
    Event {
        kind: CmEvent::ConnectRequest,
        status: 0,
        param: EventParam::Conn(ConnEventParam {
            responder_resources: req.initiator_depth,
            initiator_depth: req.responder_resources,
            flow_control: u8::from(req.flow_control),
            retry_count: req.retry_count,
            rnr_retry_count: req.rnr_retry_count,
            srq: u8::from(req.srq),
            qp_num: req.local_qpn,
            ..ConnEventParam::with_private_data(private_data)
        }),
        ece: Ece {
            vendor_id: req.vendor_id,
            attr_mod: header.attr_mod,
        },
    }
}

/// The connection that a REQ asks for as tracepoints name it, which has no identifier.
fn icm_id(req: &Req<'_>) -> IcmId<'static> {
    IcmId {
        head: None,
        local_id: 0,
        remote_id: req.local_comm_id,
        state: cm::State::ReqRcvd as u32,
    }
}

impl Arrived<'_> {
    /// Handles a REQ.
    pub(super) fn request(&self, req: &Req<'_>) {
        let remotes = &self.port.core.remotes;
        let peer = self.peer(req.local_ca_guid);
        if let Some(known) = remotes.by_comm_id(peer, req.local_comm_id) {
            return known.duplicate_req(self.source());
        }
        let taken = match remotes.by_qpn(peer, req.local_qpn) {
            Some(other) => Err((Refusal::Reject(Reason::STALE_CONN), Some(other))),
            None => self.take(req),
        };
        let Err((refusal, stale)) = taken else {
            return;
        };
        let reason = match refusal {
            Refusal::Reject(reason) => reason,
            Refusal::Drop => return self.port.counts.dropped(Dropped::Overload),
            Refusal::Unreachable => return self.port.counts.dropped(Dropped::Unreachable),
        };
        if reason == FULL {
            self.port.counts.dropped(Dropped::Overload);
        }
        let is_for_nobody = matches!(reason, Reason::INVALID_SERVICE_ID | Reason::STALE_CONN);
        if is_for_nobody {
            icm::icm_issue_rej(req.local_comm_id, 0);
        } else {
            icm::icm_send_rej(&icm_id(req), reason.0);
        }
        self.refuse_req(req, reason, self.right_gid(reason));
        if let Some(other) = stale {
            other.stale_peer(self.source());
        }
        if is_for_nobody {
            icm::icm_no_listener_err(&icm_id(req));
        }
    }

    /// The GID that whoever named a wrong one is told of.
    fn right_gid(&self, reason: Reason) -> Option<Gid> {
        match reason {
            Reason::INVALID_GID => self.device.device.query_gid(self.port.num, 0).ok(),
            Reason::INVALID_ALT_GID => Some(self.mad.source().dgid),
            _ => None,
        }
    }

    /// Makes a connection request of a REQ that is neither a duplicate nor from a stale peer.
    fn take(&self, req: &Req<'_>) -> Result<(), (Refusal, Option<EndpointRef>)> {
        let plain = |refusal| (refusal, None);
        let core = &self.port.core;
        let mut sender =
            Sender::of(self.port, self.device, self.mad).map_err(|_| plain(Refusal::Drop))?;
        if !self.is_served(req.service_id) {
            return Err(plain(Refusal::Reject(Reason::INVALID_SERVICE_ID)));
        }
        if self
            .device
            .device
            .find_pkey(self.port.num, req.pkey)
            .is_err()
        {
            return Err(plain(Refusal::Reject(Reason::INVALID_GID)));
        }
        if sender.link.is_none() && !req.alternate.is_empty() {
            // RoCE has no alternate paths.
            return Err(plain(Refusal::Reject(Reason::INVALID_ALT_GID)));
        }
        let path = match &sender.link {
            Some(link) => Path::from_req_over(req, link),
            None => Path::from_req(req),
        };
        sender.answer_by(&path);
        let heard = self.heard(
            &Asked {
                service_id: req.service_id,
                private_data: req.private_data,
                pkey: req.pkey,
                path: Some(&path),
            },
            &sender,
        );
        let heard = match &heard {
            Ok(heard) => heard,
            Err(error) => return Err(plain((*error).into())),
        };
        let own = heard.endpoint().inner.lock().tuning.own(Tunable::Parking);
        let parking = own.unwrap_or_else(|| self.port.tuned(Tunable::Parking));
        target::takes_requests(heard.endpoint(), parking).map_err(|error| plain(error.into()))?;
        let way = sender
            .way(core, Waits::PURPOSE)
            .map_err(|_| plain(Refusal::Unreachable))?;
        let space = Space::new().map_err(|error| plain(error.into()))?;
        let (child, event) = self
            .create(&sender, req, &path, heard)
            .map_err(|error| plain(error.into()))?;
        let track = core.remotes.track(
            space,
            self.peer(req.local_ca_guid),
            req.local_comm_id,
            req.local_qpn,
            &child,
        );
        match track {
            Track::New(tracked) => {
                let mut inner = child.inner.lock();
                let Some(conn) = &mut inner.conn else {
                    // The device has gone since the endpoint was attached to it.
                    drop(inner);
                    core.remotes.untrack(tracked, &child);
                    return Ok(());
                };
                conn.tracked = Some(tracked);
                conn.comm_id.publish(&child);
            }
            // The same REQ is being handled at this moment.
            Track::Duplicate => {
                child.end(DestroyCause::NoMemory);
                return Ok(());
            }
            Track::Stale(other) => {
                child.end(DestroyCause::NoMemory);
                return Err((Refusal::Reject(Reason::STALE_CONN), Some(other)));
            }
        }
        let arrival = Arrival {
            held: self.hold(sender, heard.endpoint().clone(), child),
            parking,
        };
        match way {
            Way::Known(link) => arrival.reached(Ok(&link), &event),
            Way::Unknown(place) => {
                let event = KeptEvent::new(&event);
                search(place, Waits { arrival, event });
            }
        }
        Ok(())
    }

    /// Creates the endpoint of the request, and the event that offers it.
    fn create<'a>(
        &self,
        sender: &Sender,
        req: &Req<'_>,
        path: &Path,
        heard: &Heard<'a>,
    ) -> Result<(EndpointRef, Event<'a>)> {
        let listener = heard.endpoint();
        let qp_type = qp_type(req.transport).ok_or(EINVAL)?;
        let wanted = listener.qp_type;
        if wanted != 0 && wanted != qp_type {
            return Err(EINVAL);
        }
        let attachment = self.attachment(heard, sender)?;
        let child = Endpoint::create_child(listener, qp_type)?;
        let tuning = listener.inner.lock().tuning;
        let comm_id = CommId::new(&self.port.core)?;
        let tid = transaction_id(self.agent, comm_id.value());
        let limits = tuning.over(&self.port.tuning()).limits();
        let (own_id, guid) = (comm_id.value(), self.port.guid);
        let machine = Connection::from_req(own_id, guid, tid, self.header, req, &limits);
        let mut machine = machine.map_err(|_| EINVAL)?;
        machine.decline_alternate();
        let event = match heard {
            Heard::Address(target, listener) => {
                req_event(self.header, req, target.user_data(listener))
            }
            Heard::Messages(_) => Event {
                param: self.message_param()?,
                ..Event::new(CmEvent::ConnectRequest, 0)
            },
        };
        target::seat(&child, heard, attachment, |inner| {
            inner.conn = Some(Conn {
                machine,
                comm_id,
                tracked: None,
                peer: self.source(),
                ah: None,
                pkey_index: sender.pkey_index,
                data_lid: sender
                    .link
                    .as_ref()
                    .map_or(0, |link| Path::data_lid(req, link)),
                parked: None,
                before: cm::State::ReqRcvd,
            });
            inner.path = Some(*path);
            inner.tuning = tuning;
            Ok(())
        })?;
        Ok((child, event))
    }
}
