// SPDX-License-Identifier: GPL-2.0

//! Events for consumers of the IB CM, with the messages that caused them.

use super::super::{
    ffi::cm::{CmNotification, IbCmId, ReceivedRequest},
    queue::Message,
    HandlerGuard, KernelId,
};
use crate::endpoint::{Conn, Endpoint, Event, EventParam, Exchange, View};
use cmproto::ibcm::EventType;
use kernel::prelude::*;

impl KernelId {
    /// Tells the consumer of an event and returns the result of its handler.
    ///
    /// `listener` is the listener that has received the message, if it is a request.
    pub(in super::super) fn deliver_message(
        &self,
        guard: &HandlerGuard<'_>,
        ib_cm_id: &IbCmId,
        listener: Option<&IbCmId>,
        message: &Message,
    ) -> i32 {
        let (gid, at, peer_qpn, alternate) = {
            let inner = self.endpoint.inner.lock();
            let gid = inner.device.as_ref().and_then(|at| {
                // Over InfiniBand, most messages carry no GID.
                let path = inner.route.path.filter(|_| at.is_ib());
                let is_said = path.is_none_or(|path| path.has_grh());
                at.gid.clone().filter(|_| is_said)
            });
            let (conn, sidr) = (inner.exchange.conn(), inner.exchange.sidr());
            let pkey_index = conn.map(|conn| conn.pkey_index);
            let pkey_index = pkey_index.or(sidr.map(|sidr| sidr.pkey_index));
            let at = inner.device.as_ref().zip(pkey_index).map(|(at, index)| {
                let pkey = at.device.device.pkey(at.port_num, index);
                (u8::try_from(at.port_num).unwrap_or(0), pkey.unwrap_or(0))
            });
            let alternate = conn.and_then(Conn::alternate);
            let alternate = alternate.map(|alternate| alternate.path.to_record());
            // Only a REQ names the service.
            let alternate = alternate.map(|mut record| {
                if message.event == EventType::LapReceived {
                    record.sa.service_id = 0;
                }
                record
            });
            (
                gid,
                at,
                conn.map(|conn| conn.machine.remote_qpn()),
                alternate,
            )
        };
        let request = listener
            .zip(at)
            .map(|(listener, (port, pkey))| ReceivedRequest {
                listener,
                port,
                pkey,
                gid: gid.as_ref(),
                path: &self.path,
            });
        let notification = CmNotification {
            event: message.event,
            mad: message.mad.as_deref(),
            request,
            alternate,
            gid: gid.as_ref(),
            peer_qpn,
        };
        ib_cm_id.deliver(guard, &notification)
    }

    /// Creates the identifier for a request that `listener` has received, and the event for it.
    ///
    /// Fails with `ENODEV` if the device was removed.
    pub(in super::super) fn cm_request(
        listener: &IbCmId,
        child: &Endpoint,
        event: &Event<'_>,
    ) -> Result<(IbCmId, Message)> {
        let EventParam::Message(mad) = &event.param else {
            return Err(EINVAL);
        };
        let mut inner = child.inner.lock();
        // The queue pair can be given this PSN before the consumer sets another one in its REP, as
        // ib_srpt does.
        inner.qp.psn = 0;
        let attachment = inner.device.as_ref().ok_or(ENODEV)?;
        let ib_cm_id = IbCmId::new();
        ib_cm_id.inherit(listener, &attachment.device.device);
        let (event, service_id) = match &inner.exchange {
            Exchange::Connection(conn) => (EventType::ReqReceived, conn.machine.service_id()),
            Exchange::Sidr(sidr) => (EventType::SidrReqReceived, sidr.machine.service_id()),
            Exchange::None | Exchange::Iwarp(_) => return Err(ENODEV),
        };
        ib_cm_id.show_service(service_id);
        ib_cm_id.show(View::of(&inner));
        let message = Message {
            event,
            mad: Some(mad.clone()),
        };
        Ok((ib_cm_id, message))
    }
}
