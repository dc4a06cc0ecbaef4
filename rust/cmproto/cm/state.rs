// SPDX-License-Identifier: GPL-2.0

//! States of a communication identifier (IBTA volume 1, 12.9.7).

use crate::numbered::numbered;

numbered! {
    /// State of a communication identifier, with the numbers of the kernel's `enum ib_cm_state`.
    ///
    /// A [`Connection`](super::Connection) is never in [`Listen`](Self::Listen),
    /// [`SidrReqSent`](Self::SidrReqSent) or [`SidrReqRcvd`](Self::SidrReqRcvd), which are states
    /// of listeners and of service id resolution. In these states it refuses every input: a match
    /// over the states names those in which an input has an effect, and treats all others alike.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[repr(u8)]
    pub enum State {
        /// Not used yet, or over for good.
        Idle = 0 => "IDLE",
        /// Listening for requests.
        Listen = 1 => "LISTEN",
        /// Active side: REQ sent.
        ReqSent = 2 => "REQ_SENT",
        /// Passive side: REQ received, and the user has not answered.
        ReqRcvd = 3 => "REQ_RCVD",
        /// Passive side: like [`ReqRcvd`](Self::ReqRcvd), and a repeated REQ is answered with an
        /// MRA.
        MraReqSent = 4 => "MRA_REQ_SENT",
        /// Active side: MRA for the REQ received.
        MraReqRcvd = 5 => "MRA_REQ_RCVD",
        /// Passive side: REP sent.
        RepSent = 6 => "REP_SENT",
        /// Active side: REP received, and the user has not answered.
        RepRcvd = 7 => "REP_RCVD",
        /// Active side: like [`RepRcvd`](Self::RepRcvd), and a repeated REP is answered with an
        /// MRA.
        MraRepSent = 8 => "MRA_REP_SENT",
        /// Passive side: MRA for the REP received.
        MraRepRcvd = 9 => "MRA_REP_RCVD",
        /// Connection established.
        Established = 10 => "ESTABLISHED",
        /// DREQ sent.
        DreqSent = 11 => "DREQ_SENT",
        /// DREQ received, and the user has not answered.
        DreqRcvd = 12 => "DREQ_RCVD",
        /// Connection over, waiting until none of its packets can be in the network any more.
        Timewait = 13 => "TIMEWAIT",
        /// SIDR_REQ sent.
        SidrReqSent = 14 => "SIDR_REQ_SENT",
        /// SIDR_REQ received.
        SidrReqRcvd = 15 => "SIDR_REQ_RCVD",
    }
    /// Returns the kernel's name of the state, for traces.
    fn name -> &'static str
}

impl State {
    /// Returns whether there is neither a connection nor an attempt at one: none was started, the
    /// attempt has failed, or a side has disconnected.
    pub const fn is_over(self) -> bool {
        matches!(
            self,
            Self::Idle | Self::DreqSent | Self::DreqRcvd | Self::Timewait
        )
    }

    /// Returns whether there is a request of the peer to which it has not confirmed the answer.
    pub const fn is_request(self) -> bool {
        matches!(
            self,
            Self::ReqRcvd | Self::MraReqSent | Self::RepSent | Self::MraRepRcvd
        )
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_cm_state)
)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_over_before_its_first_message_and_from_its_end_on() {
        for state in State::ALL {
            assert_eq!(state.is_over(), [0, 11, 12, 13].contains(&(state as u32)));
        }
    }

    #[test]
    fn a_request_is_one_until_it_is_confirmed() {
        for state in State::ALL {
            assert_eq!(state.is_request(), [3, 4, 6, 9].contains(&(state as u32)));
        }
    }

    #[test]
    fn numbers_and_names() {
        for (number, state) in State::ALL.iter().enumerate() {
            assert_eq!(*state as usize, number);
            assert!(State::ALL[..number]
                .iter()
                .all(|other| other.name() != state.name()));
        }
    }
}
