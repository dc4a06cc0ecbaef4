// SPDX-License-Identifier: GPL-2.0

//! Reception of messages: the decisions of `cmproto::node` are executed here.
//!
//! A message is handled in the context of the MAD layer, with the lock of its endpoint held. A
//! connection accepts messages of its peer only. Other messages are dropped and counted, but never
//! logged.

use super::{execute::Cause, incoming_mad::IncomingMad, link::Link};
use crate::{
    device::port::Port,
    endpoint::{CmDevice, Conn, Connection, Endpoint, EndpointRef, IdKind},
    globals::Globals,
    ib::{
        counters::CounterGroup,
        mad::{Agent, AgentRegistration, MadHandler, ReceivedMad, SendStatus},
        port_events::{PortEvents, PortListener},
        trace::icm,
    },
    table::remote_ids::RemoteIdClaim,
};
use cmproto::{
    cm::State,
    dropped::Dropped,
    node::{self, RemoteIds, RemoteKey, Route, Tables, Verdict},
    origin::Origin,
    time::Instant,
    ucma::query::Protocol,
    wire::{self, Message, Rep},
};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, sync::Arc};

/// The receiver of the messages of a port.
///
/// The port has the MAD agent, which has this, until the port is closed.
struct Receiver {
    globals: Arc<Globals>,
    device: Arc<CmDevice>,
    port: Arc<Port>,
}

/// Opens a port of `device`: starts to receive messages, if the connections of the port are those
/// of the InfiniBand CM.
///
/// Fails if another agent receives the messages of the CM class at this port, and notes that.
pub(crate) fn open_port(
    globals: &Arc<Globals>,
    device: &Arc<CmDevice>,
    port: &Arc<Port>,
) -> Result {
    let at = &device.device;
    if !at.cap_ib_cm(port.num) {
        return Ok(());
    }
    let receiver = Receiver {
        globals: globals.clone(),
        device: device.clone(),
        port: port.clone(),
    };
    let receiver = Arc::new(receiver, GFP_KERNEL)?;
    let events = match port.protocol {
        Protocol::Ib => {
            let events = PortEvents::new(at, port.num, receiver.clone());
            Some(KBox::pin_init(events, GFP_KERNEL)?)
        }
        // The interface below tells.
        Protocol::Roce | Protocol::Iwarp => None,
    };
    let agent = AgentRegistration::new(at, port.num, receiver).inspect_err(|error| {
        if *error == EINVAL {
            globals.note_port_taken();
        }
    })?;
    port.open(at, agent, events)
}

impl MadHandler for Receiver {
    fn receive(&self, agent: &Arc<Agent>, mad: ReceivedMad) {
        if self.port.is_open() {
            self.dispatch(agent, &mad);
        }
    }

    fn truncated(&self) {
        self.port.counts.dropped(Dropped::Truncated);
    }

    fn sent(&self, _attr_id: u16, _status: SendStatus) {
        // A lost message needs no action: the timers of the endpoints send it again.
    }
}

impl PortListener for Receiver {
    fn link_changed(&self, is_up: bool) {
        let link = Link::Port {
            device: self.device.device.index(),
            port: self.port.num,
        };
        self.globals.link_changed(link, is_up);
    }
}

impl Receiver {
    /// Returns the origin of a message.
    fn origin(&self, mad: &ReceivedMad) -> Origin {
        let source = mad.source();
        if self.port.protocol == Protocol::Roce {
            return Origin::of_gid(source.sgid);
        }
        let gids = source.has_grh.then_some((source.dgid, source.sgid));
        Origin::on_link(self.device.ib_port(self.port.num), source.slid, gids)
    }

    /// Handles a message.
    fn dispatch(&self, agent: &Arc<Agent>, mad: &ReceivedMad) {
        let port = &*self.port;
        // The result is not moved, as it is large.
        let decoded = wire::decode(mad.bytes());
        let (header, message) = match &decoded {
            Ok(decoded) => decoded,
            Err(error) => return port.counts.dropped((*error).into()),
        };
        let attr_id = header.attr_id.id();
        port.counts.add(CounterGroup::RxMsgs, attr_id, 1);
        let mad = IncomingMad {
            globals: &self.globals,
            port,
            device: &self.device,
            agent,
            received: mad,
            header,
            origin: self.origin(mad),
        };
        match node::route(&*self.globals, mad.origin, message) {
            Route::Req(req) => mad.request(req),
            Route::SidrReq(req) => mad.sidr_request(req),
            Route::Endpoint(endpoint) => {
                let _scope = endpoint.memcg_scope();
                endpoint.receive(&mad, message);
            }
            Route::Nobody(response) => mad.respond(&response),
        }
    }
}

