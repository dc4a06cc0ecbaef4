// SPDX-License-Identifier: GPL-2.0

//! Tracepoints of the InfiniBand CM for a connection.

use crate::{
    endpoint::{Conn, Endpoint},
    ib::trace::icm::{self, IcmId},
};
use cmproto::{
    cm::{Action, Counter, Outgoing, QpState, State},
    wire::{Attribute, MraMessage},
};

/// Returns the name of a peer's SIDR request for tracepoints. It has no communication id of this
/// side.
pub(super) fn sidr_icm_id(request_id: u32) -> IcmId<'static> {
    IcmId {
        id_priv: None,
        local_id: 0,
        remote_id: request_id,
        state: State::SidrReqRcvd as u32,
    }
}

impl Endpoint {
    /// Returns the name of the connection for tracepoints, with its current state.
    pub(super) fn icm_id(&self, conn: &Conn) -> IcmId<'_> {
        self.icm_id_in(conn, conn.machine.state())
    }

    fn icm_id_in(&self, conn: &Conn, state: State) -> IcmId<'_> {
        IcmId {
            id_priv: Some(&self.id_priv),
            local_id: conn.comm_id.value(),
            remote_id: conn.machine.remote_comm_id(),
            state: state as u32,
        }
    }

    /// Traces a message before it is sent.
    ///
    /// `next` is the action after this one, which shows whether the message is a retry. The traced
    /// state is that before the transition, except for a DREP, which has the state after it.
    pub(super) fn trace_send(&self, conn: &Conn, outgoing: Outgoing, next: Option<&Action>) {
        let id = self.icm_id_in(conn, conn.before);
        let is_repeated = match next {
            // A retry by the timer is not traced.
            Some(Action::Count(Counter::Retry(_))) => return,
            Some(Action::Count(Counter::Repeat(_))) => true,
            _ => false,
        };
        match (outgoing, is_repeated) {
            (Outgoing::Req, _) => icm::icm_send_req(&id),
            (Outgoing::Rep, _) => icm::icm_send_rep(&id),
            (Outgoing::Dreq | Outgoing::Challenge, _) => icm::icm_send_dreq(&id),
            (Outgoing::Drep, false) => icm::icm_send_drep(&self.icm_id(conn)),
            (Outgoing::Rtu, false) => icm::icm_send_rtu(&id),
            (Outgoing::Rej, false) => {
                let reason = conn.machine.reject_reason().map_or(0, |reason| reason.0);
                icm::icm_send_rej(&id, reason);
            }
            (Outgoing::Rtu, true) | (Outgoing::Mra(MraMessage::Rep), _) => {
                icm::icm_send_dup_rep(&id);
            }
            (Outgoing::Rej, true) | (Outgoing::Mra(_), _) => icm::icm_send_dup_req(&id),
            (Outgoing::Drep, true) | (Outgoing::Lap | Outgoing::Apr, _) => {}
        }
    }

    /// Traces a received message that is not expected in the state of the connection. A repeated
    /// message is no error: its sender has not received the answer.
    pub(super) fn trace_unexpected(&self, conn: &Conn, counter: Counter) {
        let id = self.icm_id(conn);
        match counter {
            Counter::Unexpected(Attribute::Dreq) => icm::icm_dreq_unknown_err(&id),
            // The peer rejects each copy of a request, so that more than one REJ may arrive.
            Counter::Unexpected(Attribute::Rej) => match conn.machine.state() {
                State::Idle | State::Timewait => {}
                _ => icm::icm_rej_unknown_err(&id),
            },
            Counter::Unexpected(Attribute::Mra) => icm::icm_mra_unknown_err(&id),
            _ => {}
        }
    }

    /// Traces that the connection has no attributes for the transition of its queue pair to
    /// `target`.
    pub(super) fn trace_no_qp_attr(&self, conn: &Conn, target: u32) {
        let id = self.icm_id(conn);
        match QpState::try_from(target) {
            Ok(QpState::Init) => icm::icm_qp_init_err(&id),
            Ok(QpState::Rtr) => icm::icm_qp_rtr_err(&id),
            Ok(QpState::Rts) => icm::icm_qp_rts_err(&id),
            _ => {}
        }
    }
}
