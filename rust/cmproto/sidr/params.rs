// SPDX-License-Identifier: GPL-2.0

//! What a user gives to `resolve` and `reply`.

use super::status::Status;
use crate::time::Duration;

/// What the asking side wants to know: the contents of a SIDR_REQ (IBTA 12.11.1), in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolveParams {
    /// Service id to resolve.
    pub service_id: u64,
    /// Partition key.
    pub pkey: u16,
    /// Time between two sends.
    pub timeout: Duration,
    /// Number of sends after the first one (0 to 15; more means 15).
    pub max_cm_retries: u8,
    /// Longest time that the question is asked again, whatever retries are left.
    pub total: Duration,
}

impl ResolveParams {
    /// The kernel's [`timeout`](Self::timeout).
    pub const TIMEOUT: Duration = Duration::from_millis(4096);
    /// The kernel's [`max_cm_retries`](Self::max_cm_retries).
    pub const MAX_RETRIES: u8 = 15;

    /// A question that is asked 16 times, every 4096 ms, as the kernel does.
    pub const fn new(service_id: u64, pkey: u16) -> Self {
        Self {
            service_id,
            pkey,
            timeout: Self::TIMEOUT,
            max_cm_retries: Self::MAX_RETRIES,
            total: Duration::MAX,
        }
    }
}

/// What the answering side says: the contents of a SIDR_REP (IBTA 12.11.2), in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyParams {
    /// Whether there is a queue pair, and why not.
    pub status: Status,
    /// Number of the queue pair (24 bits; further bits are cut off), 0 if there is none.
    pub qpn: u32,
    /// Q_Key of the queue pair, 0 if there is none.
    pub qkey: u32,
    /// Vendor id of the enhanced connection establishment (24 bits; further bits are cut off).
    pub vendor_id: u32,
    /// Attribute modifier of the enhanced connection establishment.
    pub attr_mod: u32,
}

impl ReplyParams {
    /// A queue pair and its Q_Key.
    pub const fn success(qpn: u32, qkey: u32) -> Self {
        Self {
            qpn,
            qkey,
            ..Self::failure(Status::SUCCESS)
        }
    }

    /// No queue pair, for this reason.
    pub const fn failure(status: Status) -> Self {
        Self {
            status,
            qpn: 0,
            qkey: 0,
            vendor_id: 0,
            attr_mod: 0,
        }
    }
}
