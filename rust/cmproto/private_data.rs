// SPDX-License-Identifier: GPL-2.0

//! The IP addresses header at the start of a request's private data (IBTA annex A11).
//!
//! The private data of a REQ or SIDR_REQ to an IP address starts with 36 bytes: version (1 byte),
//! IP version (the high half of the second byte), source port (2 bytes), source address and
//! destination address (16 bytes each, of which IPv4 uses the last four), in network byte order.
//! The destination port is in the service id.

use crate::addr::{SockAddr, AF_IB};
use crate::errno::Errno;
use crate::wire::field::{Bytes, Field};

/// Length of the header, in bytes.
pub const IP_HEADER_LEN: usize = 36;
/// The only version of the header that is known.
pub const VERSION: u8 = 0;

type Version = Field<u8, 0, 0, 8>;
type IpVersion = Field<u8, 1, 0, 4>;
type SourcePort = Field<u16, 2, 0, 16>;
type Source = Bytes<4, 16>;
type SourceV4 = Bytes<16, 4>;
type Destination = Bytes<20, 16>;
type DestinationV4 = Bytes<32, 4>;

/// The addresses in the header, as seen from the sender.
///
/// The destination port is 0, as it is not in the header. IPv6 scopes and flow labels are not in
/// the header, either, and read as 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct IpHeader {
    /// The address and port of the sender.
    pub src: SockAddr,
    /// The address of the receiver.
    pub dst: SockAddr,
}

/// The start of a request's private data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// A header with IP addresses.
    Ip(IpHeader),
    /// The request has no header: it came from an `AF_IB` endpoint, and all private data is the
    /// program's.
    AfIb,
}

impl IpHeader {
    /// Writes the header with the addresses and the source port. The port of `dst` is not used.
    ///
    /// # Errors
    ///
    /// [`Errno::EAFNOSUPPORT`] unless both addresses are IPv4 or both are IPv6; `buf` is all zeros
    /// then.
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
    /// Reads the header at the start of `private_data`. The bytes in front of an IPv4 address and
    /// the low half of the second byte are ignored.
    ///
    /// # Errors
    ///
    /// [`Errno::EINVAL`] if `private_data` is shorter than a header, which the private data of a
    /// decoded REQ or SIDR_REQ is not, or if the version is not [`VERSION`].
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
                src: SockAddr::v4(*SourceV4::get(buf), port),
                dst: SockAddr::v4(*DestinationV4::get(buf), 0),
            }),
            6 => Self::Ip(IpHeader {
                src: SockAddr::v6(*Source::get(buf), port),
                dst: SockAddr::v6(*Destination::get(buf), 0),
            }),
            _ => Self::AfIb,
        })
    }

    /// Returns the length of the header, in bytes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Ip(_) => IP_HEADER_LEN,
            Self::AfIb => 0,
        }
    }

    /// Returns whether there is no header.
    pub const fn is_empty(&self) -> bool {
        matches!(self, Self::AfIb)
    }
}

/// Returns the length of the header in a request to a listener with an address of `family`, in
/// bytes.
const fn header_len(family: u16) -> usize {
    match family {
        AF_IB => 0,
        _ => IP_HEADER_LEN,
    }
}

/// Returns the part of a request's private data that a program gets which listens at an address of
/// `family`.
pub fn user_data(family: u16, private_data: &[u8]) -> &[u8] {
    private_data.get(header_len(family)..).unwrap_or(&[])
}

/// The private data of a request: the header, unless the addresses are native ones, and the
/// program's data.
///
/// # Invariants
/// The first `len` bytes of `bytes` are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestData<const MAX: usize> {
    bytes: [u8; MAX],
    len: usize,
}

