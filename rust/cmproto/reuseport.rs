// SPDX-License-Identifier: GPL-2.0

//! Several listeners at one address and port: who may share these, and which of them a request
//! goes to.
//!
//! The listeners at an address are the members of a group. A request goes to the member that a
//! keyed hash of its sender ranks first (highest random weight; Thaler and Ravishankar, 1998), or
//! to the first one whose backlog has room. So a request that comes again goes to the same member,
//! and when a member goes or comes, no request changes its member but those of this one.

use crate::{origin::Origin, qp::QpType, service_id::PortSpace, siphash::siphash13};
use core::num::NonZeroU64;

/// The most members of a group: each request looks at all of them.
pub const MOST_MEMBERS: usize = 128;

/// The owners that may share an address with each other: equal for the ids of one user, of one port
/// space and with one type of queue pair.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortGroup(NonZeroU64);

impl PortGroup {
    /// Set in every group, so that it is not 0.
    const ANY: u64 = 1 << 63;

    /// The first group in the order of groups, which nobody is in.
    pub(crate) const FIRST: Self = PortGroup(NonZeroU64::MIN);

    /// Returns the group of an id of `user`. Parts of the kernel have no user, and are in groups of
    /// their own.
    pub const fn new(user: Option<u32>, ps: PortSpace, qp_type: QpType) -> Self {
        let user = match user {
            Some(user) => 1 << 32 | user as u64,
            None => 0,
        };
        let kind = (ps.number() as u64) << 8 | qp_type.0 as u64;
        // The kind has 24 bits, and the user 33.
        match NonZeroU64::new(Self::ANY | user << 24 | kind) {
            Some(group) => PortGroup(group),
            None => Self::FIRST,
        }
    }

    /// Returns the next group in the order of groups.
    pub(crate) const fn next(self) -> Self {
        PortGroup(self.0.saturating_add(1))
    }
}

/// The sender of a request, by which a member is chosen.
#[derive(Copy, Clone, Debug)]
pub struct Sender {
    /// The source of the request.
    pub origin: Origin,
    /// The communication id in a REQ, or the request id in a SIDR_REQ.
    pub comm_id: u32,
    /// The number of the queue pair in a REQ; 0 in a SIDR_REQ.
    pub qpn: u32,
}

/// The secret key by which members are chosen.
#[derive(Copy, Clone)]
pub struct ChoiceKey([u64; 2]);

impl ChoiceKey {
    /// Creates a key of 128 random bits.
    pub const fn new(key: [u64; 2]) -> Self {
        ChoiceKey(key)
    }

    fn hash(&self, sender: &Sender) -> u64 {
        let gid = u128::from_be_bytes(sender.origin.shown().0);
        let [high, low] = [(gid >> 64) as u64, gid as u64];
        let ids = u64::from(sender.comm_id) << 32 | u64::from(sender.qpn);
        siphash13(&self.0, &[high, low, ids], 24 << 56)
    }
}

/// The rank of a member for a request. The greatest one is chosen.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    has_room: bool,
    weight: u64,
    /// The number of the member, which decides between equal weights.
    number: u64,
}

/// The choice of a member for a request.
pub struct Choice {
    key: ChoiceKey,
    hash: u64,
    chosen: Option<Rank>,
}

impl Choice {
    /// Starts to choose a member for a request of `sender`.
    pub fn new(key: &ChoiceKey, sender: &Sender) -> Self {
        Choice {
            key: *key,
            hash: key.hash(sender),
            chosen: None,
        }
    }

