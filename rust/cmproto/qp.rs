// SPDX-License-Identifier: GPL-2.0

//! Types of queue pairs.

use crate::{errno::Errno, wire::Transport};

/// Returns a QPN or PSN, cut to 24 bits.
pub const fn low24(value: u32) -> u32 {
    value & 0x00ff_ffff
}

/// The type of a queue pair: a number of `enum ib_qp_type`.
///
/// Every number is possible, because programs choose the type of an id of the port space `IB`
/// freely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QpType(pub u8);

impl QpType {
    /// The type of a listener that takes requests for all types.
    pub const ANY: Self = Self(0);
    /// Reliable connection.
    pub const RC: Self = Self(2);
    /// Unreliable connection.
    pub const UC: Self = Self(3);
    /// Unreliable datagrams.
    pub const UD: Self = Self(4);
    /// Initiator of an extended reliable connection, on the active side.
    pub const XRC_INI: Self = Self(9);
    /// Target of an extended reliable connection, on the passive side.
    pub const XRC_TGT: Self = Self(10);

    /// Returns the type of the queue pair on the active side of a REQ with `transport`.
    pub const fn of_sender(transport: Transport) -> Option<Self> {
        match transport {
            Transport::Rc => Some(Self::RC),
            Transport::Uc => Some(Self::UC),
            Transport::Xrc => Some(Self::XRC_INI),
            Transport::Other(..) => None,
        }
    }

    /// Returns the type of the queue pair on the passive side of a REQ with `transport`.
    pub const fn of_receiver(transport: Transport) -> Option<Self> {
        match transport {
            Transport::Rc => Some(Self::RC),
            Transport::Uc => Some(Self::UC),
            Transport::Xrc => Some(Self::XRC_TGT),
            Transport::Other(..) => None,
        }
    }

    /// Returns the transport of the REQ that connects a queue pair of this type.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a type that does not connect.
    pub const fn transport(self) -> Result<Transport, Errno> {
        match self {
            Self::RC => Ok(Transport::Rc),
            Self::UC => Ok(Transport::Uc),
            Self::XRC_INI => Ok(Transport::Xrc),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns whether a listener of this type takes requests for queue pairs of type `wanted`.
    pub fn takes(self, wanted: Self) -> bool {
        self == Self::ANY || self == wanted
    }
}

impl TryFrom<u32> for QpType {
    type Error = Errno;

    fn try_from(number: u32) -> Result<Self, Errno> {
        u8::try_from(number).map(Self).map_err(|_| Errno::EINVAL)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_qp))]
mod tests {
    use super::*;

    #[test]
    fn connected_types_have_a_transport() {
        for number in 0..=256u32 {
            let wanted = match number {
                2 => Ok(Transport::Rc),
                3 => Ok(Transport::Uc),
                9 => Ok(Transport::Xrc),
                _ => Err(Errno::EINVAL),
            };
            let qp_type = QpType::try_from(number);
            assert_eq!(qp_type.and_then(QpType::transport), wanted);
            if let (Ok(qp_type), Ok(transport)) = (qp_type, wanted) {
                assert_eq!(QpType::of_sender(transport), Some(qp_type));
            }
        }
        assert_eq!(QpType::of_receiver(Transport::Xrc), Some(QpType(10)));
    }

    #[test]
    fn a_listener_of_any_type_takes_all() {
        for wanted in [QpType::RC, QpType::UC, QpType::UD, QpType::XRC_TGT] {
            assert!(QpType::ANY.takes(wanted));
            assert!(wanted.takes(wanted));
            assert!(!QpType::XRC_INI.takes(wanted));
        }
    }
}
