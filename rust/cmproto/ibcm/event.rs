// SPDX-License-Identifier: GPL-2.0

//! The events of the InfiniBand CM, as its consumers see them.

use crate::{cm, sidr};

/// An event; the numbers are those of `enum ib_cm_event_type`. Two events of alternate
/// paths are missing: consumers send no LAP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventType {
    /// A REQ was not answered.
    ReqError = 0,
    /// A REQ for a listener was received.
    ReqReceived = 1,
    /// A REP was not answered.
    RepError = 2,
    /// A REP was received.
    RepReceived = 3,
    /// An RTU was received.
    RtuReceived = 4,
    /// The consumer has notified that data arrived before the RTU.
    UserEstablished = 5,
    /// A DREQ was not answered.
    DreqError = 6,
    /// A DREQ was received.
    DreqReceived = 7,
    /// A DREP was received.
    DrepReceived = 8,
    /// The time wait has ended.
    TimewaitExit = 9,
    /// An MRA was received.
    MraReceived = 10,
    /// A REJ was received.
    RejReceived = 11,
    /// A LAP was received, and its path is used.
    LapReceived = 13,
    /// A SIDR_REQ was not answered.
    SidrReqError = 15,
    /// A SIDR_REQ for a listener was received.
    SidrReqReceived = 16,
    /// A SIDR_REP was received.
    SidrRepReceived = 17,
}

impl EventType {
    /// Returns whether the event is that a message of the consumer was not answered.
    pub const fn is_send_error(self) -> bool {
        matches!(
            self,
            Self::ReqError | Self::RepError | Self::DreqError | Self::SidrReqError
        )
    }
}

impl From<cm::Event> for EventType {
    fn from(event: cm::Event) -> Self {
        match event {
            cm::Event::RepReceived => Self::RepReceived,
            cm::Event::RtuReceived => Self::RtuReceived,
            cm::Event::UserEstablished => Self::UserEstablished,
            cm::Event::RejReceived { .. } => Self::RejReceived,
            cm::Event::ReqError => Self::ReqError,
            cm::Event::RepError => Self::RepError,
            cm::Event::DreqReceived => Self::DreqReceived,
            // In the place of an event that this API does not have: the connection is over.
            cm::Event::DreqError | cm::Event::LinkDown => Self::DreqError,
            cm::Event::DrepReceived => Self::DrepReceived,
            cm::Event::TimewaitExit => Self::TimewaitExit,
            cm::Event::MraReceived => Self::MraReceived,
            cm::Event::LapReceived => Self::LapReceived,
        }
    }
}

impl From<sidr::Event> for EventType {
    fn from(event: sidr::Event) -> Self {
        match event {
            sidr::Event::RepReceived { .. } => Self::SidrRepReceived,
            sidr::Event::ReqError => Self::SidrReqError,
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_ibcm_event)
)]
mod tests {
    use super::*;
    use crate::reject::Reason;

    #[test]
    fn numbers() {
        let reason = Reason::CONSUMER_DEFINED;
        for (event, number) in [
            (cm::Event::ReqError, 0),
            (cm::Event::RepError, 2),
            (cm::Event::RepReceived, 3),
            (cm::Event::RtuReceived, 4),
            (cm::Event::UserEstablished, 5),
            (cm::Event::DreqError, 6),
            (cm::Event::LinkDown, 6),
            (cm::Event::DreqReceived, 7),
            (cm::Event::DrepReceived, 8),
            (cm::Event::TimewaitExit, 9),
            (cm::Event::MraReceived, 10),
            (cm::Event::RejReceived { reason }, 11),
            (cm::Event::LapReceived, 13),
        ] {
            let told = EventType::from(event);
            assert_eq!(told as u32, number);
            assert_eq!(told.is_send_error(), matches!(number, 0 | 2 | 6));
        }
        let status = sidr::Status::SUCCESS;
        let answer = sidr::Event::RepReceived { status };
        assert_eq!(EventType::from(answer), EventType::SidrRepReceived);
        let silence = EventType::from(sidr::Event::ReqError);
        assert_eq!(silence as u32, 15);
        assert!(silence.is_send_error());
    }
}
