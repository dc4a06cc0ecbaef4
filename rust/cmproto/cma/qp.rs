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
    /// The consumer asks for a connection.
    Asked,
    /// The consumer accepts a REQ, or a REP has arrived.
    Accepted,
    /// The peer has refused, accepting has failed, or the consumer disconnects.
    Ended,
}

/// How a queue pair comes by its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// By the messages of the InfiniBand CM.
    Connected,
    /// It has none, or many.
    Datagram,
    /// By a TCP connection, which the driver gives to the queue pair.
    Iwarp,
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
pub const fn steps(occasion: Occasion, transport: Transport) -> &'static [Step] {
    match (occasion, transport) {
        (Occasion::Created, Transport::Connected | Transport::Iwarp) => {
            &[Step::Full(QpState::Init)]
        }
        // Datagrams need no peer: these are ready at once.
        (Occasion::Created, Transport::Datagram) => &[
            Step::Full(QpState::Init),
            Step::Bare(QpState::Rtr, QpAttrMask::STATE),
            Step::Bare(
                QpState::Rts,
                QpAttrMask(QpAttrMask::STATE.0 | QpAttrMask::SQ_PSN.0),
            ),
        ],
        // Again the first: only now it is known what the peer may do.
        (Occasion::Accepted, Transport::Connected) => &[
            Step::Full(QpState::Init),
            Step::Full(QpState::Rtr),
            Step::Full(QpState::Rts),
        ],
        // The driver does the rest when the connection is there.
        (Occasion::Asked | Occasion::Accepted, Transport::Iwarp) => {
            &[Step::Full(QpState::Init), Step::Full(QpState::Rtr)]
        }
        (Occasion::Asked, _) | (Occasion::Accepted, Transport::Datagram) => &[],
        (Occasion::Ended, _) => &[Step::Bare(QpState::Err, QpAttrMask::STATE)],
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_cma_qp))]
mod tests {
    use super::*;

    fn states(occasion: Occasion, transport: Transport) -> [Option<QpState>; 4] {
        let mut states = [None; 4];
        for (state, step) in states.iter_mut().zip(steps(occasion, transport)) {
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
            states(Occasion::Created, connected),
            [init, None, None, None]
        );
        assert_eq!(states(Occasion::Asked, connected), [None; 4]);
        assert_eq!(
            states(Occasion::Accepted, connected),
            [init, rtr, rts, None]
        );
    }

    #[test]
    fn iwarp_needs_a_queue_pair_that_receives_before_it_asks() {
        let (init, rtr) = (Some(QpState::Init), Some(QpState::Rtr));
        let iwarp = Transport::Iwarp;
        assert_eq!(states(Occasion::Created, iwarp), [init, None, None, None]);
        assert_eq!(states(Occasion::Asked, iwarp), [init, rtr, None, None]);
        assert_eq!(states(Occasion::Accepted, iwarp), [init, rtr, None, None]);
    }

    #[test]
    fn datagrams_are_ready_at_once() {
        let init = Some(QpState::Init);
        let (rtr, rts) = (Some(QpState::Rtr), Some(QpState::Rts));
        let datagram = Transport::Datagram;
        assert_eq!(states(Occasion::Created, datagram), [init, rtr, rts, None]);
        assert_eq!(states(Occasion::Asked, datagram), [None; 4]);
        assert_eq!(states(Occasion::Accepted, datagram), [None; 4]);
    }

    const ALL: [Transport; 3] = [Transport::Connected, Transport::Datagram, Transport::Iwarp];

    #[test]
    fn the_end_needs_nothing_but_the_state() {
        for transport in ALL {
            assert_eq!(
                steps(Occasion::Ended, transport),
                [Step::Bare(QpState::Err, QpAttrMask::STATE)]
            );
        }
    }

    #[test]
    fn every_change_names_the_state() {
        let occasions = [
            Occasion::Created,
            Occasion::Asked,
            Occasion::Accepted,
            Occasion::Ended,
        ];
        for occasion in occasions {
            for transport in ALL {
                for step in steps(occasion, transport) {
                    if let Step::Bare(_, mask) = step {
                        assert!(mask.contains(QpAttrMask::STATE));
                    }
                }
            }
        }
    }
}
