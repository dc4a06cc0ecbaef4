// SPDX-License-Identifier: GPL-2.0

//! Tests of service id resolution.

mod content;
mod properties;
mod table;

use super::*;
use crate::{
    cm::{Counter, DestroyCause, State},
    errno::Errno,
    time::{Duration, Instant},
    wire::{self, Attribute, Header, Message, SidrRep, SidrReq, MAD_LEN},
};

const ID: u32 = 0x1234_5678;
const TID: u64 = 0x0101_0101_1234_5678;
const SERVICE: u64 = 0x0111_1234;

fn at(ms: u64) -> Instant {
    Instant::from_micros(ms * 1_000)
}

fn question() -> SidrReq<'static> {
    SidrReq {
        request_id: ID,
        pkey: 0xffff,
        service_id: SERVICE,
        private_data: b"question",
    }
}

fn answer(status: Status) -> SidrRep<'static> {
    SidrRep {
        qpn: 0x11,
        qkey: 0x0123_4567,
        private_data: b"answer",
        ..refusal(&question(), status)
    }
}

/// A situation of a resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Situation {
    Fresh,
    ReqSent,
    ReqRcvd,
    Answered,
    /// Over, on the requesting side.
    Resolved,
    /// Over, on the responding side.
    Forgotten,
}

impl Situation {
    const ALL: [Self; 6] = [
        Self::Fresh,
        Self::ReqSent,
        Self::ReqRcvd,
        Self::Answered,
        Self::Resolved,
        Self::Forgotten,
    ];

    fn state(self) -> State {
        match self {
            Self::ReqSent => State::SidrReqSent,
            Self::ReqRcvd => State::SidrReqRcvd,
            Self::Fresh | Self::Answered | Self::Resolved | Self::Forgotten => State::Idle,
        }
    }

    /// Returns a resolution that has come into the situation by the shortest way, all of it at time
    /// 0.
    fn resolution(self) -> Resolution {
        let mut r;
        match self {
            Self::Fresh => r = Resolution::new(ID, TID),
            Self::ReqSent => {
                r = Self::Fresh.resolution();
                let params = ResolveParams::new(SERVICE, 0xffff);
                let _ = r.resolve(&params, b"question", at(0)).unwrap();
            }
            Self::ReqRcvd => {
                let hdr = Header::new(Attribute::SidrReq, TID);
                r = Resolution::from_req(&hdr, &question(), Resolution::MEMORY);
            }
            Self::Answered => {
                r = Self::ReqRcvd.resolution();
                let params = ReplyParams::success(0x11, 0x0123_4567);
                let _ = r.reply(&params, b"info", b"answer", at(0)).unwrap();
            }
            Self::Resolved => {
                r = Self::ReqSent.resolution();
                let _ = r.receive(&Message::SidrRep(answer(Status::SUCCESS)), at(0));
            }
            Self::Forgotten => {
                r = Self::Answered.resolution();
                let _ = r.timeout(r.deadline().unwrap());
            }
        }
        assert_eq!(r.state(), self.state());
        r
    }
}
