// SPDX-License-Identifier: GPL-2.0

//! The answer of a listener's consumer to a request that it is offered.

use crate::errno::Errno;

/// The place of a request that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request is within the limit of the listener's backlog.
    Queued,
    /// The request is beyond the limit, behind others. It moves up when those are read.
    Parked,
    /// The request takes the place of a parked one, as no more may be parked.
    Replaces,
}

/// The reason why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// There is no memory, or the backlog is full and the request may not be parked. Nothing is
    /// sent to the peer, which tries again.
    NoRoom,
    /// The owner of the listener has as much as it may have.
    OverLimit,
    /// The consumer refuses the request.
    Refused,
    /// The listener has gone. Another one that shares its address may take the request, which is
    /// refused otherwise.
    Gone,
}

impl From<Errno> for Declined {
    /// Converts the error of an allocation or another preparation.
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::ENOMEM => Self::NoRoom,
            Errno::EMFILE => Self::OverLimit,
            _ => Self::Refused,
        }
    }
}

impl From<Declined> for Errno {
    /// Converts the reason into the number that tracepoints report.
    fn from(declined: Declined) -> Self {
        match declined {
            Declined::NoRoom => Self::ENOMEM,
            Declined::OverLimit => Self::EMFILE,
            Declined::Refused | Declined::Gone => Self::ECONNABORTED,
        }
    }
}

/// The answer of a listener's consumer to a request.
pub type Offer = Result<Admission, Declined>;
