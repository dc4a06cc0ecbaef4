// SPDX-License-Identifier: GPL-2.0

//! A request whose sender is not reached yet: the same for REQ and SIDR_REQ.

use super::{reach::Sender, receive::Arrived};
use crate::{
    endpoint::EndpointRef,
    ib::{ah::Ah, counters::Counts, dev_addr::DevAddr, mad::Agent},
};
use cmproto::{cm::DestroyCause, dropped::Dropped, node::Unwanted};
use kernel::{prelude::*, sync::Arc};

/// A request for which an endpoint was made. It waits until its sender can be answered.
pub(super) struct Held {
    pub(super) sender: Sender,
    agent: Arc<Agent>,
    pub(super) counts: Arc<Counts>,
    pub(super) listener: EndpointRef,
    /// What was made for it.
    pub(super) child: EndpointRef,
}

impl Held {
    /// The handle of the sender's address, who was found at `link`. Nothing if there is none: then nobody
    /// can be told, and the request has ended.
    pub(super) fn address(&self, link: Result<&DevAddr>) -> Option<Ah> {
        let ah = link.and_then(|link| self.sender.address(&self.agent, link));
        if ah.is_err() {
            self.counts.dropped(Dropped::Unreachable);
            self.child.end(DestroyCause::NoMemory);
        }
        ah.ok()
    }

    /// Ends the request, which the listener's consumer does not take.
    pub(super) fn end(&self, unwanted: &Unwanted) {
        if let Some(why) = unwanted.dropped {
            self.counts.dropped(why);
        }
        if let Some(reason) = unwanted.reject {
            let _ = self.child.reject(&[], reason.0 as u8);
        }
        self.child.end(unwanted.cause);
    }
}

impl Arrived<'_> {
    /// Holds the request that arrived, for which `child` was made.
    pub(super) fn hold(&self, sender: Sender, listener: EndpointRef, child: EndpointRef) -> Held {
        Held {
            sender,
            agent: self.agent.clone(),
            counts: self.port.counts.clone(),
            listener,
            child,
        }
    }
}
