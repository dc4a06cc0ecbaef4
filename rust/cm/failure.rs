// SPDX-License-Identifier: GPL-2.0

//! Failures that administrators are told of, if they listen.

use super::{incoming_mad::IncomingMad, matched_listener::RequestKey};
use crate::{
    endpoint::{Endpoint, Inner},
    table::events::At,
};
use cmproto::{
    event::{Event, Failure},
    node::Response,
    wire::Req,
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
            Some(path) if inner.addr.dst.is_unspec() => path.native_addresses(),
            _ => (inner.addr.src, inner.addr.dst),
        };
        let at = inner.device.as_ref().map(|attachment| At {
            device: &attachment.device.device,
            port: Some(attachment.port_num),
        });
        let event = Event::Failed {
            failure,
            src,
            dst,
            service_id: inner
                .exchange
                .conn()
                .map_or(0, |conn| conn.machine.service_id()),
        };
        events.tell(&self.net, at, &event);
    }
}

impl IncomingMad<'_> {
    /// Tells that a REQ has got no endpoint, if the response says that.
    #[cold]
    pub(super) fn tell_refused(&self, req: &Req<'_>, response: &Response) {
        let events = &self.globals.events;
        let Some(failure) = Failure::of_response(response).filter(|_| events.has_listeners())
        else {
            return;
        };
        let Ok(reply_path) = self.reply_path() else {
            return;
        };
        let path = reply_path.request_path(req);
        let key = RequestKey::of_req(req, path);
        let (net, target) = self.target(&key, &reply_path);
        let (src, dst) = target.unwrap_or_else(|| path.native_addresses());
        let event = Event::Failed {
            failure,
            src,
            dst,
            service_id: req.service_id,
        };
        let at = At {
            device: &self.device.device,
            port: Some(self.port.num),
        };
        events.tell(&net, Some(at), &event);
    }
}
