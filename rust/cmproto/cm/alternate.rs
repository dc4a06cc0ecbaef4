// SPDX-License-Identifier: GPL-2.0

//! The alternate path of a connection, to which a queue pair migrates when its path fails (IBTA
//! 12.6.8 and 17.2.8).
//!
//! A REQ can name an alternate path, which the REP accepts or not. The connection knows no more of
//! it than its timeout: the caller keeps the path.

use super::{connection::Connection, retransmit_buffer::RetransmitMemory, state::State};
use crate::{
    errno::Errno,
    opa::{self, MULTICAST_LID},
    path::Path,
    time::TimeCode,
    wire::Rep,
};

/// The state of the alternate path of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alternate {
    /// The connection has no alternate path.
    None,
    /// The REQ names an alternate path that is not used.
    Declined(Unusable),
    /// The connection has an alternate path with this local ack timeout.
    Usable(TimeCode),
}

/// The reason why an alternate path is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// The device cannot migrate.
    NotSupported,
    /// There is no memory or no address handle for it.
    NoResources,
    /// No port of the device has the GID at which the path ends here.
    UnknownGid,
    /// The LID of the peer is not that of a port of InfiniBand, or the path does not end at a LID
    /// of this port.
    WrongLid,
    /// The port where the path ends here is not in the partition of the connection.
    NoPartition,
}

impl Unusable {
    /// Returns the result for the alternate path in a REP (IBTA 12.7.32): 1 if failover is not
    /// supported, 2 if this path is rejected.
    pub const fn failover(self) -> u8 {
        match self {
            Self::NotSupported | Self::NoResources => 1,
            Self::UnknownGid | Self::WrongLid | Self::NoPartition => 2,
        }
    }
}

/// The end of an alternate path at this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlternateEnd {
    /// Set if the device can migrate queue pairs to an alternate path.
    pub can_migrate: bool,
    /// Set if a port of the device has the GID of the path.
    pub has_gid: bool,
    /// Set if this port has the [LID](Path::begins_at) of the path.
    pub has_lid: bool,
    /// Set if this port is in the partition of the path.
    pub has_pkey: bool,
}

impl AlternateEnd {
    /// Decides whether a peer's alternate path `path`, which ends here, can be used.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    pub const fn check(&self, path: &Path) -> Result<(), Unusable> {
        match self {
            Self {
                can_migrate: false, ..
            } => Err(Unusable::NotSupported),
            _ if path.dlid == 0 || path.dlid >= MULTICAST_LID => Err(Unusable::WrongLid),
            Self { has_gid: false, .. } => Err(Unusable::UnknownGid),
            Self { has_lid: false, .. } => Err(Unusable::WrongLid),
            Self {
                has_pkey: false, ..
            } => Err(Unusable::NoPartition),
            _ => Ok(()),
        }
    }
}

impl Path {
    /// Returns whether the path begins at a port with this `lid`, the first of its LIDs, of which
    /// the bits in `path_bits` choose one. Only these bits are known of a path through routers.
    pub const fn begins_at(&self, lid: u32, path_bits: u8) -> bool {
        let base = self.slid & !(path_bits as u32);
        base == lid & !(path_bits as u32) || base == 0 && self.hop_limit > 1
    }

    /// Checks an alternate path of a REQ of this end along this path.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the partition or the MTU differs, for which a REQ has one field each, or if the
    /// LIDs are long ones of Omni-Path.
    pub const fn check_alternate(&self, alternate: &Self) -> Result<(), Errno> {
        let is_extended = opa::is_extended(alternate.slid, alternate.dlid);
        if alternate.pkey == self.pkey && alternate.mtu == self.mtu && !is_extended {
            Ok(())
        } else {
            Err(Errno::EINVAL)
        }
    }
}

impl<B: RetransmitMemory> Connection<B> {
    /// Declines the alternate path of the REQ, if it has one: the REP will say `why` there is no
    /// failover (IBTA 12.6.8), and the queue pair gets no alternate path.
    pub fn decline_alternate(&mut self, why: Unusable) {
        if self.has_alternate() {
            self.alternate = Alternate::Declined(why);
        }
    }

    /// Offers an alternate path with this packet life time, an IBTA time code, to the peer with the
    /// REQ that follows.
    pub fn offer_alternate(&mut self, packet_life_time: u8) {
        let code = packet_life_time.saturating_add(1);
        self.alternate = Alternate::Usable(TimeCode::new(code));
    }

    /// Returns whether there is an alternate path.
    pub const fn has_alternate(&self) -> bool {
        matches!(self.alternate, Alternate::Usable(_))
    }

    /// Learns from the peer's REP whether it can use the alternate path, and its ack delay.
    pub(super) fn answer_alternate(&mut self, rep: &Rep<'_>) {
        if let Alternate::Usable(timeout) = self.alternate {
            self.alternate = match rep.failover_accepted {
                0 => {
                    let life_time = timeout.get().saturating_sub(1);
                    Alternate::Usable(TimeCode::ack_timeout(rep.target_ack_delay, life_time))
                }
                _ => Alternate::None,
            };
        }
    }

    /// Makes the alternate path that of the connection, and the other way round: the queue pair has
    /// migrated. Returns true if the caller has to exchange them, too, which is so if there is one.
    ///
    /// # Errors
    ///
    /// `EINVAL` unless the connection is established.
    pub fn migrate(&mut self) -> Result<bool, Errno> {
        match (self.state, &mut self.alternate) {
            (State::Established, Alternate::Usable(timeout)) => {
                core::mem::swap(timeout, &mut self.ack_timeout);
                self.is_path_changed = true;
                Ok(true)
            }
            (State::Established, _) => Ok(false),
            _ => Err(Errno::EINVAL),
        }
    }
}
