// SPDX-License-Identifier: GPL-2.0

//! The queue pair of a consumer, as far as the connection manager knows it.

use crate::kext::random;
use cmproto::cma::Qkey;

/// The properties of a consumer's queue pair (QP) that messages and events name.
pub(crate) struct QpInfo {
    /// Starting packet sequence number (PSN) of this end; 24 bits.
    pub(crate) psn: u32,
    /// The QPN, as the consumer named it; 24 bits.
    pub(crate) num: u32,
    /// Q_Key of datagrams.
    pub(crate) qkey: Qkey,
}

impl QpInfo {
    /// Returns the properties before the consumer has named its QP, with a random PSN.
    pub(super) fn new() -> Self {
        Self {
            psn: random::u32() & 0x00ff_ffff,
            num: 0,
            qkey: Qkey::unknown(),
        }
    }
}
