// SPDX-License-Identifier: GPL-2.0

//! Parameters of [`Resolution::resolve`](super::Resolution::resolve) and
//! [`Resolution::reply`](super::Resolution::reply).

use super::status::Status;
use crate::time::Duration;

/// Parameters of a SIDR_REQ (IBTA 12.11.1), in host order, and of its retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResolveParams {
    /// Service id to resolve.
    pub service_id: u64,
    /// Partition key.
    pub pkey: u16,
    /// Interval between two sends.
    pub timeout: Duration,
    /// Number of retries after the first send, 0 to 15. More means 15.
    pub max_cm_retries: u8,
    /// Time after which the SIDR_REQ is given up, even if there are retries left.
    pub total: Duration,
}

impl ResolveParams {
    /// Default of [`timeout`](Self::timeout), as in the kernel.
    pub const TIMEOUT: Duration = Duration::from_millis(4096);
    /// Default of [`max_cm_retries`](Self::max_cm_retries), as in the kernel.
    pub const MAX_RETRIES: u8 = 15;

    /// Creates the parameters of a SIDR_REQ that is sent 16 times, every 4096 ms, as by the kernel.
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

/// Contents of a SIDR_REP (IBTA 12.11.2), in host order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyParams {
    /// Status: success, or the reason of the failure.
    pub status: Status,
    /// QPN, 24 bits (further bits are cut off). 0 if there is no queue pair.
    pub qpn: u32,
    /// Q_Key of the queue pair. 0 if there is no queue pair.
    pub qkey: u32,
    /// Vendor id of the enhanced connection establishment, 24 bits (further bits are cut off).
    pub vendor_id: u32,
    /// Attribute modifier of the enhanced connection establishment.
    pub attr_mod: u32,
}

impl ReplyParams {
    /// Creates a successful answer with the QPN and Q_Key of a queue pair.
    pub const fn success(qpn: u32, qkey: u32) -> Self {
        Self {
            qpn,
            qkey,
            ..Self::failure(Status::SUCCESS)
        }
    }

    /// Creates an answer without a queue pair, for the reason `status`.
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
