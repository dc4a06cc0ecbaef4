// SPDX-License-Identifier: GPL-2.0

//! Where messages come from.

use crate::gid::Gid;

/// A port of this host with an InfiniBand link.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct IbPort {
    /// Index of the device.
    pub device: u32,
    /// Number of the port, from 1.
    pub port: u8,
}

/// Where a message comes from, as far as the network vouches for it.
///
/// On RoCE that is the GID of the sender. On InfiniBand it is the LID that the switches have taken
/// the message from, and the GID only if that is one of another subnet: then the LID is that of a
/// router.
///
/// # Invariants
///
/// The GID is a unicast one, or, as no sender has a multicast one, `ff00::` with port and LID in it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin(Gid);

impl Origin {
    /// A sender that is known by its GID.
    pub const fn of_gid(gid: Gid) -> Self {
        Self(gid)
    }

    /// The sender with this LID in the subnet of `port`.
    pub const fn of_lid(port: IbPort, lid: u16) -> Self {
        let [d0, d1, d2, d3] = port.device.to_be_bytes();
        let [high, low] = lid.to_be_bytes();
        Self(Gid([
            0xff, 0, 0, 0, 0, 0, 0, 0, 0, d0, d1, d2, d3, port.port, high, low,
        ]))
    }

    /// Who is at the other end of an InfiniBand link: at `port` a message with this LID of its sender
    /// has come, or one for it goes out.
    ///
    /// `gids` are the own GID and that of the other end, where there is a global route header.
    pub fn on_link(port: IbPort, lid: u16, gids: Option<(Gid, Gid)>) -> Self {
        match gids {
            Some((own, other)) if own.prefix() != other.prefix() => Self::of_gid(other),
            _ => Self::of_lid(port, lid),
        }
    }

    /// Which of 256 buckets the origin falls into, as [`Gid::bucket`].
    pub const fn bucket(&self, key: [u64; 2]) -> u8 {
        self.0.bucket(key)
    }

    /// The GID that the origin is known by, if it is.
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
    fn lids_are_those_of_a_port() {
        let here = Origin::of_lid(PORT, 7);
        assert!(here != Origin::of_lid(PORT, 8));
        assert!(here != Origin::of_lid(PORT, 0x0700));
        assert!(here != Origin::of_lid(IbPort { device: 4, ..PORT }, 7));
        assert!(here != Origin::of_lid(IbPort { port: 2, ..PORT }, 7));
    }
}
