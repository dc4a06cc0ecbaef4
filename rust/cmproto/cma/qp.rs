// SPDX-License-Identifier: GPL-2.0

//! Which states the connection manager takes a kernel consumer's queue pair through, and when.
//!
//! A program does this itself, with the attributes that it asks for. A part of the kernel creates
//! its queue pair with the connection manager and leaves the rest to it.

use crate::cm::{QpAttrMask, QpState};

/// What happens to a queue pair or its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// The queue pair was created.
    Created,
    /// The consumer accepts a REQ, or a REP has arrived.
    Accepted,
    /// The peer has refused, accepting has failed, or the consumer disconnects.
    Ended,
}

/// A change of a queue pair's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the state, with all attributes that are known for it.
    Full(QpState),
    /// To the state, with only these attributes, which are zero but for the state.
    Bare(QpState, QpAttrMask),
}

/// The changes of the state of a queue pair on an occasion, in their order.
pub const fn steps(occasion: Occasion, is_datagram: bool) -> &'static [Step] {
    match (occasion, is_datagram) {
        (Occasion::Created, false) => &[Step::Full(QpState::Init)],
        // Datagrams need no peer: these are ready at once.
        (Occasion::Created, true) => &[
            Step::Full(QpState::Init),
            Step::Bare(QpState::Rtr, QpAttrMask::STATE),
            Step::Bare(
                QpState::Rts,
                QpAttrMask(QpAttrMask::STATE.0 | QpAttrMask::SQ_PSN.0),
            ),
        ],
        // Again the first: only now it is known what the peer may do.
        (Occasion::Accepted, false) => &[
            Step::Full(QpState::Init),
            Step::Full(QpState::Rtr),
            Step::Full(QpState::Rts),
        ],
        (Occasion::Accepted, true) => &[],
        (Occasion::Ended, _) => &[Step::Bare(QpState::Err, QpAttrMask::STATE)],
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_cma_qp))]
mod tests {
    use super::*;

    fn states(occasion: Occasion, is_datagram: bool) -> [Option<QpState>; 4] {
        let mut states = [None; 4];
        for (state, step) in states.iter_mut().zip(steps(occasion, is_datagram)) {
            *state = Some(match step {
                Step::Full(to) | Step::Bare(to, _) => *to,
            });
        }
        states
    }

    #[test]
    fn a_connection_is_ready_when_it_is_accepted() {
        let init = Some(QpState::Init);
        let (rtr, rts) = (Some(QpState::Rtr), Some(QpState::Rts));
        assert_eq!(states(Occasion::Created, false), [init, None, None, None]);
        assert_eq!(states(Occasion::Accepted, false), [init, rtr, rts, None]);
    }

    #[test]
    fn datagrams_are_ready_at_once() {
        let init = Some(QpState::Init);
        let (rtr, rts) = (Some(QpState::Rtr), Some(QpState::Rts));
        assert_eq!(states(Occasion::Created, true), [init, rtr, rts, None]);
        assert_eq!(states(Occasion::Accepted, true), [None; 4]);
    }

    #[test]
    fn the_end_needs_nothing_but_the_state() {
        for is_datagram in [false, true] {
            assert_eq!(
                steps(Occasion::Ended, is_datagram),
                [Step::Bare(QpState::Err, QpAttrMask::STATE)]
            );
        }
    }

    #[test]
    fn every_change_names_the_state() {
        for occasion in [Occasion::Created, Occasion::Accepted, Occasion::Ended] {
            for is_datagram in [false, true] {
                for step in steps(occasion, is_datagram) {
                    if let Step::Bare(_, mask) = step {
                        assert!(mask.contains(QpAttrMask::STATE));
                    }
                }
            }
        }
    }
}