impl Tables for Globals {
    type Endpoint = EndpointRef;

    fn by_comm_id(&self, comm_id: u32) -> Option<EndpointRef> {
        self.comm_ids.get(comm_id)
    }

    fn by_remote(&self, key: &RemoteKey) -> Option<EndpointRef> {
        self.remote_ids.get(key)
    }
}

/// The state of a connection before a REP, for tracepoints.
struct BeforeRep {
    /// The peer's communication id, or 0 if it is not known.
    peer: u32,
    is_wanted: bool,
    state: State,
}

impl BeforeRep {
    fn of(machine: &Connection) -> Self {
        BeforeRep {
            peer: machine.remote_comm_id(),
            is_wanted: machine.wants_rep(),
            state: machine.state(),
        }
    }

    /// Traces a REP that is not expected.
    fn trace(&self, rep: &Rep<'_>) {
        if self.peer == rep.local_comm_id {
            // The REP is a repeated one: the answer to it was lost, or slow.
        } else if self.peer != 0 {
            icm::icm_remote_no_priv_err(rep.remote_comm_id);
        } else if !self.is_wanted {
            let state = self.state as u32;
            icm::icm_rep_unknown_err(rep.local_comm_id, rep.remote_comm_id, state);
        }
    }
}

impl Endpoint {
    /// Enters the QPN of the peer, who has confirmed its request, and remembers where it has come
    /// from.
    ///
    /// If the QPN belongs to another connection, returns that one as the error.
    pub(super) fn confirm(
        self: &EndpointRef,
        conn: &mut Conn,
        ids: &RemoteIds,
        now: Instant,
    ) -> Result<(), EndpointRef> {
        self.globals.sources.confirm(&ids.peer.origin, now);
        node::confirm(&mut &*self.globals.remote_ids, ids, self)?;
        if let Some(claim) = &mut conn.remote_ids {
            claim.add_qpn(ids);
        }
        Ok(())
    }

    /// Handles a message that names this endpoint.
    fn receive(self: &EndpointRef, mad: &IncomingMad<'_>, message: &Message<'_>) {
        let remote_ids = &self.globals.remote_ids;
        let now = self.globals.now();
        let mut inner = self.inner.lock();
        let source = inner.exchange.source(mad.origin);
        let verdict = node::judge(&inner.exchange.view(), source, message);
        if let Verdict::Nobody(response) = verdict {
            drop(inner);
            return mad.respond(&response);
        }
        if let (Some(_), Message::SidrRep(rep)) = (inner.exchange.sidr(), message) {
            return self.receive_sidr_rep(&mut inner, message, rep, now);
        }
        let Some(conn) = inner.exchange.conn_mut() else {
            return;
        };
        // The first REP enters the ids of the peer, and the first RTU its QPN.
        match (verdict, message) {
            (Verdict::Claim(ids), Message::Rep(rep)) => {
                let mut table = &**remote_ids;
                match node::claim_rep(&mut table, &ids, self, &mut conn.machine, rep) {
                    Ok(()) => conn.remote_ids = Some(RemoteIdClaim::new(self, &ids)),
                    Err(refused) => {
                        drop(inner);
                        return mad.refuse_rep(rep, refused);
                    }
                }
            }
            (Verdict::Claim(ids), _) => {
                if let Err(other) = self.confirm(conn, &ids, now) {
                    let actions = conn.machine.refuse_rtu(now);
                    self.execute(&mut inner, actions, &Cause::None);
                    drop(inner);
                    return other.stale_peer(mad.origin);
                }
            }
            (_, Message::Lap(lap)) if mad.port.protocol == Protocol::Ib => {
                return self.receive_lap(inner, mad, lap);
            }
            _ => {}
        }
        let before = BeforeRep::of(&conn.machine);
        let waited = conn.machine.waiting();
        let actions = conn.machine.receive(mad.header, message, now);
        let cause = match message {
            _ if self.kind == IdKind::IbCm => Cause::Mad(mad.received.bytes()),
            Message::Rep(rep) => Cause::Rep {
                header: mad.header,
                rep,
                qpn: conn.machine.rep_qpn(rep),
            },
            Message::Rej(rej) => Cause::Rej(rej),
            _ => Cause::None,
        };
        if let Message::Rej(rej) = message {
            mad.port.note_rej(rej, mad.origin, now);
        }
        self.note_answer(&inner, waited, now);
        self.execute(&mut inner, actions, &cause);
        if let Message::Rep(rep) = message {
            before.trace(rep);
        }
    }
}
