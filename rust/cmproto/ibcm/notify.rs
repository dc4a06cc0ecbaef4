// SPDX-License-Identifier: GPL-2.0

//! Events of a connection's queue pair.

use crate::{cm::State, errno::Errno};

/// The event `IB_EVENT_COMM_EST`: data arrived before the RTU.
pub const COMM_EST: u32 = 4;
/// The event `IB_EVENT_PATH_MIG`: the queue pair uses its alternate path.
pub const PATH_MIG: u32 = 6;

/// The consequence of an event of the queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The connection is established.
    Established,
    /// The connection uses its alternate path, if it has one.
    Migrated,
}

/// Returns the consequence of `event`, an `enum ib_event_type`, for a connection in `state`.
///
/// # Errors
///
/// - [`Errno::EISCONN`] if the connection is established already;
/// - [`Errno::EINVAL`] in another state, or for an event that is of no consequence for a
///   connection.
pub const fn notify(state: State, event: u32) -> Result<Notice, Errno> {
    match (event, state) {
        (COMM_EST, State::RepSent | State::MraRepRcvd) => Ok(Notice::Established),
        (COMM_EST, State::Established) => Err(Errno::EISCONN),
        (PATH_MIG, State::Established) => Ok(Notice::Migrated),
        _ => Err(Errno::EINVAL),
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_ibcm_notify)
)]
mod tests {
    use super::*;

    #[test]
    fn every_state() {
        for state in State::ALL {
            let data = match state {
                State::RepSent | State::MraRepRcvd => Ok(Notice::Established),
                State::Established => Err(Errno::EISCONN),
                _ => Err(Errno::EINVAL),
            };
            assert_eq!(notify(state, COMM_EST), data);
            let path = match state {
                State::Established => Ok(Notice::Migrated),
                _ => Err(Errno::EINVAL),
            };
            assert_eq!(notify(state, PATH_MIG), path);
            for other in [0, 1, 2, 3, 5, 7, 8, u32::MAX] {
                assert_eq!(notify(state, other), Err(Errno::EINVAL));
            }
        }
    }
}
