// SPDX-License-Identifier: GPL-2.0

//! Failures that administrators are told of, if they listen.

use super::{incoming_mad::IncomingMad, matched_listener::RequestKey, reply_path::ReplyPath};
use crate::{
    endpoint::{Endpoint, Exchange, Inner},
    table::events::{ArrivedAt, At},
};
use cmproto::{
    event::{Event, Failure, Phase},
    node::Response,
    stored_addr::StoredAddr,
};

impl Endpoint {
    /// Tells of a failure of the exchange with the peer, or of the attempt at one.
    #[cold]
    pub(crate) fn tell_failure(&self, inner: &Inner, failure: Failure) {
        let events = &self.globals.events;
        if !events.has_listeners() {
            return;
        }
        let (src, dst) = match &inner.route.path {
            Some(path) if self.dst(inner).is_unspec() => path.native_addresses(),
            _ => (self.src(inner).read(), self.dst(inner)),
        };
        let at = inner.device.as_ref().map(|attachment| At {
            device: &attachment.device.device,
            port: Some(attachment.port_num),
        });
        let service_id = match &inner.exchange {
            Exchange::Connection(conn) => conn.machine.service_id(),
            Exchange::Sidr(sidr) => sidr.machine.service_id(),
            Exchange::None | Exchange::Iwarp(_) => 0,
        };
        let event = Event::Failed {
            failure,
            src,
            dst,
            service_id,
        };
        events.tell(&self.net, at, &event);
    }
}

impl IncomingMad<'_> {
    /// Tells that a request of this phase has got no endpoint, if the response says that. `key`
    /// makes the fields that say who it is for.
    ///
    /// If too many requests to the same GID were refused of late, that is looked up for none of
    /// them.
    #[cold]
    pub(super) fn tell_refused<'a>(
        &self,
        phase: Phase,
        response: &Response,
        key: impl FnOnce(&ReplyPath) -> RequestKey<'a>,
    ) {
        let events = &self.globals.events;
        let Some(failure) =
            Failure::of_response(phase, response).filter(|_| events.has_listeners())
        else {
            return;
        };
        let arrival = ArrivedAt {
            device: &self.device.device,
            port: self.port.num,
            gid: self.received.source().dgid,
        };
        if events.is_flooded(&arrival) {
            return;
        }
        let Ok(reply_path) = self.reply_path() else {
            return;
        };
        let key = key(&reply_path);
        let (net, target) = self.target(&key, &reply_path);
        let path = key.path.as_ref().unwrap_or(&reply_path.back);
        let (src, dst) = target.unwrap_or_else(|| path.native_addresses());
        let event = Event::Failed {
            failure,
            src,
            dst,
            service_id: key.service_id,
        };
        events.tell_arrived(&net, &arrival, &event);
    }
}
