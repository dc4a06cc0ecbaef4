// SPDX-License-Identifier: GPL-2.0

//! What surrounds the node: the wire and the events of the user, as queues that a script reads.

use super::{origin, seen};
use crate::{
    wire::Mad,
    world::{Endpoint, Event, Micros, Names, Sent, Who},
};
use cmnode::{Arrived, Cause, Environment, EpId, Node};
use cmproto::{
    cm,
    cma::Upcall,
    origin::Origin,
    private_data::IP_HEADER_LEN,
    ucma_abi::CmEvent,
    wire::{Attribute, Message, MAD_LEN},
};
use std::collections::VecDeque;

pub(super) struct Surroundings {
    pub(super) names: Names,
    pub(super) wire: VecDeque<Sent>,
    pub(super) events: VecDeque<Event>,
    pub(super) seen: seen::Cells,
}

/// What is kept with an endpoint.
#[derive(Default)]
pub(super) struct Watch {
    /// The user wants events: on the passive side from ACCEPT on.
    pub(super) has_uid: bool,
    /// The user has not read the event with it.
    pub(super) is_unread: bool,
}

impl Surroundings {
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            wire: VecDeque::new(),
            events: VecDeque::new(),
            seen: seen::Cells::new(),
        }
    }
}

fn event(upcall: (CmEvent, i32), at: Micros, ep: EpId) -> Event {
    let (event, status) = upcall;
    Event {
        at,
        endpoint: Endpoint(ep as usize),
        child: None,
        kind: event as u32,
        status,
        private: Vec::new(),
        responder: 0,
        initiator: 0,
        flow: 0,
        retry: 0,
        rnr: 0,
        srq: 0,
        qpn: 0,
        vendor: 0,
        attr_mod: 0,
    }
}

/// The private data that the user sees of a request.
fn user_data(private_data: &[u8]) -> Vec<u8> {
    private_data.get(IP_HEADER_LEN..).unwrap_or(&[]).to_vec()
}

impl Environment for Surroundings {
    type Watch = Watch;
    type Before = ();

    fn watch(&mut self, _: &Arrived<'_>) -> Watch {
        Watch::default()
    }

    fn is_waiting(endpoint: &cmnode::Endpoint<Watch>) -> bool {
        endpoint.watch.is_unread
    }

    fn send(node: &mut Node<Self>, _: Option<EpId>, to: Origin, _: Attribute, mad: &[u8; MAD_LEN]) {
        let to = match to == origin(node.env.names.stranger) {
            true => Who::Stranger,
            false => Who::Peer,
        };
        node.env.wire.push_back(Sent {
            at: node.now.as_micros(),
            to,
            mad: Mad(*mad),
        });
    }

    fn reach(node: &mut Node<Self>, ep: EpId, request: &Arrived<'_>) {
        node.offer(ep, Some(request));
    }

    fn offer(node: &mut Node<Self>, ep: EpId, request: Option<&Arrived<'_>>) {
        let (Some(endpoint), Some(request)) = (node.endpoints.get_mut(&ep), request) else {
            return;
        };
        endpoint.watch.is_unread = true;
        let listener = endpoint.listener.unwrap_or(ep);
        let mut event = event((CmEvent::ConnectRequest, 0), node.now.as_micros(), listener);
        event.child = Some(Endpoint(ep as usize));
        match request.message {
            Message::Req(req) => {
                event.private = user_data(req.private_data);
                event.responder = req.initiator_depth;
                event.initiator = req.responder_resources;
                event.flow = req.flow_control.into();
                event.retry = req.retry_count;
                event.rnr = req.rnr_retry_count;
                event.srq = req.srq.into();
                event.qpn = req.local_qpn;
                event.vendor = req.vendor_id;
                event.attr_mod = request.header.attr_mod;
            }
            Message::SidrReq(req) => event.private = user_data(req.private_data),
            _ => {}
        }
        node.env.events.push_back(event);
    }

    fn deliver(
        node: &mut Node<Self>,
        ep: EpId,
        _: Option<cm::Event>,
        upcall: Option<&Upcall>,
        cause: &Cause<'_>,
    ) {
        let has_uid = node.endpoints.get(&ep).is_some_and(|own| own.watch.has_uid);
        let Some(upcall) = upcall.filter(|_| has_uid) else {
            return;
        };
        let mut event = event((upcall.event, upcall.status), node.now.as_micros(), ep);
        if let Cause::Message(arrived) = cause {
            match arrived.message {
                Message::Rej(rej) => event.private = rej.private_data.to_vec(),
                Message::Rep(rep) => {
                    event.private = rep.private_data.to_vec();
                    event.responder = rep.initiator_depth;
                    event.initiator = rep.responder_resources;
                    event.flow = rep.flow_control.into();
                    event.rnr = rep.rnr_retry_count;
                    event.srq = rep.srq.into();
                    event.qpn = rep.local_qpn;
                    event.vendor = rep.vendor_id;
                    event.attr_mod = arrived.header.attr_mod;
                }
                Message::SidrRep(rep) => {
                    event.private = rep.private_data.to_vec();
                    if upcall.event == CmEvent::Established {
                        event.qpn = rep.qpn;
                    }
                }
                _ => {}
            }
        }
        node.env.events.push_back(event);
    }

    fn before(node: &mut Node<Self>, ep: EpId, cause: &Cause<'_>) {
        let row = match cause {
            Cause::StalePeer => "stale peer",
            Cause::Message(arrived) if matches!(arrived.message, Message::Req(_)) => {
                "its REQ again"
            }
            _ => return,
        };
        if let Some(endpoint) = node.endpoints.get(&ep) {
            node.env.seen.extend(seen::cell(row, endpoint));
        }
    }
}
