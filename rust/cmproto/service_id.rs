// SPDX-License-Identifier: GPL-2.0

//! Port spaces, and the service ids of ports (IBTA annex A11).

use crate::addr::SockAddr;
use crate::errno::Errno;

/// The bits of a service id that are the port space.
pub const PORT_SPACE_MASK: u64 = 0xffff_ffff_ffff_0000;

/// A port space, which also determines the kind of service (`enum rdma_ucm_port_space`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u16)]
pub enum PortSpace {
    /// Datagrams with the Q_Key of IP over InfiniBand (`RDMA_PS_IPOIB`).
    Ipoib = 0x0002,
    /// Reliable connections (`RDMA_PS_TCP`).
    Tcp = 0x0106,
    /// Datagrams (`RDMA_PS_UDP`).
    Udp = 0x0111,
    /// Any service, by native addresses (`RDMA_PS_IB`).
    Ib = 0x013f,
}

impl PortSpace {
    /// Returns the number of the port space, as in the user ABI and in bits 31 to 16 of a service
    /// id.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl TryFrom<u16> for PortSpace {
    type Error = Errno;

    /// Converts a number. Fails with [`Errno::EINVAL`] if it is not a port space.
    fn try_from(number: u16) -> Result<Self, Errno> {
        [Self::Ipoib, Self::Tcp, Self::Udp, Self::Ib]
            .into_iter()
            .find(|ps| ps.number() == number)
            .ok_or(Errno::EINVAL)
    }
}

/// A service id, in host byte order.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceId(pub u64);

impl ServiceId {
    /// Returns the service id of `port` in `ps`: `0x0000_0000_PPPP_pppp`.
    pub fn from_ip(ps: PortSpace, port: u16) -> Self {
        Self(u64::from(ps.number()) << 16 | u64::from(port))
    }

    /// Returns the service id of `addr` for an endpoint of the port space `ps`: the one in an
    /// InfiniBand address, or else the one of the port.
    pub fn of_address(ps: PortSpace, addr: &SockAddr) -> Self {
        match addr {
            SockAddr::Ib { sid, .. } => Self(*sid),
            other => Self::from_ip(ps, other.port()),
        }
    }

    /// Returns the port space, or `None` if there is no such port space. As C does when it looks a
    /// listener up, this looks at bits 31 to 16 only.
    pub fn port_space(self) -> Option<PortSpace> {
        let [.., a, b, _, _] = self.0.to_be_bytes();
        PortSpace::try_from(u16::from_be_bytes([a, b])).ok()
    }

    /// Returns the port, bits 15 to 0.
    pub const fn port(self) -> u16 {
        let [.., a, b] = self.0.to_be_bytes();
        u16::from_be_bytes([a, b])
    }
}

/// Returns the port space in which an endpoint of the port space `ps` binds `addr`, and the address
/// that is bound.
///
/// IP addresses are bound in the endpoint's own port space. In an InfiniBand address, the masked
/// service id selects the port space: an endpoint of [`PortSpace::Ib`] can also bind in `Tcp` and
/// `Udp`. The service id of the address that is bound is a complete one.
///
/// # Errors
///
/// [`Errno::EPROTONOSUPPORT`] if the service id is in no port space that the endpoint can bind in.
pub fn select_port_space(ps: PortSpace, addr: &SockAddr) -> Result<(PortSpace, SockAddr), Errno> {
    let mut bound = *addr;
    let SockAddr::Ib { sid, sid_mask, .. } = &mut bound else {
        return Ok((ps, bound));
    };
    let mask = *sid_mask & PORT_SPACE_MASK;
    let candidates: &[PortSpace] = match ps {
        PortSpace::Ib => &[PortSpace::Ib, PortSpace::Tcp, PortSpace::Udp],
        PortSpace::Tcp => &[PortSpace::Tcp],
        PortSpace::Udp => &[PortSpace::Udp],
        PortSpace::Ipoib => &[],
    };
    let chosen = candidates
        .iter()
        .find(|space| *sid & mask == ServiceId::from_ip(**space, 0).0 & mask)
        .ok_or(Errno::EPROTONOSUPPORT)?;
    *sid = ServiceId::from_ip(*chosen, addr.port()).0;
    *sid_mask |= PORT_SPACE_MASK;
    Ok((*chosen, bound))
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_service_id)
)]
mod tests {
    use super::*;
    use crate::addr::Gid;

