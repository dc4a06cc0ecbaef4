// SPDX-License-Identifier: GPL-2.0

//! The checks of a SIDR_REQ, in their order (IBTA 12.11).

use super::{
    acceptor::{Entry, KnownSidr, SidrAcceptor},
    answer::{Answer, Response},
    offer::Declined,
    request::{RequestEnd, Taken},
};
use crate::{
    cm::DestroyCause,
    dropped::Dropped,
    sidr::{Resolution, Status},
    wire::{Header, SidrReq},
};

/// The result of the checks of a SIDR_REQ.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // A value lives on the stack, for one call.
pub enum SidrRequest<E, L> {
    /// A repeated SIDR_REQ of this endpoint, whose user has not answered yet, for
    /// [`duplicate_req`](Resolution::duplicate_req).
    Duplicate(E),
    /// A repeated SIDR_REQ that was answered before by this resolution, for
    /// [`duplicate_req`](Resolution::duplicate_req).
    Answered(Resolution),
    /// A new request, with the endpoint that was created for it and the listener whose consumer it
    /// is offered to.
    New(E, L),
    /// The SIDR_REQ is refused.
    Refused(Response),
    /// There is nothing to do: the same SIDR_REQ is being handled already, or the device is gone.
    Nothing,
}

impl RequestEnd {
    /// Returns the end of an endpoint whose SIDR_REQ the consumer has not taken. A SIDR_REQ is
    /// never parked.
    pub fn sidr_req(declined: Declined) -> Self {
        Self {
            reject: None,
            cause: match declined {
                Declined::NoRoom => DestroyCause::NoMemory,
                Declined::OverLimit | Declined::Refused | Declined::Gone => DestroyCause::User,
            },
            dropped: None,
        }
    }
}

/// Decides about a SIDR_REQ: it may be repeated, be refused by a check, or become a request to its
/// listener.
pub fn sidr_request<N: SidrAcceptor>(
    node: &mut N,
    header: &Header,
    req: &SidrReq<'_>,
) -> SidrRequest<N::Endpoint, N::Listener> {
    match node.known() {
        KnownSidr::Pending(endpoint) => return SidrRequest::Duplicate(endpoint),
        KnownSidr::Answered(answer) if answer.is_same_req(header, req) => {
            return SidrRequest::Answered(answer)
        }
        // A peer that was restarted uses the request id of an old request for another one.
        KnownSidr::Answered(_) | KnownSidr::Nothing => {}
    }
    if !node.find_reply_path() {
        return SidrRequest::Refused(Response::Drop(Dropped::Unreachable));
    }
    if !node.is_served(req.service_id) {
        let answer = Answer::sidr(req, Status::UNSUPPORTED);
        return SidrRequest::Refused(Response::Answer(answer));
    }
    match take(node) {
        Ok(Some((child, listener))) => SidrRequest::New(child, listener),
        Ok(None) => SidrRequest::Nothing,
        // All errors after the service id was found are answered with the same status.
        Err(_) => {
            let answer = Answer::sidr(req, Status::REJECT);
            SidrRequest::Refused(Response::Answer(answer))
        }
    }
}

/// Checks a SIDR_REQ that is not a duplicate, creates its endpoint, and enters it.
fn take<N: SidrAcceptor>(node: &mut N) -> Result<Taken<N>, Declined> {
    let listener = node.listener().ok_or(Declined::Refused)?;
    if !node.takes_datagrams(&listener) {
        return Err(Declined::Refused);
    }
    node.check_backlog(&listener)?;
    let child = node.create(&listener)?;
    match node.enter(&child) {
        Entry::New => Ok(Some((child, listener))),
        Entry::Gone => Ok(None),
        // Another task is handling the same SIDR_REQ at this moment.
        Entry::Duplicate => {
            node.discard(child);
            Ok(None)
        }
    }
}
