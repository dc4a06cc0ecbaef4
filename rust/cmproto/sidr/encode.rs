// SPDX-License-Identifier: GPL-2.0

//! Encoding of the messages of a resolution, for the first time or again.

use super::{
    action::Outgoing,
    resolution::{Resolution, Sent},
    status::Status,
};
use crate::{
    bytes::fill,
    errno::Errno,
    wire::{self, Header, Message, SidrRep, SidrReq, INFO_LEN, MAD_LEN},
};

/// Returns the SIDR_REP to a SIDR_REQ for which no resolution was created, with
/// [`Status::UNSUPPORTED`] if nobody listens. It is sent with the transaction id of the SIDR_REQ.
pub const fn refusal(req: &SidrReq<'_>, status: Status) -> SidrRep<'static> {
    SidrRep {
        request_id: req.request_id,
        status: status.0,
        info_len: 0,
        vendor_id: 0,
        qpn: 0,
        service_id: req.service_id,
        qkey: 0,
        info: &[0; INFO_LEN],
        private_data: &[],
    }
}

impl Resolution {
    /// Writes the message of an [`Action::Send`](super::Action::Send) to `buf`, which must be all
    /// zeros.
    ///
    /// A message that is sent again has the same bytes each time.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the resolution was never asked to send this message. `buf` is all zeros then.
    pub fn encode(&self, message: Outgoing, buf: &mut [u8; MAD_LEN]) -> Result<(), Errno> {
        let (info, private_data) = self.payload.of(message);
        let mut hdr = Header::new(message.attribute(), self.tid());
        let req = SidrReq {
            request_id: self.request_id(),
            pkey: self.pkey(),
            service_id: self.service_id(),
            private_data,
        };
        let mut field = [0; INFO_LEN];
        let content = match (message, self.sent()) {
            (Outgoing::Req, Sent::Req) => Message::SidrReq(req),
            (Outgoing::Rep, Sent::Rep(params)) => {
                hdr.attr_mod = params.attr_mod;
                // [`Resolution::reply`] accepts no more information than fits into the field.
                fill(&mut field, info);
                Message::SidrRep(SidrRep {
                    info_len: u8::try_from(info.len()).unwrap_or(0),
                    vendor_id: params.vendor_id,
                    qpn: params.qpn,
                    qkey: params.qkey,
                    info: &field,
                    private_data,
                    ..refusal(&req, params.status)
                })
            }
            (Outgoing::Req | Outgoing::Rep, _) => {
                return Err(Errno::EINVAL);
            }
        };
        wire::encode(&hdr, &content, buf).map_err(|_| Errno::EINVAL)
    }
}
