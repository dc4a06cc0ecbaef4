// SPDX-License-Identifier: GPL-2.0

//! Answers that no endpoint gives: to requests for nobody, and to the late.

use super::{
    reach::{reach, Purpose, Sender, Waiting},
    receive::Arrived,
};
use crate::ib::{
    counters::{CounterGroup, Counts},
    dev_addr::DevAddr,
    mad::Agent,
    trace::icm,
};
use cmproto::{
    addr::Gid,
    dropped::Dropped,
    reject::Reason,
    sidr::{self, Status},
    wire::{
        self, Attribute, Drep, Dreq, Header, Message, Rej, RejMessage, Rep, Req, SidrReq, INFO_LEN,
        MAD_LEN,
    },
};
use kernel::{prelude::*, sync::Arc};

/// An answer, ready to be sent.
struct Answer {
    sender: Sender,
    agent: Arc<Agent>,
    counts: Arc<Counts>,
    attribute: Attribute,
    /// Whether the answer was given before.
    again: bool,
    mad: [u8; MAD_LEN],
}

impl Answer {
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

impl Waiting for Answer {
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

impl Arrived<'_> {
    /// Answers with `message`, unless the port has answered too much of late.
    fn answer(&self, message: &Message<'_>) {
        let attribute = message.attribute();
        let mut mad = [0; MAD_LEN];
        let header = Header::new(attribute, self.header.tid);
        if wire::encode(&header, message, &mut mad).is_ok() {
            // A connection that is known no more was ended before.
            self.send(attribute, attribute == Attribute::Drep, mad);
        }
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
        let answer = Answer {
            sender,
            agent: self.agent.clone(),
            counts: self.port.counts.clone(),
            attribute,
            again,
            mad,
        };
        reach(&self.port.core, answer);
    }

    /// Refuses a REQ, with a GID as additional information or none.
    pub(super) fn refuse_req(&self, req: &Req<'_>, reason: Reason, info: Option<Gid>) {
        self.refuse(RejMessage::Req, 0, req.local_comm_id, reason, info);
    }

    /// Refuses a REP, whose sender looks for both communication ids.
    pub(super) fn refuse_rep(&self, rep: &Rep<'_>, reason: Reason) {
        let (own, peers) = (rep.remote_comm_id, rep.local_comm_id);
        icm::icm_issue_rej(peers, own);
        self.refuse(RejMessage::Rep, own, peers, reason, None);
    }

    fn refuse(&self, refused: RejMessage, own: u32, peers: u32, reason: Reason, info: Option<Gid>) {
        let mut ari = [0; INFO_LEN];
        let mut ari_len = 0;
        if let (Some(Gid(gid)), Some(to)) = (info, ari.first_chunk_mut()) {
            *to = gid;
            ari_len = 16;
        }
        self.answer(&Message::Rej(Rej {
            local_comm_id: own,
            remote_comm_id: peers,
            message: refused,
            ari_len,
            reason: reason.0,
            ari: &ari,
            private_data: &[],
        }));
    }

    /// Answers a SIDR_REQ that no endpoint was made for.
    pub(super) fn refuse_question(&self, req: &SidrReq<'_>, status: Status) {
        self.answer(&Message::SidrRep(sidr::refusal(req, status)));
    }

    /// Confirms the end of a connection that is not known any more.
    pub(super) fn confirm(&self, dreq: &Dreq<'_>) {
        icm::icm_issue_drep(dreq.local_comm_id, dreq.remote_comm_id);
        self.answer(&Message::Drep(Drep {
            local_comm_id: dreq.remote_comm_id,
            remote_comm_id: dreq.local_comm_id,
            private_data: &[],
        }));
    }
}
