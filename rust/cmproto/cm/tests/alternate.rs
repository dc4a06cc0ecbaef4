// SPDX-License-Identifier: GPL-2.0

//! Tests of alternate paths.

use super::*;
use crate::{
    cm::{AlternateEnd, Unusable},
    errno::Errno,
    path::Path,
    time::TimeCode,
};

pub(super) const ALTERNATE: Path = Path {
    service_id: SERVICE,
    sgid: Gid([3; 16]),
    dgid: Gid([4; 16]),
    flow_label: 0x12345,
    slid: 0x31,
    dlid: 0x42,
    hop_limit: 1,
    traffic_class: 9,
    pkey: 0xffff,
    sl: 2,
    mtu: 4,
    rate: 3,
    packet_life_time: 17,
    is_opa: false,
};

const END: AlternateEnd = AlternateEnd {
    can_migrate: true,
    has_gid: true,
    has_lid: true,
    has_pkey: true,
};

const ALL: [Unusable; 5] = [
    Unusable::NotSupported,
    Unusable::NoResources,
    Unusable::UnknownGid,
    Unusable::WrongLid,
    Unusable::NoPartition,
];

/// Returns a connection that has sent a REQ with the alternate path.
fn asking() -> Connection {
    let mut c = active();
    c.offer_alternate(ALTERNATE.packet_life_time);
    let _ = c.connect(&connect_params(), &[], at(0)).unwrap();
    c
}

/// Returns an established connection whose peer has answered about the alternate path.
fn established_with(failover_accepted: u8) -> Connection {
    let mut c = asking();
    let rep = Rep {
        failover_accepted,
        ..peer_rep()
    };
    let _ = receive(&mut c, Message::Rep(rep), at(0));
    let _ = c.establish(&[], at(0)).unwrap();
    assert_eq!(c.state(), State::Established);
    c
}

#[test]
fn a_request_names_it() {
    let c = asking();
    let mut mad = [0; MAD_LEN];
    c.encode_along(Outgoing::Req, Some(&ALTERNATE), &mut mad)
        .unwrap();
    let Ok((_, Message::Req(req))) = wire::decode(&mad) else {
        panic!()
    };
    let path = ReqPath {
        local_ack_timeout: req.alternate.local_ack_timeout,
        ..ALTERNATE.to_req()
    };
    assert_eq!(req.alternate, path);
    // The ack delay of this end is that of its parameters.
    let delay = connect_params().ca_ack_delay;
    assert_eq!(
        req.alternate.local_ack_timeout,
        TimeCode::ack_timeout(delay, 17).get()
    );
    let mut without = [0; MAD_LEN];
    c.encode(Outgoing::Req, &mut without).unwrap();
    let Ok((_, Message::Req(req))) = wire::decode(&without) else {
        panic!()
    };
    assert!(req.alternate.is_empty());
}

#[test]
fn the_peer_accepts_it() {
    let c = established_with(0);
    let attr = c.qp_attr(QpState::Rtr).unwrap();
    assert_ne!(attr.qp_attr_mask & qp_attr_mask::ALT_PATH, 0);
    let timeout = TimeCode::ack_timeout(peer_rep().target_ack_delay, 17);
    assert_eq!(attr.alt_timeout, timeout.get());
    let attr = c.qp_attr(QpState::Rts).unwrap();
    assert_ne!(attr.qp_attr_mask & qp_attr_mask::STATE, 0);
    assert_ne!(attr.qp_attr_mask & qp_attr_mask::PATH_MIG_STATE, 0);
    assert_eq!(attr.path_mig_state, 1);
}

#[test]
fn the_peer_declines_it() {
    let alternate = qp_attr_mask::ALT_PATH | qp_attr_mask::PATH_MIG_STATE;
    for failover in 1..4 {
        let mut c = established_with(failover);
        for state in [QpState::Rtr, QpState::Rts] {
            assert_eq!(c.qp_attr(state).unwrap().qp_attr_mask & alternate, 0);
        }
        assert_eq!(c.migrate(), Ok(false));
    }
}

#[test]
fn the_queue_pair_migrates_and_back() {
    let mut c = established_with(0);
    let before = c.clone();
    let (primary, alternate) = (c.ack_timeout, c.qp_attr(QpState::Rtr).unwrap().alt_timeout);
    assert_ne!(primary.get(), alternate);
    assert_eq!(c.migrate(), Ok(true));
    assert_eq!(c.ack_timeout.get(), alternate);
    let attr = c.qp_attr(QpState::Rts).unwrap();
    assert_eq!(
        attr.qp_attr_mask,
        qp_attr_mask::ALT_PATH | qp_attr_mask::PATH_MIG_STATE
    );
    assert_eq!((attr.path_mig_state, attr.alt_timeout), (1, primary.get()));
    assert_eq!(c.migrate(), Ok(true));
    assert_eq!(c.ack_timeout, before.ack_timeout);
    assert_eq!(
        c.qp_attr(QpState::Rtr).unwrap(),
        before.qp_attr(QpState::Rtr).unwrap()
    );
}

