// SPDX-License-Identifier: GPL-2.0

//! Answers that no endpoint gives: to requests for nobody, and to the late.

use super::{
    reach::{reach, Purpose, Sender, Waiting},
    receive::Arrived,
    sidr::asked,
};
use crate::{
    endpoint::EndpointRef,
    ib::{
        counters::{CounterGroup, Counts},
        dev_addr::DevAddr,
        mad::Agent,
        trace::icm,
    },
};
use cmproto::{
    dropped::Dropped,
    node::{Answer, Refused, Response},
    reject::Reason,
    wire::{Attribute, RejMessage, Rep, MAD_LEN},
};
use kernel::{prelude::*, sync::Arc};

/// An answer, ready to be sent.
struct Outgoing {
    sender: Sender,
    agent: Arc<Agent>,
    counts: Arc<Counts>,
    attribute: Attribute,
    /// Whether the answer was given before.
    again: bool,
    mad: [u8; MAD_LEN],
}

impl Outgoing {
    fn send(&self, link: &DevAddr) -> Result {
        let ah = self.sender.address(&self.agent, link)?;
        self.agent.send(&ah, self.sender.pkey_index, &self.mad)?;
        let attr_id = self.attribute.id();
        self.counts.add(CounterGroup::TxMsgs, attr_id, 1);
        if self.again {
            // An answer given again counts as C counts it: as two messages, one of them a retry.
            self.counts.add(CounterGroup::TxMsgs, attr_id, 1);
            self.counts.add(CounterGroup::TxRetries, attr_id, 1);
        }
        Ok(())
    }
}

impl Waiting for Outgoing {
    const PURPOSE: Purpose = Purpose::Answer;

    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn reached(&self, link: Result<&DevAddr>) {
        // An answer that does not get through is asked for again.
        if link.and_then(|link| self.send(link)).is_err() {
            self.counts.dropped(Dropped::Unreachable);
        }
    }
}

/// Traces an answer that is about to be sent. That to a REQ is traced where it is refused.
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
        Answer::SidrRep { request_id, .. } => icm::icm_send_sidr_rep(&asked(*request_id)),
    }
}

/// Traces that what was answered is for no connection.
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

impl Arrived<'_> {
    /// Does what the node itself does about the message.
    pub(super) fn respond(&self, response: &Response) {
        match response {
            Response::Drop(why) => self.port.counts.dropped(*why),
            Response::Answer(answer) => self.answer(answer),
        }
    }

    /// Refuses a REP whose sender uses names of another connection.
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

    /// Answers the message, which no endpoint takes.
    fn answer(&self, answer: &Answer) {
        let attribute = answer.attribute();
        if let Some(why) = answer.dropped() {
            self.port.counts.dropped(why);
        }
        if answer.is_repeated() {
            let asked = self.header.attr_id.id();
            self.port.counts.add(CounterGroup::RxDuplicates, asked, 1);
        }
        trace_answer(answer);
        let mut mad = [0; MAD_LEN];
        answer.encode(self.header, &mut mad);
        self.send(attribute, answer.is_repeated(), mad);
        trace_answered(answer);
    }

    /// Gives an answer of the kind `attribute` as it was given before.
    pub(super) fn repeat(&self, attribute: Attribute, mad: [u8; MAD_LEN]) {
        self.send(attribute, true, mad);
    }

    /// Sends an answer, unless the port has answered too much of late: who sends what nobody asked
    /// for shall not make this host do the same.
    fn send(&self, attribute: Attribute, again: bool, mad: [u8; MAD_LEN]) {
        if !self.port.may_answer() {
            return self.port.counts.dropped(Dropped::Overload);
        }
        let Ok(sender) = Sender::of(self.port, self.device, self.mad) else {
            return self.port.counts.dropped(Dropped::Unreachable);
        };
        let answer = Outgoing {
            sender,
            agent: self.agent.clone(),
            counts: self.port.counts.clone(),
            attribute,
            again,
            mad,
        };
        reach(&self.port.core, answer);
    }
}
