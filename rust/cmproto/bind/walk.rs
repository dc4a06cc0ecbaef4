// SPDX-License-Identifier: GPL-2.0

//! The rules as one walk over all owners, to compare with.

use super::*;
use crate::{addr::Gid, qp::QpType, service_id::PortSpace};
use core::cell::Cell;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::vec::Vec;

fn check(new: &PortOwner, owners: &[PortOwner]) -> Result<(), Errno> {
    let mut checked = Ok(());
    for owner in owners {
        let shared = new.reuseaddr && owner.reuseaddr;
        let apart = new.afonly && owner.afonly && new.addr.family() != owner.addr.family();
        if shared || apart {
            continue;
        }
        let is_wildcard = [new, owner].map(|owner| owner.addr.is_any_or_loopback());
        if let (Some(group), Some(other)) = (new.group, owner.group) {
            let is_place = match is_wildcard {
                [true, true] => {
                    new.addr.family() == owner.addr.family() && new.afonly == owner.afonly
                }
                [false, false] if !new.addr.same_address(&owner.addr) => continue,
                both => both == [false, false],
            };
            if !is_place || group != other {
                checked = Err(Errno::EADDRINUSE);
            }
            continue;
        }
        if new.addr.is_any_or_loopback() || owner.addr.is_any_or_loopback() {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if new.addr.same_address(&owner.addr) {
            checked = Err(Errno::EADDRINUSE);
        }
    }
    checked
}

fn is_unique(new: &PortOwner, owners: &[PortOwner]) -> bool {
    let ports_differ =
        |a: &SockAddr, b: &SockAddr| a.port() != 0 && b.port() != 0 && a.port() != b.port();
    let addresses_differ = |a: &SockAddr, b: &SockAddr| {
        !a.is_any_or_loopback() && !b.is_any_or_loopback() && !a.same_address(b)
    };
    owners.iter().all(|owner| {
        ports_differ(&new.dst, &owner.dst)
            || addresses_differ(&new.addr, &owner.addr)
            || addresses_differ(&new.dst, &owner.dst)
    })
}

/// Few addresses, of all kinds, so that many are the same.
fn addr() -> impl Strategy<Value = SockAddr> {
    let last = prop_oneof![Just(0_u8), Just(1), Just(2)];
    let first = prop_oneof![Just(0_u8), Just(10), Just(127), Just(0xfe)];
    (0..4_u8, first, last, 0..3_u16, 0..2_u32).prop_map(|(family, first, last, port, scope)| {
        let mut bytes = [0; 16];
        bytes[0] = first;
        bytes[1] = if first == 0xfe { 0x80 } else { 0 };
        bytes[15] = last;
        match family {
            0 => SockAddr::Unspec,
            1 => SockAddr::v4([first, 0, 0, last], port),
            2 => SockAddr::V6 {
                addr: bytes,
                port,
                flowinfo: 0,
                scope_id: scope,
            },
            _ => SockAddr::ib(0, Gid(bytes), 0x0106_0000 | u64::from(port)),
        }
    })
}

fn owner() -> impl Strategy<Value = PortOwner> {
    let flags = (any::<bool>(), any::<bool>());
    let group = prop::option::of(0..3_u32);
    (addr(), addr(), flags, group).prop_map(|(addr, dst, (reuseaddr, afonly), group)| PortOwner {
        addr,
        dst,
        reuseaddr,
        afonly,
        group: group.map(|user| PortGroup::new(Some(user), PortSpace::Tcp, QpType::RC)),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn a_look_at_each_kind_is_enough(
        new in owner(),
        owners in prop::collection::vec(owner(), 0..12),
    ) {
        let bindings: BTreeSet<_> = owners.iter().map(Binding::of).collect();
        let looks = Cell::new(0);
        let checked = Binding::of(&new).check(|from| {
            looks.set(looks.get() + 1);
            bindings.range(from..).next().copied()
        });
        prop_assert_eq!(checked, check(&new, &owners));
        prop_assert!(looks.get() <= 3 * 64 + 1);
    }

    #[test]
    fn an_ephemeral_port_is_shared_by_the_same(
        new in owner(),
        owners in prop::collection::vec(owner(), 0..4),
    ) {
        let others = owners.iter().map(|owner| (Binding::of(owner), Peer::of(&owner.dst)));
        let may_share = super::is_unique((&Binding::of(&new), &Peer::of(&new.dst)), others);
        prop_assert_eq!(may_share, is_unique(&new, &owners));
    }
}

#[test]
fn the_owners_of_an_ephemeral_port_are_few() {
    let at = |port| PortOwner {
        addr: SockAddr::v4([10, 0, 0, 1], 40000),
        dst: SockAddr::v4([10, 0, 0, 2], port),
        reuseaddr: false,
        afonly: true,
        group: None,
    };
    let owners: Vec<_> = (2..66).map(at).collect();
    let seen = |owner: &PortOwner| (Binding::of(owner), Peer::of(&owner.dst));
    let (binding, peer) = seen(&at(1));
    let may_share = |count| super::is_unique((&binding, &peer), owners[..count].iter().map(seen));
    assert!(may_share(MOST_SHARERS - 1));
    assert!(!may_share(MOST_SHARERS));
}
