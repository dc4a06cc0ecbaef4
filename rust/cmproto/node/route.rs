// SPDX-License-Identifier: GPL-2.0

//! Routing of a message to the endpoint that it names.

use super::{
    answer::Response,
    tables::{Peer, RemoteKey, Tables},
    verdict::nobody,
};
use crate::{
    origin::Origin,
    wire::{Message, Req, SidrReq},
};

/// The destination of a message.
#[derive(Debug)]
pub enum Route<'m, E> {
    /// A REQ, which names no endpoint.
    Req(&'m Req<'m>),
    /// A SIDR_REQ, which names no endpoint.
    SidrReq(&'m SidrReq<'m>),
    /// This endpoint, if [`judge`](super::judge) finds that it accepts the message.
    Endpoint(E),
    /// No endpoint. The response of the node is given.
    Nobody(Response),
}

/// Finds the endpoint that a message from `origin` names.
///
/// A message names its receiver by the receiver's communication id. A peer that gives up before it
/// knows this id sends a REJ with the reason "timeout" (4, IBTA 12.6.7.2), in which it names itself
/// by its GUID and its own communication id.
pub fn route<'m, T: Tables>(
    tables: &T,
    origin: Origin,
    message: &'m Message<'m>,
) -> Route<'m, T::Endpoint> {
    let comm_id = match message {
        Message::Req(req) => return Route::Req(req),
        Message::SidrReq(req) => return Route::SidrReq(req),
        Message::Rep(rep) => rep.remote_comm_id,
        Message::Rtu(rtu) => rtu.remote_comm_id,
        Message::Mra(mra) => mra.remote_comm_id,
        Message::Dreq(dreq) => dreq.remote_comm_id,
        Message::Drep(drep) => drep.remote_comm_id,
        Message::Rej(rej) => match rej.timed_out_guid() {
            Some(guid) => {
                let peer = Peer { guid, origin };
                let key = RemoteKey::comm_id(peer, rej.local_comm_id);
                return Route::to(tables.by_remote(&key), message);
            }
            None => rej.remote_comm_id,
        },
        Message::SidrRep(rep) => rep.request_id,
        Message::Lap(lap) => lap.remote_comm_id,
        Message::Apr(apr) => apr.remote_comm_id,
    };
    Route::to(tables.by_comm_id(comm_id), message)
}

impl<E> Route<'_, E> {
    /// Returns the route of a message to the endpoint that it names, if there is one.
    fn to(endpoint: Option<E>, message: &Message<'_>) -> Self {
        match endpoint {
            Some(endpoint) => Route::Endpoint(endpoint),
            None => Route::Nobody(nobody(message)),
        }
    }
}