impl<const MAX: usize> RequestData<MAX> {
    /// Creates the private data of a request from `src` to `dst`, in a field of `MAX` bytes: 92 in
    /// a REQ, 216 in a SIDR_REQ.
    ///
    /// With native addresses there is no header, but the first byte of the program's data is
    /// replaced by the header's version nevertheless: a listener refuses requests with another
    /// version.
    ///
    /// # Errors
    ///
    /// - [`Errno::EINVAL`] if the program's data does not fit;
    /// - [`Errno::EAFNOSUPPORT`] if the addresses are of different families, or unspecified.
    pub fn new(src: &SockAddr, dst: &SockAddr, user: &[u8]) -> Result<Self, Errno> {
        let mut bytes = [0; MAX];
        let len = match (src, dst) {
            (SockAddr::Ib { .. }, SockAddr::Ib { .. }) => 0,
            _ => {
                let header = bytes
                    .first_chunk_mut::<IP_HEADER_LEN>()
                    .ok_or(Errno::EINVAL)?;
                let addresses = IpHeader {
                    src: *src,
                    dst: *dst,
                };
                addresses.encode(header)?;
                IP_HEADER_LEN
            }
        };
        bytes
            .get_mut(len..)
            .and_then(|room| room.get_mut(..user.len()))
            .ok_or(Errno::EINVAL)?
            .copy_from_slice(user);
        if let Some(first) = bytes.first_mut() {
            *first = VERSION;
        }
        // INVARIANT: These bytes were just written.
        Ok(Self {
            bytes,
            len: len.saturating_add(user.len()),
        })
    }

    /// Returns the private data.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&[])
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
    use crate::addr::Gid;

    fn v6(last: u8, port: u16) -> SockAddr {
        let mut addr = [0x20; 16];
        addr[15] = last;
        SockAddr::v6(addr, port)
    }

    const V4: IpHeader = IpHeader {
        src: SockAddr::v4([10, 0, 0, 1], 0x1234),
        dst: SockAddr::v4([10, 0, 0, 2], 0),
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

    const IB: SockAddr = SockAddr::Ib {
        pkey: 0xffff,
        flowinfo: 0,
        gid: Gid([0xfe; 16]),
        sid: 0x0106_1234,
        sid_mask: u64::MAX,
        scope_id: 0,
    };

    #[test]
    fn a_program_at_a_native_address_has_all_private_data() {
        let field = [7; 92];
        assert_eq!(*user_data(AF_IB, &field), [7; 92]);
        for bound in [SockAddr::Unspec, V4.src, v6(1, 2)] {
            assert_eq!(*user_data(bound.family(), &field), [7; 56]);
        }
        assert_eq!(*user_data(V4.src.family(), &[7; 35]), [0; 0]);
    }

    /// Checks which lengths fit into a field of `MAX` bytes: up to `with_header` with a header, and
    /// up to `native` without.
    fn check_requests<const MAX: usize>(with_header: usize, native: usize) {
        let user = [9; 217];
        for len in 0..=user.len() {
            let user = &user[..len];
            let data = RequestData::<MAX>::new(&V4.src, &V4.dst, user);
            assert_eq!((len, data.is_ok()), (len, len <= with_header));
            if let Ok(data) = data {
                assert_eq!(Header::decode(data.bytes()), Ok(Header::Ip(V4)));
                assert_eq!(*user_data(V4.dst.family(), data.bytes()), *user);
            }
            let data = RequestData::<MAX>::new(&IB, &IB, user);
            assert_eq!((len, data.is_ok()), (len, len <= native));
            if let Ok(data) = data {
                assert_eq!(data.bytes().get(1..), user.get(1..));
                assert_eq!(data.bytes().len(), user.len());
                assert!(data
                    .bytes()
                    .first()
                    .is_none_or(|&version| version == VERSION));
            }
        }
    }

    #[test]
    fn requests() {
        check_requests::<92>(56, 92);
        check_requests::<216>(180, 216);
        let errors = [
            (V4.src, v6(2, 0)),
            (V4.src, IB),
            (IB, V4.dst),
            (SockAddr::Unspec, SockAddr::Unspec),
        ];
        for (src, dst) in errors {
            let data = RequestData::<92>::new(&src, &dst, &[]);
            assert_eq!(data, Err(Errno::EAFNOSUPPORT));
        }
        // No field is shorter than the header.
        let short = RequestData::<{ IP_HEADER_LEN - 1 }>::new(&V4.src, &V4.dst, &[]);
        assert_eq!(short, Err(Errno::EINVAL));
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
