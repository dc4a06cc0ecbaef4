// SPDX-License-Identifier: GPL-2.0

//! The membership of an endpoint in a multicast group.

use crate::{
    ib::sa::{McMember, SaMembership},
    kext::ip_multicast::IpMembership,
};
use kernel::prelude::*;

/// The membership of an endpoint in a multicast group.
///
/// Dropping it takes the lock of all network interfaces (RTNL), and so must happen under no other
/// lock.
pub(crate) enum Group {
    /// A membership on RoCE.
    Roce {
        /// The membership of the interface, if packets to the group need one to arrive.
        _interface: Option<IpMembership>,
    },
    /// A membership on InfiniBand.
    InfiniBand {
        /// The membership of the port, from the moment that the subnet administrator is asked.
        membership: Option<SaMembership>,
        /// The answer of the subnet administrator, until the consumer knows the number of the
        /// membership; `None` from then on.
        early_answer: Option<GroupAnswer>,
    },
}

/// The answer of a subnet administrator about a membership.
pub(crate) enum GroupAnswer {
    /// The answer is outstanding.
    None,
    /// The port is a member, or the reason why it is not.
    Received(Result<McMember>),
}
