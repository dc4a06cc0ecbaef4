// SPDX-License-Identifier: GPL-2.0

//! The reasons for which a received message is dropped.

use core::ffi::CStr;

use crate::{cm::Counter, numbered::numbered, wire::ParseError};

numbered! {
    /// A reason for which a received message is dropped. It is counted: nothing that a peer sends
    /// is logged.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum Dropped {
        /// The message is shorter than a MAD.
        Truncated => c"truncated",
        /// The MAD header is not one of the CM class.
        Header => c"header",
        /// The CM class has no such message.
        Attribute => c"attribute",
        /// The connection or listener that the message is for does not exist.
        Unknown => c"unknown",
        /// The message names a connection, but not by the ids that the connection's peer uses.
        Mismatch => c"mismatch",
        /// The message names a connection, but does not come from the connection's peer.
        Stranger => c"stranger",
        /// The message is not expected in the state of the connection.
        Unexpected => c"unexpected",
        /// The message is about something that is not supported: an alternate path over RoCE.
        Unsupported => c"unsupported",
        /// The message exceeds a limit: of memory, of a backlog, or of the rate of answers.
        Overload => c"overload",
        /// The sender of the message cannot be reached.
        Unreachable => c"unreachable",
        /// The request was parked beside a full backlog, and has given way to another one.
        Replaced => c"replaced",
    }
    /// Returns the name of the counter.
    fn name -> &'static CStr
}

impl Dropped {
    /// Returns the reason for a drop that `counter` counts, or `None` if `counter` counts something
    /// else.
    pub const fn of(counter: Counter) -> Option<Self> {
        match counter {
            Counter::Unexpected(_) => Some(Self::Unexpected),
            Counter::Mismatch(_) => Some(Self::Mismatch),
            Counter::Unsupported(_) => Some(Self::Unsupported),
            // Repeated messages have their own counters.
            Counter::Duplicate(_) | Counter::Retry(_) | Counter::Repeat(_) => None,
        }
    }
}

impl From<ParseError> for Dropped {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::Truncated(_) => Self::Truncated,
            ParseError::BaseVersion(_)
            | ParseError::Class(_)
            | ParseError::ClassVersion(_)
            | ParseError::Method(_) => Self::Header,
            ParseError::Attribute(_) => Self::Attribute,
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_dropped))]
mod tests {
    use super::*;
    use crate::wire::Attribute;

    #[test]
    fn numbers_and_names() {
        for (number, dropped) in Dropped::ALL.iter().enumerate() {
            assert_eq!(*dropped as usize, number);
            assert!(Dropped::ALL[..number]
                .iter()
                .all(|other| other.name() != dropped.name()));
        }
    }

    #[test]
    fn all_that_is_dropped_is_counted_once() {
        let of = Attribute::Rtu;
        let counters = [
            (Counter::Unexpected(of), Some(Dropped::Unexpected)),
            (Counter::Mismatch(of), Some(Dropped::Mismatch)),
            (Counter::Unsupported(of), Some(Dropped::Unsupported)),
            (Counter::Duplicate(of), None),
            (Counter::Retry(of), None),
            (Counter::Repeat(of), None),
        ];
        for (counter, dropped) in counters {
            assert_eq!(Dropped::of(counter), dropped);
        }
        let errors = [
            (ParseError::Truncated(128), Dropped::Truncated),
            (ParseError::BaseVersion(2), Dropped::Header),
            (ParseError::Class(6), Dropped::Header),
            (ParseError::ClassVersion(1), Dropped::Header),
            (ParseError::Method(0x83), Dropped::Header),
            (ParseError::Attribute(0xf), Dropped::Attribute),
        ];
        for (error, dropped) in errors {
            assert_eq!(Dropped::from(error), dropped);
        }
    }
}
