// SPDX-License-Identifier: GPL-2.0

//! Decoders, and that what they decode can be encoded again.

use crate::bytes::Bytes;
use cmproto::{
    addr::SockAddr,
    bind::{Binding, PortOwner},
    private_data::{Header, IP_HEADER_LEN},
    qp::QpType,
    reuseport::PortGroup,
    service_id::{PortSpace, ServiceId},
    ucma::{frame::Frame, option::IdOption},
    ucma_abi::{
        read_padded, Accept, Command, CommandHeader, Connect, ResolveAddr, SaPathRecord,
        WriteCmEvent, SA_PATH_RECORD_LEN,
    },
    wire::{self, MAD_LEN},
};
use std::hint::black_box;

/// A datagram.
pub fn mad(data: &[u8]) {
    let mad: [u8; MAD_LEN] = Bytes(data).array();
    let header = wire::decode_header(&mad);
    let Ok((hdr, message)) = wire::decode(&mad) else {
        return;
    };
    assert_eq!(header, Ok(hdr));
    assert_eq!(message.attribute(), hdr.attr_id);
    assert_eq!(
        message.private_data().len(),
        wire::private_data_len(hdr.attr_id)
    );
    let mut again = [0; MAD_LEN];
    wire::encode(&hdr, &message, &mut again).expect("what was decoded can be encoded");
    let decoded = wire::decode(&again).expect("what was encoded can be decoded");
    assert_eq!(decoded, (hdr, message));
    let mut third = [0; MAD_LEN];
    wire::encode(&decoded.0, &decoded.1, &mut third).expect("the same");
    assert_eq!(again, third);
    // Nothing is in the second one that was not in the first: reserved bits are cleared.
    for (i, (new, old)) in again.iter().zip(&mad).enumerate() {
        // A length of additional information is brought into its field.
        assert!(
            new & !old == 0 || new & !1 == 72 || *new == 72 << 1,
            "byte {i}"
        );
    }
}

/// The header in front of the private data of a REQ.
pub fn ip_header(data: &[u8]) {
    let Ok(header) = Header::decode(data) else {
        return;
    };
    assert!(header.len() <= data.len());
    assert_eq!(header.is_empty(), header.len() == 0);
    if let Header::Ip(ip) = header {
        let mut bytes = [0; IP_HEADER_LEN];
        ip.encode(&mut bytes)
            .expect("what was decoded can be encoded");
        assert_eq!(Header::decode(&bytes), Ok(header));
    }
}

/// A socket address of user space, and what is asked about it.
pub fn sockaddr(data: &[u8]) {
    let mut bytes = Bytes(data);
    let first = SockAddr::from_bytes(bytes.some());
    let second = SockAddr::from_bytes(bytes.some());
    let port = bytes.u16();
    let (Ok(a), Ok(b)) = (first, second) else {
        return;
    };
    for addr in [a, b] {
        assert_eq!(SockAddr::from_bytes(&addr.to_storage()), Ok(addr));
        assert_eq!(addr.len(), SockAddr::len_of_family(addr.family()));
        assert!(addr.same_address(&addr.with_port(port)) || addr.is_unspec());
        assert_eq!(addr.wildcard().family(), addr.family());
        let _ = black_box((addr.to_gid(), addr.is_any(), addr.is_loopback()));
        let _ = black_box((addr.is_any_or_loopback(), addr.is_link_local_v6()));
        for ps in [
            PortSpace::Tcp,
            PortSpace::Udp,
            PortSpace::Ipoib,
            PortSpace::Ib,
        ] {
            let _ = black_box(cmproto::service_id::select_port_space(ps, &addr));
            let id = ServiceId::of_address(ps, &addr);
            let _ = black_box((id.port(), id.port_space()));
        }
    }
    assert_eq!(a.same_address(&b), b.same_address(&a));
    let flags = bytes.u8();
    let owner = |addr, dst, shift: u8| PortOwner {
        addr,
        dst,
        reuseaddr: flags >> shift & 1 == 1,
        afonly: flags >> shift & 2 == 2,
        group: (flags >> shift & 0x10 != 0)
            .then(|| PortGroup::new(Some(u32::from(flags >> 6)), PortSpace::Tcp, QpType::RC)),
    };
    let unspec = SockAddr::Unspec;
    let (x, y) = (owner(a, unspec, 0), owner(b, unspec, 2));
    let (x, y) = (Binding::of(&x), Binding::of(&y));
    let alone = |other: Binding| move |from: &Binding| Some(other).filter(|other| other >= from);
    assert_eq!(x.check(alone(y)), y.check(alone(x)));
}

/// A write to the device: a header, then a request.
pub fn ucma(data: &[u8]) {
    let mut bytes = Bytes(data);
    let header: CommandHeader = read_padded(bytes.take(size_of::<CommandHeader>()));
    let request = bytes.0;
    if let Ok(frame) = Frame::new(&header, data.len()) {
        assert!(frame.request_len <= request.len());
        assert_eq!(Command::try_from(header.cmd), Ok(frame.command));
        assert_eq!(frame.command.number(), header.cmd);
    }
    let connect: Connect = read_padded(request);
    let accept: Accept = read_padded(request);
    let _ = black_box((connect, accept));
    let resolve: ResolveAddr = read_padded(request);
    let _ = black_box(SockAddr::from_bytes(&resolve.src_addr));
    let event: WriteCmEvent = read_padded(request);
    let _ = black_box(event.arg());
    let mut rest = Bytes(request);
    let (level, name, value, len) = (rest.u32(), rest.u32(), rest.array(), rest.u32());
    let _ = black_box(IdOption::new(level, name, value, len));
    let record: [u8; SA_PATH_RECORD_LEN] = Bytes(request).array();
    let path = SaPathRecord::unpack(&record);
    let packed = path.pack();
    assert_eq!(SaPathRecord::unpack(&packed).pack(), packed);
    let _ = black_box((path.to_user(), path.to_data()));
}
