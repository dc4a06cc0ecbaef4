// SPDX-License-Identifier: GPL-2.0

//! The surroundings of the node: the wire and the events of the user, as queues that a script
//! reads.

use super::{origin, seen};
use crate::{
    wire::Mad,
    world::{ConnParam, Endpoint, Event, Micros, Names, Sent, Who},
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

/// The data that is kept with an endpoint.
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

fn event(upcall: (CmEvent, i32), at: Micros, ep: EpId, param: ConnParam) -> Event {
    let (event, status) = upcall;
    Event {
        at,
        endpoint: Endpoint(ep as usize),
        child: None,
        kind: event as u32,
        status,
        param,
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
        let param = match request.message {
            Message::Req(req) => ConnParam {
                private: user_data(req.private_data),
                responder: req.initiator_depth,
                initiator: req.responder_resources,
                flow: req.flow_control.into(),
                retry: req.retry_count,
                rnr: req.rnr_retry_count,
                srq: req.srq.into(),
                qpn: req.local_qpn,
                vendor: req.vendor_id,
                attr_mod: request.header.attr_mod,
            },
            Message::SidrReq(req) => ConnParam {
                private: user_data(req.private_data),
                ..ConnParam::default()
            },
            _ => ConnParam::default(),
        };
        let upcall = (CmEvent::ConnectRequest, 0);
        let mut event = event(upcall, node.now.as_micros(), listener, param);
        event.child = Some(Endpoint(ep as usize));
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
        let message = match cause {
            Cause::Message(arrived) => Some((arrived.header, arrived.message)),
            _ => None,
        };
        let param = match message {
            Some((_, Message::Rej(rej))) => ConnParam {
                private: rej.private_data.to_vec(),
                ..ConnParam::default()
            },
            Some((header, Message::Rep(rep))) => ConnParam {
                private: rep.private_data.to_vec(),
                responder: rep.initiator_depth,
                initiator: rep.responder_resources,
                flow: rep.flow_control.into(),
                rnr: rep.rnr_retry_count,
                srq: rep.srq.into(),
                qpn: rep.local_qpn,
                vendor: rep.vendor_id,
                attr_mod: header.attr_mod,
                ..ConnParam::default()
            },
            Some((_, Message::SidrRep(rep))) => ConnParam {
                private: rep.private_data.to_vec(),
                qpn: match upcall.event {
                    CmEvent::Established => rep.qpn,
                    _ => 0,
                },
                ..ConnParam::default()
            },
            _ => ConnParam::default(),
        };
        let upcall = (upcall.event, upcall.status);
        let event = event(upcall, node.now.as_micros(), ep, param);
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
