// SPDX-License-Identifier: GPL-2.0

//! Answers that no endpoint gives: to requests for nobody, and to the late.

use super::{
    reach::{reach, Sender, Waiting},
    receive::Arrived,
};
use crate::ib::{addr::DevAddr, counters::CounterGroup, mad::Agent};
use cmproto::{
    reject::Reason,
    wire::{self, Drep, Dreq, Header, Message, Rej, RejMessage, Rep, Req, INFO_LEN, MAD_LEN},
};
use kernel::{prelude::*, sync::Arc};

/// An answer, ready to be sent.
struct Answer {
    sender: Sender,
    agent: Arc<Agent>,
    mad: [u8; MAD_LEN],
}

impl Waiting for Answer {
    fn sender(&self) -> &Sender {
        &self.sender
    }

    fn reached(&self, link: Result<&DevAddr>) {
        let sent = link
            .and_then(|link| self.sender.address(&self.agent, link))
            .and_then(|ah| self.agent.send(&ah, self.sender.pkey_index, &self.mad));
        // An answer that does not get through is asked for again.
        let _ = sent;
    }
}

impl Arrived<'_> {
    /// Answers with `message`, unless the port has answered too much of late: who sends what nobody
    /// asked for shall not make this host do the same.
    fn answer(&self, message: &Message<'_>) {
        if !self.port.may_answer() {
            return;
        }
        let Ok(sender) = Sender::of(self.device, self.mad) else {
            return;
        };
        let header = Header::new(message.attribute(), self.header.tid);
        let mut mad = [0; MAD_LEN];
        if wire::encode(&header, message, &mut mad).is_err() {
            return;
        }
        let counts = &self.port.counts;
        counts.add(CounterGroup::TxMsgs, header.attr_id.id(), 1);
        let answer = Answer {
            sender,
            agent: self.agent.clone(),
            mad,
        };
        reach(&self.port.core, answer);
    }

    /// Refuses a REQ, with additional information or none.
    pub(super) fn refuse_req(&self, req: &Req<'_>, reason: Reason, info: &[u8]) {
        self.refuse(RejMessage::Req, 0, req.local_comm_id, reason, info);
    }

    /// Refuses a REP, whose sender looks for both communication ids.
    pub(super) fn refuse_rep(&self, rep: &Rep<'_>, reason: Reason) {
        let (own, peers) = (rep.remote_comm_id, rep.local_comm_id);
        self.refuse(RejMessage::Rep, own, peers, reason, &[]);
    }

    fn refuse(&self, refused: RejMessage, own: u32, peers: u32, reason: Reason, info: &[u8]) {
        let mut ari = [0; INFO_LEN];
        let mut ari_len = 0u8;
        for (to, from) in ari.iter_mut().zip(info) {
            *to = *from;
            ari_len = ari_len.saturating_add(1);
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

    /// Confirms the end of a connection that is not known any more.
    pub(super) fn confirm(&self, dreq: &Dreq<'_>) {
        self.answer(&Message::Drep(Drep {
            local_comm_id: dreq.remote_comm_id,
            remote_comm_id: dreq.local_comm_id,
            private_data: &[],
        }));
    }
}
