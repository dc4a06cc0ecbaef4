// SPDX-License-Identifier: GPL-2.0

//! The header with IP addresses at the start of a request's private data (IBTA annex A11).
//!
//! REQ and SIDR_REQ to an IP address start their private data with 36 bytes: version, IP version
//! in the high half of the second byte, source port, source and destination address in 16 bytes
//! each, IPv4 in the last four of these. The destination port is in the service id.

use crate::addr::SockAddr;
use crate::errno::Errno;
use crate::wire::field::{Bytes, Field};

/// Length of the header, in bytes.
pub const IP_HEADER_LEN: usize = 36;
/// The only version of the header.
pub const VERSION: u8 = 0;

type Version = Field<u8, 0, 0, 8>;
type IpVersion = Field<u8, 1, 0, 4>;
type SourcePort = Field<u16, 2, 0, 16>;
type Source = Bytes<4, 16>;
type SourceV4 = Bytes<16, 4>;
type Destination = Bytes<20, 16>;
type DestinationV4 = Bytes<32, 4>;

/// The addresses of a request, from the view of its sender.
///
/// The destination's port is 0: it is not in the header. IPv6 scopes and flow labels are not
/// either, and read as 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// The sender, with its port.
    pub src: SockAddr,
    /// The receiver.
    pub dst: SockAddr,
}

/// What private data of a request starts with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// A header with IP addresses.
    Ip(IpHeader),
    /// No addresses: the request came from an `AF_IB` endpoint, and private data is all the
    /// program's.
    AfIb,
}

impl IpHeader {
    /// Writes the header. Ports and addresses are those of `src` and `dst`, the destination's port
    /// is not used.
    ///
    /// # Errors
    ///
    /// [`Errno::EAFNOSUPPORT`] unless both addresses are IPv4 or both are IPv6; `buf` is zero then.
    pub fn encode(&self, buf: &mut [u8; IP_HEADER_LEN]) -> Result<(), Errno> {
        buf.fill(0);
        match (&self.src, &self.dst) {
            (SockAddr::V4 { addr: src, .. }, SockAddr::V4 { addr: dst, .. }) => {
                IpVersion::set(buf, 4);
                SourceV4::set(buf, src);
                DestinationV4::set(buf, dst);
            }
            (SockAddr::V6 { addr: src, .. }, SockAddr::V6 { addr: dst, .. }) => {
                IpVersion::set(buf, 6);
                Source::set(buf, src);
                Destination::set(buf, dst);
            }
            _ => return Err(Errno::EAFNOSUPPORT),
        }
        Version::set(buf, VERSION);
        SourcePort::set(buf, self.src.port());
        Ok(())
    }
}

impl Header {
    /// Reads the start of `private_data`. Bytes before an IPv4 address and the low half of the
    /// second byte are ignored.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if `private_data` is shorter than a header or of another version than
    /// [`VERSION`]. The first is impossible with private data of a decoded REQ or SIDR_REQ.
    pub fn decode(private_data: &[u8]) -> Result<Self, Errno> {
        let buf = private_data
            .first_chunk::<IP_HEADER_LEN>()
            .ok_or(Errno::EINVAL)?;
        if Version::get(buf) != VERSION {
            return Err(Errno::EINVAL);
        }
        let port = SourcePort::get(buf);
        Ok(match IpVersion::get(buf) {
            4 => Self::Ip(IpHeader {
                src: SockAddr::V4 {
                    addr: *SourceV4::get(buf),
                    port,
                },
                dst: SockAddr::V4 {
                    addr: *DestinationV4::get(buf),
                    port: 0,
                },
            }),
            6 => Self::Ip(IpHeader {
                src: SockAddr::V6 {
                    addr: *Source::get(buf),
                    port,
                    flowinfo: 0,
                    scope_id: 0,
                },
                dst: SockAddr::V6 {
                    addr: *Destination::get(buf),
                    port: 0,
                    flowinfo: 0,
                    scope_id: 0,
                },
            }),
            _ => Self::AfIb,
        })
    }

    /// How many bytes of private data are not the program's.
    pub const fn len(&self) -> usize {
        match self {
            Self::Ip(_) => IP_HEADER_LEN,
            Self::AfIb => 0,
        }
    }

    /// Whether all private data is the program's.
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::AfIb)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_private_data)
)]
mod tests {
    use super::*;

    fn v6(last: u8, port: u16) -> SockAddr {
        let mut addr = [0x20; 16];
        addr[15] = last;
        SockAddr::V6 {
            addr,
            port,
            flowinfo: 0,
            scope_id: 0,
        }
    }

    const V4: IpHeader = IpHeader {
        src: SockAddr::V4 {
            addr: [10, 0, 0, 1],
            port: 0x1234,
        },
        dst: SockAddr::V4 {
            addr: [10, 0, 0, 2],
            port: 0,
        },
    };

    #[test]
    fn v4_bytes() {
        let mut buf = [0xee; IP_HEADER_LEN];
        V4.encode(&mut buf).unwrap();
        let mut want = [0; IP_HEADER_LEN];
        want[..4].copy_from_slice(&[0, 0x40, 0x12, 0x34]);
        want[16..20].copy_from_slice(&[10, 0, 0, 1]);
        want[32..].copy_from_slice(&[10, 0, 0, 2]);
        assert_eq!(buf, want);
        assert_eq!(Header::decode(&buf), Ok(Header::Ip(V4)));
        buf[1] |= 0x0f;
        buf[4..16].fill(0xff);
        buf[20..32].fill(0xff);
        assert_eq!(Header::decode(&buf), Ok(Header::Ip(V4)));
    }

    #[test]
    fn v6_bytes() {
        let header = IpHeader {
            src: v6(1, 0x1234),
            dst: v6(2, 0),
        };
        let mut buf = [0xee; IP_HEADER_LEN];
        header.encode(&mut buf).unwrap();
        assert_eq!(buf[..4], [0, 0x60, 0x12, 0x34]);
        assert_eq!((buf[4], buf[19], buf[20], buf[35]), (0x20, 1, 0x20, 2));
        let mut private_data = [0; 92];
        private_data[..IP_HEADER_LEN].copy_from_slice(&buf);
        assert_eq!(Header::decode(&private_data), Ok(Header::Ip(header)));
    }

    #[test]
    fn others() {
        let mut buf = [0; IP_HEADER_LEN];
        for version in 0..16 {
            buf[1] = version << 4;
            let is_ib = Header::decode(&buf) == Ok(Header::AfIb);
            assert_eq!(is_ib, version != 4 && version != 6);
        }
        buf[0] = 1;
        assert_eq!(Header::decode(&buf), Err(Errno::EINVAL));
        for len in 0..IP_HEADER_LEN {
            assert_eq!(
                Header::decode(&[0; IP_HEADER_LEN][..len]),
                Err(Errno::EINVAL)
            );
        }
        let mixed = IpHeader {
            src: V4.src,
            dst: v6(2, 0),
        };
        buf.fill(0xee);
        assert_eq!(mixed.encode(&mut buf), Err(Errno::EAFNOSUPPORT));
        assert_eq!(buf, [0; IP_HEADER_LEN]);
        assert_eq!((Header::Ip(V4).len(), Header::AfIb.len()), (36, 0));
    }
}
