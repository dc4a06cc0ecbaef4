// SPDX-License-Identifier: GPL-2.0

//! Messages that come in: whose they are, and what they do.
//!
//! A message is handled where it arrives, in the context of the MAD layer, under the lock of the
//! endpoint it belongs to. It is believed only if it comes from the GID of the connection's peer;
//! anything else is dropped without a word in the log.

use super::{
    execute::Cause,
    port::Port,
    remote::{Peer, Space, Track},
};
use crate::{
    cma::device::CmDevice,
    endpoint::{Endpoint, EndpointRef},
    ib::{
        counters::CounterGroup,
        mad::{Agent, ReceivedMad},
        trace::icm,
    },
};
use cmproto::{
    cm::{Actions, Connection},
    dropped::Dropped,
    origin::Origin,
    reject::Reason,
    time::Instant,
    ucma::query::Protocol,
    wire::{self, Header, Message, Rej, Rep},
};
use kernel::sync::Arc;

/// A message, and where it came in.
pub(super) struct Arrived<'a> {
    pub(super) port: &'a Port,
    pub(super) device: &'a Arc<CmDevice>,
    pub(super) agent: &'a Arc<Agent>,
    pub(super) mad: &'a ReceivedMad,
    pub(super) header: &'a Header,
}

impl Arrived<'_> {
    /// Where the message came from.
    pub(super) fn source(&self) -> Origin {
        let source = self.mad.source();
        if self.port.protocol == Protocol::Roce {
            return Origin::of_gid(source.sgid);
        }
        let link = source.link();
        let gids = link.has_grh.then_some((source.dgid, source.sgid));
        Origin::on_link(self.device.ib_port(self.port.num), link.lid, gids)
    }

    /// The sender, whose node has this GUID.
    pub(super) fn peer(&self, guid: u64) -> Peer {
        Peer {
            guid,
            origin: self.source(),
        }
    }
}

impl Port {
    /// Handles a message.
    pub(super) fn dispatch(&self, device: &Arc<CmDevice>, agent: &Arc<Agent>, mad: &ReceivedMad) {
        // Used where it is, as it is large.
        let decoded = wire::decode(mad.bytes());
        let (header, message) = match &decoded {
            Ok(decoded) => decoded,
            Err(error) => return self.counts.dropped((*error).into()),
        };
        let attr_id = header.attr_id.id();
        self.counts.add(CounterGroup::RxMsgs, attr_id, 1);
        let arrived = Arrived {
            port: self,
            device,
            agent,
            mad,
            header,
        };
        let core = &self.core;
        let endpoint = match message {
            Message::Req(req) => return arrived.request(req),
            Message::Rep(rep) => core.ids.get(rep.remote_comm_id),
            Message::Rtu(rtu) => core.ids.get(rtu.remote_comm_id),
            Message::Mra(mra) => core.ids.get(mra.remote_comm_id),
            Message::Dreq(dreq) => core.ids.get(dreq.remote_comm_id),
            Message::Drep(drep) => core.ids.get(drep.remote_comm_id),
            Message::Rej(rej) => match timed_out_guid(rej) {
                // The sender gave up before it learned our communication id.
                Some(guid) => core
                    .remotes
                    .by_comm_id(arrived.peer(guid), rej.local_comm_id),
                None => core.ids.get(rej.remote_comm_id),
            },
            Message::SidrReq(req) => return arrived.question(req),
            Message::SidrRep(rep) => core.ids.get(rep.request_id),
            Message::Lap(_) | Message::Apr(_) => {
                return self.counts.dropped(Dropped::Unsupported);
            }
        };
        match (endpoint, message) {
            (Some(endpoint), Message::Rep(rep)) if endpoint.receive_rep(&arrived, rep) => {}
            (Some(endpoint), Message::SidrRep(rep)) => endpoint.receive_sidr_rep(&arrived, rep),
            (_, Message::Rep(rep)) => {
                // The connection is gone, or was never asked for, and its peer need not wait.
                self.counts.dropped(Dropped::Unknown);
                arrived.refuse_rep(rep, Reason::INVALID_COMM_ID);
                icm::icm_remote_no_priv_err(rep.remote_comm_id);
            }
            (Some(endpoint), _) if endpoint.receive(&arrived, message) => {}
            (_, Message::Dreq(dreq)) => {
                // The connection is gone, and its peer need not wait for an answer.
                self.counts.add(CounterGroup::RxDuplicates, attr_id, 1);
                arrived.confirm(dreq);
                icm::icm_no_priv_err(dreq.local_comm_id, dreq.remote_comm_id);
            }
            _ => self.counts.dropped(Dropped::Unknown),
        }
    }
}

/// The CA GUID of a peer that gave up waiting for an answer (IBTA 12.6.7.2, reason 4).
fn timed_out_guid(rej: &Rej<'_>) -> Option<u64> {
    if Reason(rej.reason) != Reason::TIMEOUT {
        return None;
    }
    let guid = rej.ari.first_chunk()?;
    Some(u64::from_be_bytes(*guid))
}

