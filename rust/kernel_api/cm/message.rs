// SPDX-License-Identifier: GPL-2.0

//! Telling a consumer of messages.

use super::super::KernelId;
use crate::{
    endpoint::{Endpoint, Event, EventParam, Inner},
    ib::kapi::cm::{Asked, CmHead, Told},
};
use cmproto::{cm::State, cma, ibcm::EventType, wire::MAD_LEN};
use kernel::{prelude::*, sync::Arc};

/// What a consumer of messages is told.
#[derive(Clone)]
pub(crate) struct Message {
    /// What has happened.
    pub(crate) event: EventType,
    /// The message that has arrived, if one has.
    pub(crate) mad: Option<Arc<[u8; MAD_LEN]>>,
}

impl KernelId {
    /// Tells the consumer; `listener` is where a request came in. Returns what the consumer returns.
    pub(in super::super) fn tell_message(
        &self,
        head: &CmHead,
        listener: Option<&CmHead>,
        message: &Message,
    ) -> i32 {
        let (gid, peer_qpn) = {
            let inner = self.endpoint.inner.lock();
            let gid = inner.device.as_ref().and_then(|device| device.gid.clone());
            let conn = inner.conn.as_ref();
            (gid, conn.map(|conn| conn.machine.remote_qpn()))
        };
        let asked = match (listener, &gid) {
            (Some(listener), Some(gid)) => Some(Asked {
                listener,
                gid,
                path: &self.path,
            }),
            _ => None,
        };
        head.tell(&Told {
            event: message.event,
            mad: message.mad.as_deref(),
            asked,
            gid: gid.as_ref(),
            peer_qpn,
        })
    }

    /// What the consumer of `listener` is to know a request by, and to be told.
    ///
    /// Fails with `ENODEV` if the device has gone.
    pub(in super::super) fn cm_request(
        listener: &CmHead,
        child: &Endpoint,
        event: &Event<'_>,
    ) -> Result<(CmHead, Message)> {
        let EventParam::Message(mad) = &event.param else {
            return Err(EINVAL);
        };
        let inner = child.inner.lock();
        let attachment = inner.device.as_ref().ok_or(ENODEV)?;
        let head = CmHead::new();
        head.inherit(listener, &attachment.device.device);
        let (event, service_id) = match (&inner.conn, &inner.sidr) {
            (Some(conn), _) => (EventType::ReqReceived, conn.machine.service_id()),
            (None, Some(sidr)) => (EventType::SidrReqReceived, sidr.machine.service_id()),
            (None, None) => return Err(ENODEV),
        };
        head.show_service(service_id);
        show_state(&head, &inner);
        let message = Message {
            event,
            mad: Some(mad.clone()),
        };
        Ok((head, message))
    }
}

/// Shows the state of an endpoint, whose lock is held.
pub(in super::super) fn show_state(head: &CmHead, inner: &Inner) {
    let (local, remote) = match &inner.conn {
        Some(conn) => (conn.machine.local_comm_id(), conn.machine.remote_comm_id()),
        None => (0, 0),
    };
    head.show(state(inner), local, remote);
}

/// The state of an endpoint, as the InfiniBand CM sees it.
pub(super) fn state(inner: &Inner) -> State {
    match (&inner.conn, &inner.sidr) {
        (Some(conn), _) => conn.machine.state(),
        (None, Some(sidr)) => sidr.machine.state(),
        (None, None) if inner.state == cma::State::Listen => State::Listen,
        (None, None) => State::Idle,
    }
}