    /// Looks at the member with the number `number`, whose backlog may have room. Returns whether
    /// it is to be preferred to all before it.
    pub fn prefers(&mut self, number: u64, has_room: bool) -> bool {
        let ChoiceKey(key) = &self.key;
        let rank = Rank {
            has_room,
            weight: siphash13(key, &[self.hash, number], 16 << 56),
            number,
        };
        let is_best = self.chosen.is_none_or(|chosen| chosen < rank);
        if is_best {
            self.chosen = Some(rank);
        }
        is_best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gid::Gid;

    const KEY: ChoiceKey = ChoiceKey::new([0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
    const REQUESTS: u32 = 20_000;

    /// Returns the sender of the request `n` of a host that counts its ids, as C does.
    fn sender(n: u32) -> Sender {
        let mut gid = [0; 16];
        gid[10..].copy_from_slice(&[0xff, 0xff, 10, 0, 0, 1 + (n % 3) as u8]);
        Sender {
            origin: Origin::of_gid(Gid(gid)),
            comm_id: 0x4000_0000 + n,
            qpn: 17 + n % 500,
        }
    }

    /// Returns the member that gets a request, of those with these numbers that may have room.
    fn chosen(key: &ChoiceKey, sender: &Sender, members: &[(u64, bool)]) -> Option<u64> {
        let mut choice = Choice::new(key, sender);
        let mut best = None;
        for (number, has_room) in members {
            if choice.prefers(*number, *has_room) {
                best = Some(*number);
            }
        }
        best
    }

    const MEMBERS: [(u64, bool); 4] = [(7, true), (8, true), (300, true), (1 << 40, true)];

    #[test]
    fn each_member_gets_its_share() {
        for count in [1, 2, 4] {
            let members = &MEMBERS[..count];
            let mut shares = [0_u32; 4];
            for n in 0..REQUESTS {
                let to = chosen(&KEY, &sender(n), members);
                let at = members.iter().position(|(number, _)| Some(*number) == to);
                shares[at.unwrap()] += 1;
            }
            let fair = REQUESTS / count as u32;
            for share in &shares[..count] {
                assert!(share.abs_diff(fair) <= fair / 20, "{count}: {share}");
            }
        }
    }

    #[test]
    fn a_request_that_comes_again_goes_to_the_same() {
        let mut reversed = MEMBERS;
        reversed.reverse();
        for n in 0..1000 {
            let first = chosen(&KEY, &sender(n), &MEMBERS);
            assert_eq!(chosen(&KEY, &sender(n), &MEMBERS), first);
            assert_eq!(chosen(&KEY, &sender(n), &reversed), first);
        }
        assert_eq!(chosen(&KEY, &sender(0), &[]), None);
    }

    #[test]
    fn when_a_member_goes_the_requests_of_others_stay() {
        for n in 0..1000 {
            let before = chosen(&KEY, &sender(n), &MEMBERS);
            for gone in 0..MEMBERS.len() {
                let mut left = MEMBERS.to_vec();
                let (number, _) = left.remove(gone);
                let after = chosen(&KEY, &sender(n), &left);
                assert_eq!(after == before, before != Some(number));
            }
        }
    }

    #[test]
    fn a_full_member_is_passed_by() {
        for n in 0..1000 {
            let all = chosen(&KEY, &sender(n), &MEMBERS);
            for full in 0..MEMBERS.len() {
                let mut members = MEMBERS;
                members[full].1 = false;
                let mut left = MEMBERS.to_vec();
                left.remove(full);
                let to = chosen(&KEY, &sender(n), &members);
                assert_eq!(to, chosen(&KEY, &sender(n), &left));
            }
            // If all are full, it waits where it would have gone.
            let full = MEMBERS.map(|(number, _)| (number, false));
            assert_eq!(chosen(&KEY, &sender(n), &full), all);
        }
    }

    #[test]
    fn nobody_can_foresee_it_without_the_key() {
        let other = ChoiceKey::new([KEY.0[0] ^ 1, KEY.0[1]]);
        let members = &MEMBERS[..2];
        let count = (0..REQUESTS)
            .filter(|n| chosen(&KEY, &sender(*n), members) == chosen(&other, &sender(*n), members))
            .count();
        assert!(count.abs_diff(10_000) <= 400, "{count}");
        // Each of the fields counts.
        let same = |change: fn(&mut Sender)| {
            let is_same = |n: &u32| {
                let mut changed = sender(*n);
                change(&mut changed);
                chosen(&KEY, &changed, members) == chosen(&KEY, &sender(*n), members)
            };
            (0..REQUESTS).filter(is_same).count()
        };
        for count in [
            same(|sender| sender.comm_id ^= 1),
            same(|sender| sender.qpn ^= 1),
            same(|sender| sender.origin = Origin::of_gid(Gid([1; 16]))),
        ] {
            assert!(count.abs_diff(10_000) <= 400, "{count}");
        }
    }

    #[test]
    fn groups_are_of_one_user_and_one_kind() {
        let group = |user| PortGroup::new(user, PortSpace::Tcp, QpType::RC);
        let groups = [
            group(None),
            group(Some(0)),
            group(Some(1)),
            group(Some(u32::MAX)),
            PortGroup::new(Some(1), PortSpace::Ib, QpType::RC),
            PortGroup::new(Some(1), PortSpace::Ib, QpType::UD),
        ];
        for (a, one) in groups.iter().enumerate() {
            for (b, other) in groups.iter().enumerate() {
                assert_eq!(one == other, a == b);
            }
            assert!(*one > PortGroup::FIRST);
            assert!(one.next() > *one);
        }
    }
}