impl Endpoint {
    /// Handles a message that names this endpoint; false if it is for no connection of its own.
    fn receive(self: &EndpointRef, arrived: &Arrived<'_>, message: &Message<'_>) -> bool {
        let now = self.core.now();
        let mut inner = self.inner.lock();
        let Some(conn) = &mut inner.conn else {
            return false;
        };
        if conn.peer != arrived.source() {
            // A stranger learns nothing.
            arrived.port.counts.dropped(Dropped::Stranger);
            return true;
        }
        if !conn.machine.is_for(message) {
            return false;
        }
        let waited = conn.machine.waiting();
        let actions = conn.machine.receive(arrived.header, message, now);
        let cause = match message {
            _ if self.speaks_messages => Cause::Mad(arrived.mad.bytes()),
            Message::Rej(rej) => Cause::Rej(rej),
            _ => Cause::None,
        };
        self.note_answer(&inner, waited, now);
        self.execute(&mut inner, actions, &cause);
        true
    }

    /// Handles a REP: the first one makes the peer's names this connection's. False if it is for no
    /// connection of this endpoint.
    fn receive_rep(self: &EndpointRef, arrived: &Arrived<'_>, rep: &Rep<'_>) -> bool {
        let Ok(space) = Space::new() else {
            arrived.port.counts.dropped(Dropped::Overload);
            return true;
        };
        let now = self.core.now();
        let mut inner = self.inner.lock();
        let Some(conn) = &mut inner.conn else {
            return false;
        };
        if conn.peer != arrived.source() {
            arrived.port.counts.dropped(Dropped::Stranger);
            return true;
        }
        // It has given up, or was ended.
        if conn.machine.is_closed() && !conn.machine.is_for(&Message::Rep(*rep)) {
            return false;
        }
        if conn.machine.wants_rep() && conn.machine.has_refused(rep) {
            // A late copy of a REP that was refused: its sender has given up by now.
            drop(inner);
            arrived.refuse_rep(rep, Reason::STALE_CONN);
            return true;
        }
        if conn.machine.wants_rep() {
            let track = self.core.remotes.track(
                space,
                arrived.peer(rep.local_ca_guid),
                rep.local_comm_id,
                conn.machine.rep_qpn(rep),
                self,
            );
            match track {
                Track::New(tracked) => conn.tracked = Some(tracked),
                Track::Duplicate => {
                    icm::icm_insert_failed_err(rep.remote_comm_id);
                    arrived.port.counts.dropped(Dropped::Mismatch);
                    return true;
                }
                Track::Stale(other) => {
                    conn.machine.refuse_rep(rep);
                    drop(inner);
                    arrived.refuse_rep(rep, Reason::STALE_CONN);
                    icm::icm_staleconn_err(rep.local_comm_id, rep.remote_comm_id);
                    other.stale_peer(arrived.source());
                    return true;
                }
            }
        }
        let is_wanted = conn.machine.wants_rep();
        let peer = conn.machine.remote_comm_id();
        let state = conn.machine.state();
        let waited = conn.machine.waiting();
        let qpn = conn.machine.rep_qpn(rep);
        let actions = conn
            .machine
            .receive(arrived.header, &Message::Rep(*rep), now);
        self.note_answer(&inner, waited, now);
        let cause = if self.speaks_messages {
            Cause::Mad(arrived.mad.bytes())
        } else {
            Cause::Rep {
                header: arrived.header,
                rep,
                qpn,
            }
        };
        self.execute(&mut inner, actions, &cause);
        if peer == rep.local_comm_id {
            // It is here already, and comes again because the answer was lost, or slow.
        } else if peer != 0 {
            icm::icm_remote_no_priv_err(rep.remote_comm_id);
        } else if !is_wanted {
            icm::icm_rep_unknown_err(rep.local_comm_id, rep.remote_comm_id, state as u32);
        }
        true
    }

    /// The peer claims, from `source`, to have forgotten the connection.
    pub(super) fn stale_peer(self: &EndpointRef, source: Origin) {
        self.step_for(source, Connection::stale_peer);
    }

    /// The REQ of this endpoint arrived again.
    pub(super) fn duplicate_req(self: &EndpointRef, source: Origin) {
        self.step_for(source, Connection::duplicate_req);
    }

    /// A step of the connection that no message of its own asks for, if `source` is its peer: a
    /// stranger that uses the peer's names changes nothing.
    fn step_for(
        self: &EndpointRef,
        source: Origin,
        step: impl FnOnce(&mut Connection, Instant) -> Actions,
    ) {
        let now = self.core.now();
        let mut inner = self.inner.lock();
        let Some(conn) = &mut inner.conn else {
            return;
        };
        if conn.peer != source {
            return;
        }
        let actions = step(&mut conn.machine, now);
        self.execute(&mut inner, actions, &Cause::None);
    }
}
