// SPDX-License-Identifier: GPL-2.0

//! The matching of a connection request with a listener.
//!
//! The service id selects the port space and the port. Among the listeners of a port, the header
//! that IP services have in the private data decides (IBTA annex A11).

use crate::{addr::SockAddr, private_data::Header};

/// The properties of a listener that a request is matched against.
#[derive(Copy, Clone, Debug)]
pub struct ListenView<'a> {
    /// The address that the listener is bound to.
    pub addr: &'a SockAddr,
    /// Set if a wildcard address covers its own address family only.
    pub afonly: bool,
    /// Index of the interface that the listener is bound to; 0 for any.
    pub bound_if: i32,
    /// The port of the device that the listener is bound to; `None` for any.
    pub port: Option<u32>,
}

/// The properties of a request that are matched with a listener.
#[derive(Copy, Clone, Debug)]
pub struct RequestView<'a> {
    /// The header at the start of the private data.
    pub header: &'a Header,
    /// Index of the interface that the request arrived on; `None` for a request that is not for an
    /// IP address.
    pub interface: Option<i32>,
    /// The port of the device that the request arrived at.
    pub port: u32,
}

impl ListenView<'_> {
    /// Returns whether the listener's address is the destination of the request.
    fn matches_address(&self, header: &Header) -> bool {
        if self.addr.is_any_or_loopback() && !self.afonly {
            return true;
        }
        let dst = match header {
            Header::Ip(ip) => &ip.dst,
            Header::AfIb => &SockAddr::Unspec,
        };
        match (self.addr, dst) {
            (SockAddr::V4 { addr, .. }, SockAddr::V4 { addr: wanted, .. }) => {
                self.addr.is_any_or_loopback() || addr == wanted
            }
            (SockAddr::V6 { addr, .. }, SockAddr::V6 { addr: wanted, .. }) => {
                self.addr.is_any_or_loopback() || addr == wanted
            }
            (SockAddr::Ib { .. }, _) => true,
            _ => false,
        }
    }

    /// Returns whether the listener takes requests from the interface of the request or, for a
    /// native address, from its port.
    fn matches_interface(&self, request: &RequestView<'_>) -> bool {
        let Some(interface) = request.interface else {
            let is_port = self.port.is_none_or(|only| only == request.port);
            return matches!(self.addr, SockAddr::Ib { .. }) && is_port;
        };
        let Header::Ip(ip) = request.header else {
            return true;
        };
        // Only link-local addresses have another meaning on each interface.
        !ip.dst.is_link_local_v6() || self.bound_if == 0 || self.bound_if == interface
    }

    /// Returns whether the request is for the listener.
    pub fn accepts(&self, request: &RequestView<'_>) -> bool {
        self.matches_address(request.header) && self.matches_interface(request)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_listen))]
mod tests {
    use super::*;
    use crate::private_data::IpHeader;

    fn v4(addr: [u8; 4]) -> SockAddr {
        SockAddr::v4(addr, 7174)
    }

    fn v6(last: u8) -> SockAddr {
        let mut addr = [0; 16];
        addr[0] = 0xfd;
        addr[15] = last;
        SockAddr::v6(addr, 7174)
    }

    fn any_v6() -> SockAddr {
        SockAddr::v6([0; 16], 7174)
    }

    fn link_local(scope_id: u32) -> SockAddr {
        let mut addr = [0; 16];
        addr[0] = 0xfe;
        addr[1] = 0x80;
        addr[15] = 1;
        SockAddr::V6 {
            addr,
            port: 7174,
            flowinfo: 0,
            scope_id,
        }
    }

    #[test]
    fn address_and_interface_decide() {
        let ten = v4([10, 0, 0, 1]);
        let other = v4([10, 0, 0, 2]);
        let any = v4([0; 4]);
        // (listener, afonly, bound_if, destination, interface, accepted)
        let cases = [
            (ten, true, 0, ten, 3, true),
            (ten, true, 0, other, 3, false),
            (ten, true, 0, v6(1), 3, false),
            (any, true, 0, ten, 3, true),
            (any, true, 0, v6(1), 3, false),
            (v4([127, 0, 0, 1]), true, 0, ten, 3, true),
            (any_v6(), false, 0, ten, 3, true),
            (any_v6(), false, 0, v6(1), 3, true),
            (any_v6(), true, 0, ten, 3, false),
            (v6(1), true, 0, v6(1), 3, true),
            (v6(1), true, 0, v6(2), 3, false),
            (link_local(3), true, 3, link_local(0), 3, true),
            (link_local(3), true, 3, link_local(0), 4, false),
            (any_v6(), true, 0, link_local(0), 4, true),
        ];
        for (addr, afonly, bound_if, dst, interface, accepted) in cases {
            let header = Header::Ip(IpHeader { src: dst, dst });
            let listener = ListenView {
                addr: &addr,
                afonly,
                bound_if,
                port: Some(1),
            };
            let request = RequestView {
                header: &header,
                interface: Some(interface),
                // The port does not matter to a request for an IP address.
                port: 2,
            };
            assert_eq!(
                (addr, dst, interface, listener.accepts(&request)),
                (addr, dst, interface, accepted)
            );
        }
    }

    #[test]
    fn native_requests_are_for_native_listeners() {
        let request = RequestView {
            header: &Header::AfIb,
            interface: None,
            port: 1,
        };
        let ten = v4([10, 0, 0, 1]);
        let any = any_v6();
        for (addr, afonly) in [(&ten, true), (&any, false)] {
            let listener = ListenView {
                addr,
                afonly,
                bound_if: 0,
                port: None,
            };
            assert_eq!((addr, listener.accepts(&request)), (addr, false));
        }
    }

    #[test]
    fn native_listeners_are_told_apart_by_port() {
        let addr = SockAddr::Ib {
            pkey: 0xffff,
            flowinfo: 0,
            gid: crate::addr::Gid([1; 16]),
            sid: 7174,
            sid_mask: u64::MAX,
            scope_id: 0,
        };
        for (bound, port, accepted) in [
            (Some(1), 1, true),
            (Some(1), 2, false),
            (Some(2), 1, false),
            (Some(2), 2, true),
            (None, 1, true),
            (None, 2, true),
        ] {
            let listener = ListenView {
                addr: &addr,
                afonly: true,
                bound_if: 0,
                port: bound,
            };
            let request = RequestView {
                header: &Header::AfIb,
                interface: None,
                port,
            };
            assert_eq!(
                (bound, port, listener.accepts(&request)),
                (bound, port, accepted)
            );
        }
    }
}
