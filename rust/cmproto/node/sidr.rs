// SPDX-License-Identifier: GPL-2.0

//! What a SIDR_REQ must pass, and in which order (IBTA 12.11).

use super::{
    answer::{Answer, Response},
    passive::{Entry, KnownSidr, PassiveSidr},
    request::{Taken, Unwanted},
};
use crate::{
    cm::DestroyCause,
    dropped::Dropped,
    errno::Errno,
    sidr::{Resolution, Status},
    wire::{Header, SidrReq},
};

/// What becomes of a SIDR_REQ.
#[derive(Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // It lives on the stack, for one call.
pub enum SidrRequest<E, L> {
    /// It is the request of this endpoint, which has not answered, and has arrived again:
    /// [`duplicate_req`](Resolution::duplicate_req).
    Duplicate(E),
    /// It was answered before, and has arrived again: [`duplicate_req`](Resolution::duplicate_req).
    Answered(Resolution),
    /// It is a new request. This endpoint was created for it, and is offered to this listener's consumer.
    New(E, L),
    /// It has no effect.
    Refused(Response),
    /// It is being handled already, or its device has gone. There is nothing to do.
    Nothing,
}

impl Unwanted {
    /// What is done when the consumer has refused a SIDR_REQ with `errno`. These are not parked.
    pub fn sidr_req(errno: Errno) -> Self {
        Self {
            reject: None,
            cause: match errno {
                Errno::ENOMEM => DestroyCause::NoMemory,
                _ => DestroyCause::User,
            },
            dropped: None,
        }
    }
}

/// Decides what becomes of a SIDR_REQ: whether it came before, or may become a request to its listener.
pub fn sidr_request<N: PassiveSidr>(
    node: &mut N,
    header: &Header,
    req: &SidrReq<'_>,
) -> SidrRequest<N::Endpoint, N::Listener> {
    match node.known() {
        KnownSidr::Asked(endpoint) => return SidrRequest::Duplicate(endpoint),
        KnownSidr::Answered(answer) if answer.is_same_req(header, req) => {
            return SidrRequest::Answered(answer)
        }
        // A peer that has started anew uses the number of an old request for another one.
        KnownSidr::Answered(_) | KnownSidr::Nothing => {}
    }
    if !node.find_sender() {
        return SidrRequest::Refused(Response::Drop(Dropped::Unreachable));
    }
    if !node.is_served(req.service_id) {
        let answer = Answer::sidr(req, Status::UNSUPPORTED);
        return SidrRequest::Refused(Response::Answer(answer));
    }
    match take(node) {
        Ok(Some((child, listener))) => SidrRequest::New(child, listener),
        Ok(None) => SidrRequest::Nothing,
        // Whatever goes wrong once there is a listener for the service.
        Err(_) => {
            let answer = Answer::sidr(req, Status::REJECT);
            SidrRequest::Refused(Response::Answer(answer))
        }
    }
}

/// Makes a request of a SIDR_REQ that is not known.
fn take<N: PassiveSidr>(node: &mut N) -> Result<Taken<N>, Errno> {
    let listener = node.listener()?;
    if !node.takes_datagrams(&listener) {
        return Err(Errno::EINVAL);
    }
    node.room(&listener)?;
    let child = node.create(&listener)?;
    match node.enter(&child) {
        Entry::New => Ok(Some((child, listener))),
        Entry::Gone => Ok(None),
        // The same SIDR_REQ is being handled at this moment.
        Entry::Duplicate => {
            node.discard(child);
            Ok(None)
        }
    }
}
