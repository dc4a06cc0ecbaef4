// SPDX-License-Identifier: GPL-2.0

//! Answers without a connection: to requests that are refused, and to late messages.

use super::{
    incoming_mad::IncomingMad,
    reply_path::ReplyPath,
    resolve::{resolve, Deferred},
    trace::sidr_icm_id,
};
use crate::{
    endpoint::EndpointRef,
    ib::{
        counters::{CounterGroup, Counts},
        dev_addr::DevAddr,
        mad::Agent,
        trace::icm,
    },
    table::resolve_budget::ResolvePurpose,
};
use cmproto::{
    dropped::Dropped,
    node::{Answer, Refused, Response},
    reject::Reason,
    wire::{Attribute, RejMessage, Rep, MAD_LEN},
};
use kernel::{prelude::*, sync::Arc};

/// An answer that is ready to be sent.
struct Outgoing {
    reply_path: ReplyPath,
    agent: Arc<Agent>,
    counts: Arc<Counts>,
    attribute: Attribute,
    /// Set if the same answer was sent before.
    again: bool,
    mad: [u8; MAD_LEN],
}

impl Outgoing {
    fn send(&self, link: &DevAddr) -> Result {
        let ah = self.reply_path.address(&self.agent, link, None)?;
        self.agent
            .send(&ah, self.reply_path.pkey_index, &self.mad)?;
        let attr_id = self.attribute.id();
        self.counts.add(CounterGroup::TxMsgs, attr_id, 1);
        self.counts.sent_rej(&self.mad);
        if self.again {
            // A repeated answer counts as two messages, one of them a retry, as in C.
            self.counts.add(CounterGroup::TxMsgs, attr_id, 1);
            self.counts.add(CounterGroup::TxRetries, attr_id, 1);
        }
        Ok(())
    }
}

impl Deferred for Outgoing {
    const PURPOSE: ResolvePurpose = ResolvePurpose::Answer;

    fn reply_path(&self) -> &ReplyPath {
        &self.reply_path
    }

    fn resolved(&self, link: Result<&DevAddr>) {
        // An answer that is lost needs no action: the peer repeats its message.
        if link.and_then(|link| self.send(link)).is_err() {
            self.counts.dropped(Dropped::Unreachable);
        }
    }
}

/// Traces an answer before it is sent. A REJ of a REQ is traced where the REQ is refused.
fn trace_answer(answer: &Answer) {
    match answer {
        Answer::Rej {
            refused: RejMessage::Rep,
            local_comm_id,
            remote_comm_id,
            ..
        } => icm::icm_issue_rej(*remote_comm_id, *local_comm_id),
        Answer::Rej { .. } => {}
        Answer::Drep {
            local_comm_id,
            remote_comm_id,
        } => icm::icm_issue_drep(*remote_comm_id, *local_comm_id),
        Answer::SidrRep { request_id, .. } => icm::icm_send_sidr_rep(&sidr_icm_id(*request_id)),
    }
}

/// Traces that the answered message was for no connection.
fn trace_answered(answer: &Answer) {
    match answer {
        Answer::Rej {
            local_comm_id,
            reason: Reason::INVALID_COMM_ID,
            ..
        } => icm::icm_remote_no_priv_err(*local_comm_id),
        Answer::Rej { .. } | Answer::SidrRep { .. } => {}
        Answer::Drep {
            local_comm_id,
            remote_comm_id,
        } => icm::icm_no_priv_err(*remote_comm_id, *local_comm_id),
    }
}

impl IncomingMad<'_> {
    /// Carries out the response of the node to the message.
    #[cold]
    pub(super) fn respond(&self, response: &Response) {
        match response {
            Response::Drop(why) => self.port.counts.dropped(*why),
            Response::Answer(answer) => self.answer(answer),
        }
    }

    /// Refuses a REP whose sender uses ids of another connection.
    #[cold]
    pub(super) fn refuse_rep(&self, rep: &Rep<'_>, refused: Refused<EndpointRef>) {
        if refused.stale.is_none() {
            icm::icm_insert_failed_err(rep.remote_comm_id);
        }
        self.respond(&refused.response);
        if let Some(other) = refused.stale {
            icm::icm_staleconn_err(rep.local_comm_id, rep.remote_comm_id);
            other.stale_peer(self.origin);
        }
    }

    /// Answers the message, which no endpoint has accepted.
    fn answer(&self, answer: &Answer) {
        let attribute = answer.attribute();
        if let Some(why) = answer.dropped() {
            self.port.counts.dropped(why);
        }
        if answer.is_repeated() {
            let received = self.header.attr_id.id();
            self.port
                .counts
                .add(CounterGroup::RxDuplicates, received, 1);
        }
        trace_answer(answer);
        let mut mad = [0; MAD_LEN];
        answer.encode(self.header, &mut mad);
        self.send(attribute, answer.is_repeated(), mad);
        trace_answered(answer);
    }

    /// Sends an answer with this attribute that was sent before.
    pub(super) fn repeat(&self, attribute: Attribute, mad: [u8; MAD_LEN]) {
        self.send(attribute, true, mad);
    }

    /// Sends an answer, unless the rate limit of the port is reached. The limit keeps a flood of
    /// messages that nobody asked for from causing a flood of answers.
    fn send(&self, attribute: Attribute, again: bool, mad: [u8; MAD_LEN]) {
        let now = self.globals.now();
        if !self.port.may_answer(attribute, self.origin, now) {
            return self.port.counts.dropped(Dropped::Overload);
        }
        let Ok(reply_path) = self.reply_path() else {
            return self.port.counts.dropped(Dropped::Unreachable);
        };
        let answer = Outgoing {
            reply_path,
            agent: self.agent.clone(),
            counts: self.port.counts.clone(),
            attribute,
            again,
            mad,
        };
        resolve(self.globals, answer);
    }
}
