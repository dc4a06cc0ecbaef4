// SPDX-License-Identifier: GPL-2.0

//! The state transitions of a kernel consumer's queue pair, and when the communication manager
//! makes them.
//!
//! A program makes them itself, with the attributes that it asks for. A part of the kernel creates
//! its queue pair with the communication manager, and leaves the transitions to it.

use crate::cm::{qp_attr_mask, QpState};

/// A stage in the life of a queue pair or its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QpStage {
    /// The queue pair was created.
    Created,
    /// The consumer requests a connection.
    Connecting,
    /// The consumer accepts a REQ, or a REP has arrived.
    Accepting,
    /// The peer has refused, the accept has failed, or the consumer disconnects.
    Ended,
}

/// The way in which a queue pair is connected with its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The messages of the InfiniBand CM connect it.
    Connected,
    /// The queue pair is not connected.
    Datagram,
    /// The driver gives it a TCP connection.
    Iwarp,
}

/// A state transition of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A transition to this state, with all attributes that are known for it.
    Full(QpState),
    /// A transition to this state, with these attributes only, which are zero except for the state.
    Bare(QpState, u32),
}

/// Returns the state transitions of a queue pair at a stage, in their order.
pub const fn steps(stage: QpStage, transport: Transport) -> &'static [Step] {
    match (stage, transport) {
        (QpStage::Created, Transport::Connected | Transport::Iwarp) => &[Step::Full(QpState::Init)],
        // Datagrams need no peer, so that the queue pair is ready at once.
        (QpStage::Created, Transport::Datagram) => &[
            Step::Full(QpState::Init),
            Step::Bare(QpState::Rtr, qp_attr_mask::STATE),
            Step::Bare(QpState::Rts, qp_attr_mask::STATE | qp_attr_mask::SQ_PSN),
        ],
        // The transition to INIT is repeated, because only now it is known which operations the
        // peer may use.
        (QpStage::Accepting, Transport::Connected) => &[
            Step::Full(QpState::Init),
            Step::Full(QpState::Rtr),
            Step::Full(QpState::Rts),
        ],
        // The driver does the rest when the connection is established.
        (QpStage::Connecting | QpStage::Accepting, Transport::Iwarp) => {
            &[Step::Full(QpState::Init), Step::Full(QpState::Rtr)]
        }
        (QpStage::Connecting, _) | (QpStage::Accepting, Transport::Datagram) => &[],
        (QpStage::Ended, _) => &[Step::Bare(QpState::Err, qp_attr_mask::STATE)],
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_cma_qp))]
mod tests {
    use super::*;

    fn states(stage: QpStage, transport: Transport) -> [Option<QpState>; 4] {
        let mut states = [None; 4];
        for (state, step) in states.iter_mut().zip(steps(stage, transport)) {
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
        let connected = Transport::Connected;
        assert_eq!(
            states(QpStage::Created, connected),
            [init, None, None, None]
        );
        assert_eq!(states(QpStage::Connecting, connected), [None; 4]);
        assert_eq!(
            states(QpStage::Accepting, connected),
            [init, rtr, rts, None]
        );
    }

    #[test]
    fn iwarp_needs_a_queue_pair_that_receives_before_it_asks() {
        let (init, rtr) = (Some(QpState::Init), Some(QpState::Rtr));
        let iwarp = Transport::Iwarp;
        assert_eq!(states(QpStage::Created, iwarp), [init, None, None, None]);
        assert_eq!(states(QpStage::Connecting, iwarp), [init, rtr, None, None]);
        assert_eq!(states(QpStage::Accepting, iwarp), [init, rtr, None, None]);
    }

    #[test]
    fn datagrams_are_ready_at_once() {
        let init = Some(QpState::Init);
        let (rtr, rts) = (Some(QpState::Rtr), Some(QpState::Rts));
        let datagram = Transport::Datagram;
        assert_eq!(states(QpStage::Created, datagram), [init, rtr, rts, None]);
        assert_eq!(states(QpStage::Connecting, datagram), [None; 4]);
        assert_eq!(states(QpStage::Accepting, datagram), [None; 4]);
    }

    const ALL: [Transport; 3] = [Transport::Connected, Transport::Datagram, Transport::Iwarp];

    #[test]
    fn the_end_needs_nothing_but_the_state() {
        for transport in ALL {
            assert_eq!(
                steps(QpStage::Ended, transport),
                [Step::Bare(QpState::Err, qp_attr_mask::STATE)]
            );
        }
    }

    #[test]
    fn every_change_names_the_state() {
        let stages = [
            QpStage::Created,
            QpStage::Connecting,
            QpStage::Accepting,
            QpStage::Ended,
        ];
        for stage in stages {
            for transport in ALL {
                for step in steps(stage, transport) {
                    if let Step::Bare(_, mask) = step {
                        assert!(mask & qp_attr_mask::STATE != 0);
                    }
                }
            }
        }
    }
}