#[test]
fn only_an_established_connection_migrates() {
    assert_eq!(asking().migrate(), Err(Errno::EINVAL));
    let mut c = established_with(0);
    let _ = c.disconnect(&[], at(0)).unwrap();
    let before = c.clone();
    assert_eq!(c.migrate(), Err(Errno::EINVAL));
    assert_eq!(c, before);
}

#[test]
fn nothing_migrates_without_one() {
    let mut c = active();
    let _ = c.connect(&connect_params(), &[], at(0)).unwrap();
    let _ = receive(&mut c, Message::Rep(peer_rep()), at(0));
    let _ = c.establish(&[], at(0)).unwrap();
    let before = c.clone();
    assert_eq!(c.migrate(), Ok(false));
    assert_eq!(c, before);
}

#[test]
fn where_it_ends() {
    assert_eq!(END.check(&ALTERNATE), Ok(()));
    let check = |end: AlternateEnd| end.check(&ALTERNATE);
    let cannot = AlternateEnd {
        can_migrate: false,
        has_gid: false,
        ..END
    };
    assert_eq!(check(cannot), Err(Unusable::NotSupported));
    let unknown = AlternateEnd {
        has_gid: false,
        has_lid: false,
        has_pkey: false,
        ..END
    };
    assert_eq!(check(unknown), Err(Unusable::UnknownGid));
    let foreign = AlternateEnd {
        has_lid: false,
        has_pkey: false,
        ..END
    };
    assert_eq!(check(foreign), Err(Unusable::WrongLid));
    let apart = AlternateEnd {
        has_pkey: false,
        ..END
    };
    assert_eq!(check(apart), Err(Unusable::NoPartition));
    for (dlid, result) in [
        (0, Err(Unusable::WrongLid)),
        (1, Ok(())),
        (0xbfff, Ok(())),
        (0xc000, Err(Unusable::WrongLid)),
        (0xffff, Err(Unusable::WrongLid)),
        (0x0001_0001, Err(Unusable::WrongLid)),
    ] {
        assert_eq!(END.check(&Path { dlid, ..ALTERNATE }), result);
    }
}

#[test]
fn lids_of_a_port() {
    let begins = |slid, hop_limit, lid, path_bits| {
        let path = Path {
            slid,
            hop_limit,
            ..ALTERNATE
        };
        path.begins_at(lid, path_bits)
    };
    for (slid, lid, path_bits, result) in [
        (0x30, 0x30, 0, true),
        (0x31, 0x30, 0, false),
        (0x31, 0x30, 1, true),
        (0x31, 0x31, 1, true),
        (0x32, 0x30, 1, false),
        (0x37, 0x30, 7, true),
        (0x38, 0x30, 7, false),
        (0x0001_0031, 0x0001_0030, 1, true),
        (0x0031, 0x0001_0030, 1, false),
        (0, 0x30, 1, false),
        (1, 0x30, 1, false),
    ] {
        assert_eq!(
            begins(slid, 1, lid, path_bits),
            result,
            "{slid:#x} {lid:#x}"
        );
    }
    // Through routers the LID of this end is not said.
    assert!(begins(0, 2, 0x30, 0));
    assert!(begins(1, 64, 0x30, 1));
    assert!(!begins(2, 64, 0x30, 1));
}

#[test]
fn a_request_has_one_partition_and_one_mtu() {
    let other_pkey = Path {
        pkey: 0x8001,
        ..ALTERNATE
    };
    let other_mtu = Path {
        mtu: 3,
        ..ALTERNATE
    };
    let long_lid = Path {
        slid: 0x0001_0031,
        is_opa: true,
        ..ALTERNATE
    };
    assert_eq!(ALTERNATE.check_alternate(&long_lid), Err(Errno::EINVAL));
    assert_eq!(ALTERNATE.check_alternate(&ALTERNATE), Ok(()));
    assert_eq!(ALTERNATE.check_alternate(&other_pkey), Err(Errno::EINVAL));
    assert_eq!(ALTERNATE.check_alternate(&other_mtu), Err(Errno::EINVAL));
}

#[test]
fn reasons_have_codes() {
    assert_eq!(ALL.map(Unusable::failover), [1, 1, 2, 2, 2]);
}
