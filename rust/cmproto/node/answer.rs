// SPDX-License-Identifier: GPL-2.0

//! Answers of a node to messages that no endpoint accepts.

use crate::{
    addr::Gid,
    dropped::Dropped,
    reject::Reason,
    sidr::{refusal, Status},
    wire::{
        self, Attribute, Drep, Dreq, Header, Message, Rej, RejMessage, Rep, Req, SidrReq, INFO_LEN,
        MAD_LEN,
    },
};

/// The response of a node to a message that no endpoint accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// The message is dropped for this reason, without an answer.
    Drop(Dropped),
    /// The message is answered, unless the node has sent too many such answers of late.
    Answer(Answer),
}

/// A message that a node sends without a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A REJ (IBTA 12.6.7).
    Rej {
        /// The message that is rejected.
        refused: RejMessage,
        /// The communication id of this node in the rejected message, or 0 if there was none.
        local_comm_id: u32,
        /// The communication id of the message's sender.
        remote_comm_id: u32,
        /// The reason of the rejection.
        reason: Reason,
        /// A valid GID of this node, if the rejected message had a wrong one.
        gid: Option<Gid>,
    },
    /// A DREP (IBTA 12.6.11), for a connection that has ended already.
    Drep {
        /// The communication id of this node that the DREQ named.
        local_comm_id: u32,
        /// The communication id of the DREQ's sender.
        remote_comm_id: u32,
    },
    /// A SIDR_REP without a queue pair (IBTA 12.11.2).
    SidrRep {
        /// The request id of the SIDR_REQ.
        request_id: u32,
        /// The service id of the SIDR_REQ.
        service_id: u64,
        /// The reason of the refusal.
        status: Status,
    },
}

impl Answer {
    /// Creates a REJ for a REQ.
    pub(super) const fn reject_req(req: &Req<'_>, reason: Reason, gid: Option<Gid>) -> Self {
        Self::Rej {
            refused: RejMessage::Req,
            local_comm_id: 0,
            remote_comm_id: req.local_comm_id,
            reason,
            gid,
        }
    }

    /// Creates a REJ for a REP, with both communication ids, as its sender looks for both.
    pub(super) const fn reject_rep(rep: &Rep<'_>, reason: Reason) -> Self {
        Self::Rej {
            refused: RejMessage::Rep,
            local_comm_id: rep.remote_comm_id,
            remote_comm_id: rep.local_comm_id,
            reason,
            gid: None,
        }
    }

    /// Creates a DREP for a connection that is not known any more.
    pub(super) const fn confirm(dreq: &Dreq<'_>) -> Self {
        Self::Drep {
            local_comm_id: dreq.remote_comm_id,
            remote_comm_id: dreq.local_comm_id,
        }
    }

    /// Creates a SIDR_REP that refuses a SIDR_REQ.
    pub(super) const fn sidr(req: &SidrReq<'_>, status: Status) -> Self {
        Self::SidrRep {
            request_id: req.request_id,
            service_id: req.service_id,
            status,
        }
    }

    /// Returns the attribute of the message.
    pub const fn attribute(&self) -> Attribute {
        match self {
            Self::Rej { .. } => Attribute::Rej,
            Self::Drep { .. } => Attribute::Drep,
            Self::SidrRep { .. } => Attribute::SidrRep,
        }
    }

    /// Returns whether the connection, before it ended, has sent the same answer already.
    pub const fn is_repeated(&self) -> bool {
        match self {
            Self::Rej { .. } | Self::SidrRep { .. } => false,
            Self::Drep { .. } => true,
        }
    }

    /// Returns the counter of dropped messages that the answered message counts for, if any.
    pub fn dropped(&self) -> Option<Dropped> {
        match self {
            Self::Rej { reason, .. } if *reason == Reason::INVALID_COMM_ID => {
                Some(Dropped::Unknown)
            }
            Self::Rej { reason, .. } if *reason == Reason::NO_RESOURCES => Some(Dropped::Overload),
            Self::Rej { .. } | Self::Drep { .. } | Self::SidrRep { .. } => None,
        }
    }

    /// Writes the answer to a message with the header `asked` to `mad`, which must be all zeros.
    pub fn encode(&self, asked: &Header, mad: &mut [u8; MAD_LEN]) {
        let header = Header::new(self.attribute(), asked.tid);
        let mut ari = [0; INFO_LEN];
        let message = match self {
            Self::Rej {
                refused,
                local_comm_id,
                remote_comm_id,
                reason,
                gid,
            } => {
                let mut ari_len = 0;
                if let (Some(Gid(gid)), Some(to)) = (gid, ari.first_chunk_mut()) {
                    *to = *gid;
                    ari_len = 16;
                }
                Message::Rej(Rej {
                    local_comm_id: *local_comm_id,
                    remote_comm_id: *remote_comm_id,
                    message: *refused,
                    ari_len,
                    reason: reason.0,
                    ari: &ari,
                    private_data: &[],
                })
            }
            Self::Drep {
                local_comm_id,
                remote_comm_id,
            } => Message::Drep(Drep {
                local_comm_id: *local_comm_id,
                remote_comm_id: *remote_comm_id,
                private_data: &[],
            }),
            Self::SidrRep {
                request_id,
                service_id,
                status,
            } => Message::SidrRep(refusal(
                &SidrReq {
                    request_id: *request_id,
                    pkey: 0,
                    service_id: *service_id,
                    private_data: &[],
                },
                *status,
            )),
        };
        // Encoding fails only for a header of another message, or for too much private data.
        let written = wire::encode(&header, &message, mad);
        debug_assert!(written.is_ok());
    }
}
