// SPDX-License-Identifier: GPL-2.0

//! The source of a received message, by which peers are told apart.

use crate::gid::Gid;

/// A port of this host with an InfiniBand link.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct IbPort {
    /// Index of the device.
    pub device: u32,
    /// Number of the port, from 1.
    pub port: u8,
}

/// The source of a message, as far as the network vouches for it.
///
/// On RoCE it is the GID of the sender. On InfiniBand it is the LID from which the switches have
/// taken the message. If the GID is one of another subnet, the LID is that of a router, and the
/// source is the GID.
///
/// # Invariants
///
/// The GID is a unicast one, or `ff00::` with port and LID in it: a sender never has a multicast
/// GID.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(Gid);

impl Origin {
    /// Returns the source of a sender with this GID.
    pub const fn of_gid(gid: Gid) -> Self {
        Self(gid)
    }

    /// Returns the source of a sender with this LID in the subnet of `port`. The upper half of the
    /// LID, which only Omni-Path has, is in front of the device.
    pub const fn of_lid(port: IbPort, lid: u32) -> Self {
        let [d0, d1, d2, d3] = port.device.to_be_bytes();
        let [l0, l1, l2, l3] = lid.to_be_bytes();
        Self(Gid([
            0xff, 0, 0, 0, 0, 0, 0, l0, l1, d0, d1, d2, d3, port.port, l2, l3,
        ]))
    }

    /// Returns the source of the messages from the other end of an InfiniBand link. `lid` is the
    /// LID from which a message has come to `port`, or to which one goes.
    ///
    /// `gids` are the GIDs of this end and of the other end, if there is a global route header.
    pub fn on_link(port: IbPort, lid: u32, gids: Option<(Gid, Gid)>) -> Self {
        match gids {
            Some((own, other)) if own.prefix() != other.prefix() => Self::of_gid(other),
            _ => Self::of_lid(port, lid),
        }
    }

    /// Returns the hash of the source, as [`Gid::hash`] does.
    pub const fn hash(&self, key: [u64; 2]) -> u64 {
        self.0.hash(key)
    }

    /// Returns the hash of the source, one of 256 buckets, as [`Gid::bucket`] does.
    pub const fn bucket(&self, key: [u64; 2]) -> u8 {
        self.0.bucket(key)
    }

    /// Returns the GID of the source, or `ff00::` with port and LID in it, as an administrator sees
    /// it.
    pub const fn shown(&self) -> Gid {
        self.0
    }

    /// Returns the GID of the source, if it is known by one.
    pub const fn gid(&self) -> Option<&Gid> {
        if self.0.is_multicast() {
            None
        } else {
            Some(&self.0)
        }
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_origin))]
mod tests {
    use super::*;

    const PORT: IbPort = IbPort { device: 3, port: 1 };

    fn gid(prefix: u8, id: u8) -> Gid {
        let mut gid = Gid([id; 16]);
        gid.0[0] = 0xfe;
        gid.0[1] = 0x80;
        gid.0[7] = prefix;
        gid
    }

    #[test]
    fn a_neighbour_is_known_by_its_lid() {
        let by_lid = Origin::of_lid(PORT, 0x1234);
        assert_eq!(Origin::on_link(PORT, 0x1234, None), by_lid);
        let same_subnet = Some((gid(1, 1), gid(1, 2)));
        let with_same_prefix = same_subnet.map(|(own, mut other)| {
            other.0[..8].copy_from_slice(&own.0[..8]);
            (own, other)
        });
        assert_eq!(Origin::on_link(PORT, 0x1234, with_same_prefix), by_lid);
        assert_eq!(by_lid.gid(), None);
    }

    #[test]
    fn who_is_behind_a_router_is_known_by_its_gid() {
        let far = gid(2, 9);
        let origin = Origin::on_link(PORT, 0x1234, Some((gid(1, 1), far)));
        assert_eq!(origin, Origin::of_gid(far));
        assert_eq!(origin.gid(), Some(&far));
    }

    #[test]
    fn buckets_are_those_of_gids() {
        let key = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344];
        let buckets = [1, 2, 3].map(|id| Origin::of_gid(gid(2, id)).bucket(key));
        assert_eq!(buckets, [1, 2, 3].map(|id| gid(2, id).bucket(key)));
        assert!(buckets[0] != buckets[1] && buckets[1] != buckets[2]);
    }

    #[test]
    fn lids_are_those_of_a_port() {
        let here = Origin::of_lid(PORT, 7);
        assert!(here != Origin::of_lid(PORT, 8));
        assert!(here != Origin::of_lid(PORT, 0x0700));
        assert!(here != Origin::of_lid(PORT, 0x0001_0007));
        assert!(here != Origin::of_lid(PORT, 0x0100_0007));
        assert_eq!(Origin::of_lid(PORT, 0x0001_0007).gid(), None);
        assert_eq!(
            here.shown().0,
            [0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 7]
        );
        assert!(here != Origin::of_lid(IbPort { device: 4, ..PORT }, 7));
        assert!(here != Origin::of_lid(IbPort { port: 2, ..PORT }, 7));
    }
}
