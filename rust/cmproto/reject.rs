// SPDX-License-Identifier: GPL-2.0

//! The reasons for which a connection is rejected (IBTA 12.6.7.2, annex A19 for 35).

use core::{ffi::CStr, fmt};

/// The reason of a REJ. It is any 16-bit number; most numbers have no name.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reason(pub u16);

/// Converts a text that ends with a zero byte to a C string.
const fn terminated(text: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal;)*) => {
        impl Reason {
            $($(#[$doc])* pub const $name: Reason = Reason($code);)*

            /// Returns the text of `rdma_reject_msg()` for this reason.
            pub const fn description(self) -> &'static str {
                match self.0 {
                    $($code => $text,)*
                    _ => "unrecognized reason",
                }
            }

            /// Returns the text of `rdma_reject_msg()` for this reason, as a C string.
            pub const fn message(self) -> &'static CStr {
                match self.0 {
                    $($code => terminated(concat!($text, "\0")),)*
                    _ => c"unrecognized reason",
                }
            }
        }
    };
}

reasons! {
    /// No queue pair is available.
    NO_QP = 1, "no QP";
    /// No end-to-end context is available.
    NO_EEC = 2, "no EEC";
    /// No resources are available.
    NO_RESOURCES = 3, "no resources";
    /// The peer did not answer in time. The ARI is the CA GUID of the sender.
    TIMEOUT = 4, "timeout";
    /// The request is not supported.
    UNSUPPORTED = 5, "unsupported";
    /// The communication id does not exist.
    INVALID_COMM_ID = 6, "invalid comm ID";
    /// The communication ids do not belong to the same connection.
    INVALID_COMM_INSTANCE = 7, "invalid comm instance";
    /// There is no listener for the service id.
    INVALID_SERVICE_ID = 8, "invalid service ID";
    /// The listener uses another transport.
    INVALID_TRANSPORT_TYPE = 9, "invalid transport type";
    /// The peer's queue pair or communication id belongs to a connection that still exists.
    STALE_CONN = 10, "stale conn";
    /// The reliable datagram channel does not exist.
    RDC_NOT_EXIST = 11, "RDC not exist";
    /// The primary remote GID is not acceptable.
    INVALID_GID = 12, "invalid GID";
    /// The primary remote LID is not acceptable.
    INVALID_LID = 13, "invalid LID";
    /// The primary service level is not acceptable.
    INVALID_SL = 14, "invalid SL";
    /// The primary traffic class is not acceptable.
    INVALID_TRAFFIC_CLASS = 15, "invalid traffic class";
    /// The primary hop limit is not acceptable.
    INVALID_HOP_LIMIT = 16, "invalid hop limit";
    /// The primary packet rate is not acceptable.
    INVALID_PACKET_RATE = 17, "invalid packet rate";
    /// The alternate remote GID is not acceptable.
    INVALID_ALT_GID = 18, "invalid alt GID";
    /// The alternate remote LID is not acceptable.
    INVALID_ALT_LID = 19, "invalid alt LID";
    /// The alternate service level is not acceptable.
    INVALID_ALT_SL = 20, "invalid alt SL";
    /// The alternate traffic class is not acceptable.
    INVALID_ALT_TRAFFIC_CLASS = 21, "invalid alt traffic class";
    /// The alternate hop limit is not acceptable.
    INVALID_ALT_HOP_LIMIT = 22, "invalid alt hop limit";
    /// The alternate packet rate is not acceptable.
    INVALID_ALT_PACKET_RATE = 23, "invalid alt packet rate";
    /// The connection manager to ask is at another port.
    PORT_CM_REDIRECT = 24, "port CM redirect";
    /// The port to connect to is another one.
    PORT_REDIRECT = 25, "port redirect";
    /// The path MTU is not acceptable.
    INVALID_MTU = 26, "invalid MTU";
    /// There are not enough responder resources.
    INSUFFICIENT_RESP_RESOURCES = 27, "insufficient resp resources";
    /// The program has rejected the connection.
    CONSUMER_DEFINED = 28, "consumer defined";
    /// The RNR retry count is not acceptable.
    INVALID_RNR_RETRY = 29, "invalid RNR retry";
    /// The local communication id is in use already.
    DUPLICATE_LOCAL_COMM_ID = 30, "duplicate local comm ID";
    /// The class version is not supported.
    INVALID_CLASS_VERSION = 31, "invalid class version";
    /// The primary flow label is not acceptable.
    INVALID_FLOW_LABEL = 32, "invalid flow label";
    /// The alternate flow label is not acceptable.
    INVALID_ALT_FLOW_LABEL = 33, "invalid alt flow label";
    /// The vendor's option (ECE) is not supported.
    VENDOR_OPTION_NOT_SUPPORTED = 35, "vendor option is not supported";
}

impl Reason {
    /// The number of [slots](Self::slot).
    pub const SLOTS: usize = 36;

    /// Returns the number of the counter of this reason: that of the reason, or 0 if it has no
    /// name.
    pub const fn slot(self) -> usize {
        match self.0 {
            1..=33 | 35 => self.0 as usize,
            _ => 0,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.description())
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_reject))]
mod tests {
    use super::*;
    use crate::testing::text;

    #[test]
    fn every_reason_has_a_text() {
        for code in 0..=u16::MAX {
            let known = matches!(code, 1..=33 | 35);
            let description = Reason(code).description();
            assert_eq!((code, description != "unrecognized reason"), (code, known));
            let slot = if known { usize::from(code) } else { 0 };
            assert_eq!((code, Reason(code).slot()), (code, slot));
            assert!(slot < Reason::SLOTS);
            assert_eq!(
                (code, Reason(code).message().to_bytes()),
                (code, description.as_bytes())
            );
        }
        assert_eq!(Reason::STALE_CONN, Reason(10));
        assert_eq!(*text(Reason::CONSUMER_DEFINED), *"28 (consumer defined)");
    }
}
