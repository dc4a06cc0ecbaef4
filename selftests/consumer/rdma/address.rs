// SPDX-License-Identifier: GPL-2.0

//! Socket addresses.

use crate::bindings;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// As large as `struct sockaddr_storage`.
const STORAGE_LEN: usize = 128;

const _: () = assert!(size_of::<bindings::__kernel_sockaddr_storage>() == STORAGE_LEN);

/// A socket address as C has it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Address([u8; STORAGE_LEN]);

impl Address {
    /// An address of no family.
    pub(crate) const UNSPECIFIED: Self = Self([0; STORAGE_LEN]);

    fn new(parts: &[&[u8]]) -> Self {
        let mut address = Self::UNSPECIFIED;
        let bytes = parts.iter().copied().flatten();
        address
            .0
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        address
    }

    /// The address that the bytes of a `struct sockaddr_storage` are, if it is one of IP.
    pub(super) fn parse(storage: &[u8; STORAGE_LEN]) -> Option<SocketAddr> {
        let (family, rest) = storage.split_first_chunk()?;
        let (port, rest) = rest.split_first_chunk()?;
        let port = u16::from_be_bytes(*port);
        match u32::from(u16::from_ne_bytes(*family)) {
            bindings::AF_INET => {
                let ip = Ipv4Addr::from(*rest.first_chunk::<4>()?);
                Some(SocketAddrV4::new(ip, port).into())
            }
            bindings::AF_INET6 => {
                let (flow, rest) = rest.split_first_chunk()?;
                let (ip, rest) = rest.split_first_chunk::<16>()?;
                let scope = u32::from_ne_bytes(*rest.first_chunk()?);
                let flow = u32::from_be_bytes(*flow);
                Some(SocketAddrV6::new(Ipv6Addr::from(*ip), port, flow, scope).into())
            }
            _ => None,
        }
    }

    /// For functions that take it as `struct sockaddr *`, all of which look at the family first.
    pub(super) fn as_mut_raw(&mut self) -> *mut bindings::sockaddr {
        (&raw mut self.0).cast()
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        let port = address.port().to_be_bytes();
        match address {
            SocketAddr::V4(v4) => {
                let family = (bindings::AF_INET as u16).to_ne_bytes();
                Self::new(&[&family, &port, &v4.ip().octets()])
            }
            SocketAddr::V6(v6) => Self::new(&[
                &(bindings::AF_INET6 as u16).to_ne_bytes(),
                &port,
                &v6.flowinfo().to_be_bytes(),
                &v6.ip().octets(),
                &v6.scope_id().to_ne_bytes(),
            ]),
        }
    }
}