    fn ib(sid: u64, sid_mask: u64) -> SockAddr {
        SockAddr::Ib {
            pkey: 0,
            flowinfo: 0,
            gid: Gid::ZERO,
            sid,
            sid_mask,
            scope_id: 0,
        }
    }

    #[test]
    fn service_ids_of_ports() {
        let table = [
            (PortSpace::Tcp, 0x0106_4ee4),
            (PortSpace::Udp, 0x0111_4ee4),
            (PortSpace::Ipoib, 0x0002_4ee4),
            (PortSpace::Ib, 0x013f_4ee4),
        ];
        for (ps, sid) in table {
            let id = ServiceId::from_ip(ps, 20196);
            assert_eq!(id, ServiceId(sid));
            assert_eq!((id.port_space(), id.port()), (Some(ps), 20196));
            assert_eq!(PortSpace::try_from(ps.number()), Ok(ps));
        }
        assert_eq!(PortSpace::try_from(0), Err(Errno::EINVAL));
        assert_eq!(ServiceId(0x1234_5678).port_space(), None);
        // The upper half is ignored.
        assert_eq!(
            ServiceId(0xffff_ffff_0106_0001).port_space(),
            Some(PortSpace::Tcp)
        );
        let v4 = SockAddr::v4([1; 4], 9);
        assert_eq!(
            ServiceId::of_address(PortSpace::Udp, &v4),
            ServiceId(0x0111_0009)
        );
        assert_eq!(
            ServiceId::of_address(PortSpace::Ib, &ib(77, 0)),
            ServiceId(77)
        );
    }

    #[test]
    fn infiniband_addresses_choose_their_space() {
        use PortSpace::*;
        let table = [
            (Tcp, 0x0106_0007, Ok(Tcp)),
            (Udp, 0x0111_0007, Ok(Udp)),
            (Ib, 0x013f_0007, Ok(Ib)),
            (Ib, 0x0106_0007, Ok(Tcp)),
            (Ib, 0x0111_0007, Ok(Udp)),
            (Tcp, 0x0111_0007, Err(Errno::EPROTONOSUPPORT)),
            (Udp, 0x0106_0007, Err(Errno::EPROTONOSUPPORT)),
            (Ipoib, 0x0002_0007, Err(Errno::EPROTONOSUPPORT)),
            (Ib, 0x0002_0007, Err(Errno::EPROTONOSUPPORT)),
            (Tcp, 0x1_0106_0007, Err(Errno::EPROTONOSUPPORT)),
        ];
        for (ps, sid, want) in table {
            let got = select_port_space(ps, &ib(sid, u64::MAX));
            assert_eq!(got, want.map(|w| (w, ib(sid, u64::MAX))));
        }
        // The probe of librdmacm has a port space and a mask, and no port.
        assert_eq!(
            select_port_space(Ib, &ib(0x0106_0000, PORT_SPACE_MASK)),
            Ok((Tcp, ib(0x0106_0000, PORT_SPACE_MASK)))
        );
        // An empty mask selects the endpoint's own port space.
        assert_eq!(
            select_port_space(Ib, &ib(0xdead, 0)),
            Ok((Ib, ib(0x013f_0000, PORT_SPACE_MASK)))
        );
        let v4 = SockAddr::v4([1; 4], 9);
        assert_eq!(select_port_space(Ipoib, &v4), Ok((Ipoib, v4)));
    }
}
