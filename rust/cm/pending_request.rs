// SPDX-License-Identifier: GPL-2.0

//! A REQ or SIDR_REQ that has an endpoint, until its sender can be answered.

use super::{incoming_mad::IncomingMad, reply_path::ReplyPath};
use crate::{
    endpoint::EndpointRef,
    ib::{ah::Ah, counters::Counts, dev_addr::DevAddr, mad::Agent, trace},
    kext::delay,
    table::unresolved::UnresolvedRequest,
};
use cmproto::{
    cm::DestroyCause,
    cma::State,
    dropped::Dropped,
    event::{Failure, Phase},
    node::RequestEnd,
    reject::Reason,
    sidr::{ReplyParams, Status},
};
use kernel::{prelude::*, sync::Arc};

/// A request for which an endpoint was created, until its sender can be answered.
pub(super) struct PendingRequest {
    pub(super) reply_path: ReplyPath,
    agent: Arc<Agent>,
    pub(super) counts: Arc<Counts>,
    pub(super) listener: EndpointRef,
    /// The endpoint of the request.
    pub(super) child: EndpointRef,
    /// Ends the request with its listener while its sender's address is being resolved.
    unresolved: Option<UnresolvedRequest<EndpointRef>>,
}

impl PendingRequest {
    /// Creates the state of the request in `mad`, which has the endpoint `child`.
    pub(super) fn new(
        mad: &IncomingMad<'_>,
        reply_path: ReplyPath,
        listener: EndpointRef,
        child: EndpointRef,
    ) -> Self {
        PendingRequest {
            reply_path,
            agent: mad.agent.clone(),
            counts: mad.port.counts.clone(),
            listener,
            child,
            unresolved: None,
        }
    }

    /// Lets the request end with its listener while its sender's address is being resolved. Returns
    /// false if the listener has ended meanwhile, before it could find the request; the request is
    /// ended then.
    ///
    /// Fails with [`ENOMEM`].
    pub(super) fn defer(&mut self) -> Result<bool> {
        let PendingRequest {
            listener, child, ..
        } = self;
        let table = &child.globals.unresolved;
        let unresolved = UnresolvedRequest::new(table, listener.number, child.clone())?;
        delay::point();
        let listens = listener.inner.lock().state() == State::Listen;
        if !listens {
            listener.end_unresolved();
        }
        self.unresolved = Some(unresolved);
        Ok(listens)
    }

    /// Ends the wait for the sender's address. Returns false if the request has ended with its
    /// listener.
    pub(super) fn resume(&self) -> bool {
        self.unresolved
            .as_ref()
            .is_some_and(UnresolvedRequest::remove)
    }

    /// Creates the address handle of the sender, which was found at `link`.
    ///
    /// If that fails, the request is ended and counted as dropped, and the result is `None`: the
    /// sender cannot be told.
    pub(super) fn address(&self, link: Result<&DevAddr>) -> Option<Ah> {
        let user = self.child.user();
        let ah = link.and_then(|link| self.reply_path.address(&self.agent, link, user));
        if ah.is_err() {
            self.drop_as(Dropped::Unreachable);
            self.child.end(DestroyCause::NoMemory);
        }
        ah.ok()
    }

    /// Ends the request after the listener's consumer has refused it.
    pub(super) fn end(&self, end: &RequestEnd) {
        match (end.dropped, end.reject) {
            (Some(why), None) => self.drop_as(why),
            (Some(why), Some(_)) => self.counts.dropped(why),
            (None, _) => {}
        }
        if let Some(reason) = end.reject {
            self.reject(reason);
        }
        self.child.end(end.cause);
    }

    /// Counts the request as dropped, and tells of that.
    #[cold]
    fn drop_as(&self, why: Dropped) {
        self.counts.dropped(why);
        let inner = self.child.inner.lock();
        let phase = match inner.exchange.sidr() {
            Some(_) => Phase::SidrReq,
            None => Phase::Req,
        };
        self.child
            .tell_failure(&inner, Failure::dropped(phase, why));
    }

    /// Answers with a REJ, or with a SIDR_REP that refuses.
    ///
    /// An error means that the request has ended meanwhile.
    fn reject(&self, reason: Reason) {
        let child = &self.child;
        let mut inner = child.inner.lock();
        let tos = inner.tos();
        if inner.exchange.sidr().is_some() {
            trace::cma::cm_send_sidr_rep(&child.id_priv, tos);
            let params = ReplyParams::failure(Status::REJECT);
            let _ = child.send_sidr_rep(&mut inner, &params, &[], &[]);
        } else if inner.exchange.conn().is_some() {
            trace::cma::cm_send_rej(&child.id_priv, tos);
            let _ = child.send_rej(&mut inner, reason, &[], &[]);
        }
    }
}
