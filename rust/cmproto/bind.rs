// SPDX-License-Identifier: GPL-2.0

//! The rules for sharing a port.
//!
//! The rules are those of C's connection manager, not those of TCP: a loopback address counts as a
//! wildcard, a wildcard conflicts with every owner of the port, and the two kinds of conflict have
//! different errors.
//!
//! One rule is not C's: owners of one [`PortGroup`] share one and the same address, wildcard or
//! not, and may even listen there. Another owner that wants the same, but is not of the group, gets
//! [`Errno::EADDRINUSE`].
//!
//! A port may have very many owners, all of them of one user. Many of them are the same to the
//! rules, which look at one of each kind: a table that is sorted by [`Binding`] finds it.

use crate::addr::SockAddr;
use crate::errno::Errno;
use crate::reuseport::PortGroup;

/// Ports below this one need `CAP_NET_BIND_SERVICE` in the initial user namespace.
pub const PRIVILEGED_PORTS: u16 = 1024;

/// The owner of a port, with everything that the rules look at.
#[derive(Copy, Clone, Debug)]
pub struct PortOwner {
    /// The address that is bound, or to be bound.
    pub addr: SockAddr,
    /// The address of the peer, [`SockAddr::Unspec`] if there is none yet.
    pub dst: SockAddr,
    /// Set if the port may be shared with others that allow it, too.
    pub reuseaddr: bool,
    /// Set if a wildcard address covers its own address family only.
    pub afonly: bool,
    /// The group that shares the address, if the owner is in one.
    pub group: Option<PortGroup>,
}

/// The kind of an owner: all that the rules look at but the address and the group.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind(u8);

impl Kind {
    const REUSEPORT: u8 = 0x20;
    const REUSEADDR: u8 = 0x10;
    const AFONLY: u8 = 0x08;
    const WILDCARD: u8 = 0x04;
    const FAMILY: u8 = 0x03;
    const LEAST: Self = Kind(0);
    const LAST: u8 = 0x3f;

    #[inline]
    fn of(addr: &SockAddr, reuseaddr: bool, afonly: bool) -> Self {
        let family = match addr {
            SockAddr::Unspec => 0,
            SockAddr::V4 { .. } => 1,
            SockAddr::V6 { .. } => 2,
            SockAddr::Ib { .. } => 3,
        };
        Kind(family)
            .with(Self::REUSEADDR, reuseaddr)
            .with(Self::AFONLY, afonly)
            .with(Self::WILDCARD, addr.is_any_or_loopback())
    }

    /// Returns the kind with a flag set or cleared.
    const fn with(self, flag: u8, is_set: bool) -> Self {
        if is_set {
            Kind(self.0 | flag)
        } else {
            Kind(self.0 & !flag)
        }
    }

    const fn is_wildcard(self) -> bool {
        self.0 & Self::WILDCARD != 0
    }

    const fn is_family_of(self, other: Self) -> bool {
        (self.0 ^ other.0) & Self::FAMILY == 0
    }

    /// Returns whether owners of both kinds are in groups.
    const fn are_in_groups(self, other: Self) -> bool {
        self.0 & other.0 & Self::REUSEPORT != 0
    }

    /// Returns whether owners of both kinds can have one and the same address, which a group may
    /// share.
    const fn is_same_place(self, other: Self) -> bool {
        let mut differences = (self.0 ^ other.0) & (Self::FAMILY | Self::WILDCARD | Self::AFONLY);
        if !self.is_wildcard() {
            differences &= !Self::AFONLY;
        }
        differences == 0
    }

    /// Returns whether owners of both kinds never conflict.
    const fn shares_with(self, other: Self) -> bool {
        let both = self.0 & other.0;
        let apart = both & Self::AFONLY != 0 && !self.is_family_of(other);
        both & Self::REUSEADDR != 0 || apart
    }

    fn next(self) -> Option<Self> {
        let next = self.0.checked_add(1)?;
        (next <= Self::LAST).then_some(Kind(next))
    }
}

/// Returns the scope of a link-local IPv6 address, and 0 for others.
fn scope_of(addr: &SockAddr) -> u32 {
    match addr {
        SockAddr::V6 { scope_id, .. } if addr.is_link_local_v6() => *scope_id,
        _ => 0,
    }
}

/// An owner of a port as the rules for sharing see it. To them, owners with equal bindings are the
/// same.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    kind: Kind,
    /// The scope of a link-local IPv6 address, else 0.
    scope: u32,
    /// The address, unless it is a wildcard: equal for those that [`SockAddr::same_address`] says
    /// are the same, with the scope.
    addr: [u64; 2],
    /// The group, if the owner is in one.
    group: Option<PortGroup>,
}

impl Binding {
    /// The least binding.
    pub const LEAST: Self = Self::first(Kind::LEAST);

    /// Returns the binding of an owner.
    pub fn of(owner: &PortOwner) -> Self {
        Self::new(&owner.addr, owner.reuseaddr, owner.afonly).in_group(owner.group)
    }

    /// Returns the binding of the same owner in a group or in none.
    fn in_group(self, group: Option<PortGroup>) -> Self {
        let kind = self.kind.with(Kind::REUSEPORT, group.is_some());
        Binding {
            kind,
            group,
            ..self
        }
    }

    #[inline]
    fn new(addr: &SockAddr, reuseaddr: bool, afonly: bool) -> Self {
        let kind = Kind::of(addr, reuseaddr, afonly);
        let (bytes, scope) = match addr {
            _ if kind.is_wildcard() => return Self::first(kind),
            SockAddr::Unspec => return Self::first(kind),
            SockAddr::V4 { addr, .. } => {
                let addr = [0, u32::from_be_bytes(*addr).into()];
                return Binding {
                    addr,
                    ..Self::first(kind)
                };
            }
            SockAddr::V6 { addr: bytes, .. } => (bytes, scope_of(addr)),
            SockAddr::Ib { gid, .. } => (&gid.0, 0),
        };
        let [a, b, c, d, e, f, g, h, low @ ..] = *bytes;
        let high = [a, b, c, d, e, f, g, h];
        let addr = [high, low].map(u64::from_be_bytes);
        Binding {
            kind,
            scope,
            addr,
            group: None,
        }
    }

    /// Sets the address.
    pub fn set_addr(&mut self, addr: &SockAddr) {
        let afonly = self.kind.0 & Kind::AFONLY != 0;
        *self = Self::new(addr, self.allows_reuse(), afonly).in_group(self.group);
    }

    /// Returns [`PortOwner::reuseaddr`].
    pub const fn allows_reuse(&self) -> bool {
        self.kind.0 & Kind::REUSEADDR != 0
    }

    /// Sets [`PortOwner::reuseaddr`].
    pub fn set_reuseaddr(&mut self, reuseaddr: bool) {
        self.kind = self.kind.with(Kind::REUSEADDR, reuseaddr);
    }

    /// Sets [`PortOwner::afonly`].
    pub fn set_afonly(&mut self, afonly: bool) {
        self.kind = self.kind.with(Kind::AFONLY, afonly);
    }

    /// Returns the least binding of a kind.
    const fn first(kind: Kind) -> Self {
        Binding {
            kind,
            scope: 0,
            addr: [0; 2],
            group: None,
        }
    }

    /// Returns whether an owner with this kind and the address of this one is in another group.
    /// `first` is that of [`check`](Self::check).
    fn has_other_group(&self, kind: Kind, first: impl Fn(&Binding) -> Option<Binding>) -> bool {
        let at = |group| Binding {
            kind,
            group: Some(group),
            ..*self
        };
        let from = |group| {
            let found = first(&at(group))?;
            let is_here = (found.kind, found.scope, found.addr) == (kind, self.scope, self.addr);
            found.group.filter(|_| is_here)
        };
        match (from(PortGroup::FIRST), self.group) {
            (Some(found), Some(own)) => found != own || from(own.next()).is_some(),
            (found, _) => found.is_some(),
        }
    }

    /// Checks whether an owner with this binding may share its port with the other owners. `first`
    /// returns the first of their bindings that is not below one.
    ///
    /// Asks for no more than three bindings of each kind, of which there are 64, however many
    /// owners there are. To check whether an owner may listen, leave it out and clear
    /// [`PortOwner::reuseaddr`].
    ///
    /// # Errors
    ///
    /// [`Errno::EADDRNOTAVAIL`] if there is a conflict in which one of the two has a wildcard or
    /// loopback address, else [`Errno::EADDRINUSE`] if there is one with the same address. Among
    /// owners in groups each conflict is [`Errno::EADDRINUSE`].
    pub fn check(&self, first: impl Fn(&Binding) -> Option<Binding>) -> Result<(), Errno> {
        let mut checked = Ok(());
        let mut from = Some(Kind::LEAST);
        while let Some(found) = from.and_then(|kind| first(&Self::first(kind))) {
            let kind = found.kind;
            if !self.kind.shares_with(kind) {
                if self.kind.are_in_groups(kind) {
                    if self.conflicts_as_group(kind, &first) {
                        checked = Err(Errno::EADDRINUSE);
                    }
                } else if self.kind.is_wildcard() || kind.is_wildcard() {
                    return Err(Errno::EADDRNOTAVAIL);
                } else if self.kind.is_family_of(kind) && self.is_taken(kind, &first) {
                    checked = Err(Errno::EADDRINUSE);
                }
            }
            from = kind.next();
        }
        checked
    }

    /// Returns whether there is an owner of this kind with the address of this one, which is no
    /// wildcard.
    fn is_taken(&self, kind: Kind, first: impl Fn(&Binding) -> Option<Binding>) -> bool {
        let least = Binding {
            kind,
            group: None,
            ..*self
        };
        let is_here =
            |found: Binding| (found.kind, found.scope, found.addr) == (kind, self.scope, self.addr);
        first(&least).is_some_and(is_here)
    }

    /// Returns whether this owner conflicts with one of this kind, both of which are in groups: if
    /// one has a wildcard, unless both have the same, or if they have the same address; and if the
    /// groups differ.
    fn conflicts_as_group(&self, kind: Kind, first: impl Fn(&Binding) -> Option<Binding>) -> bool {
        if self.kind.is_same_place(kind) {
            return self.has_other_group(kind, first);
        }
        self.kind.is_wildcard() || kind.is_wildcard()
    }

    /// Returns whether the addresses of both are certainly different.
    fn differs_from(&self, other: &Self) -> bool {
        let is_specific = !self.kind.is_wildcard() && !other.kind.is_wildcard();
        let is_same = self.kind.is_family_of(other.kind)
            && (self.scope, self.addr) == (other.scope, other.addr);
        is_specific && !is_same
    }
}

/// The peer of a port's owner, as the rules for sharing an ephemeral port see it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The address, as that of an owner.
    binding: Binding,
    /// The port, or 0 if that is not known.
    port: u16,
}

impl Peer {
    /// No peer.
    pub const NONE: Self = Peer {
        binding: Binding::LEAST,
        port: 0,
    };

    /// Returns the peer with the address `dst`, [`SockAddr::Unspec`] if there is none yet.
    pub fn of(dst: &SockAddr) -> Self {
        Peer {
            binding: Binding::new(dst, false, false),
            port: dst.port(),
        }
    }

    fn differs_from(&self, other: &Self) -> bool {
        let ports_differ = self.port != 0 && other.port != 0 && self.port != other.port;
        ports_differ || self.binding.differs_from(&other.binding)
    }
}

/// The most owners that share an ephemeral port.
pub const MOST_SHARERS: usize = 64;

/// Returns whether `new` may share an ephemeral port with `owners`: they are not too many, and each
/// of them has another port of the peer, another specific address, or another specific address of
/// the peer.
pub fn is_unique(
    new: (&Binding, &Peer),
    owners: impl IntoIterator<Item = (Binding, Peer)>,
) -> bool {
    let mut count = 0_usize;
    owners.into_iter().all(|(binding, peer)| {
        count = count.saturating_add(1);
        let is_other = new.1.differs_from(&peer) || new.0.differs_from(&binding);
        count < MOST_SHARERS && is_other
    })
}

#[cfg(test)]
mod walk;

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_bind))]
mod tests {
    use super::*;
    use crate::{addr::Gid, qp::QpType, service_id::PortSpace};

    const NONE: SockAddr = SockAddr::Unspec;

    fn v4(addr: [u8; 4], port: u16) -> SockAddr {
        SockAddr::v4(addr, port)
    }

    fn v6(first: u16, last: u8, scope_id: u32) -> SockAddr {
        let mut addr = [0; 16];
        addr[..2].copy_from_slice(&first.to_be_bytes());
        addr[15] = last;
        SockAddr::V6 {
            addr,
            port: 7,
            flowinfo: 0,
            scope_id,
        }
    }

    fn ib(last: u8) -> SockAddr {
        let mut gid = [0; 16];
        gid[0] = 0xfe;
        gid[15] = last;
        SockAddr::Ib {
            pkey: 0,
            flowinfo: 0,
            gid: Gid(gid),
            sid: 0x0106_0007,
            sid_mask: u64::MAX,
            scope_id: 0,
        }
    }

    fn owner(addr: &SockAddr, flags: &str) -> PortOwner {
        PortOwner {
            addr: *addr,
            dst: NONE,
            reuseaddr: flags.contains('r'),
            afonly: flags.contains('f'),
            group: flags.chars().find_map(|c| {
                let user = c.to_digit(10)?;
                Some(PortGroup::new(Some(user), PortSpace::Tcp, QpType::RC))
            }),
        }
    }

    /// Checks whether `new` may share a port with these owners.
    fn check(new: &PortOwner, owners: &[PortOwner]) -> Result<(), Errno> {
        let first = |from: &Binding| {
            let bindings = owners.iter().map(Binding::of);
            bindings.filter(|binding| binding >= from).min()
        };
        Binding::of(new).check(first)
    }

    /// Returns whether `new` may share an ephemeral port with these owners.
    fn may_share(new: &PortOwner, owners: &[PortOwner]) -> bool {
        let others = owners
            .iter()
            .map(|owner| (Binding::of(owner), Peer::of(&owner.dst)));
        is_unique((&Binding::of(new), &Peer::of(&new.dst)), others)
    }

    #[test]
    fn conflicts() {
        use Errno::{EADDRINUSE, EADDRNOTAVAIL};
        let (a, b) = (v4([10, 0, 0, 1], 7), v4([10, 0, 0, 2], 7));
        let (any, zeronet, lo) = (
            v4([0, 0, 0, 0], 7),
            v4([0, 1, 2, 3], 7),
            v4([127, 0, 0, 1], 7),
        );
        let (a6, any6, lo6) = (v6(0x2001, 1, 0), v6(0, 0, 0), v6(0, 1, 0));
        let (ll1, ll2) = (v6(0xfe80, 1, 1), v6(0xfe80, 1, 2));
        #[rustfmt::skip]
        let table = [
            (&a, "", &a, "", Err(EADDRINUSE)),
            (&a, "", &b, "", Ok(())),
            (&a, "r", &a, "r", Ok(())),
            (&a, "r", &a, "", Err(EADDRINUSE)),
            (&a, "", &a, "r", Err(EADDRINUSE)),
            (&any, "", &a, "", Err(EADDRNOTAVAIL)),
            (&a, "", &any, "", Err(EADDRNOTAVAIL)),
            (&any, "", &any, "", Err(EADDRNOTAVAIL)),
            (&any, "r", &any, "r", Ok(())),
            (&lo, "", &a, "", Err(EADDRNOTAVAIL)),
            (&lo, "", &lo, "", Err(EADDRNOTAVAIL)),
            (&zeronet, "", &a, "", Ok(())),
            (&any, "f", &any6, "f", Ok(())),
            (&any, "f", &any6, "", Err(EADDRNOTAVAIL)),
            (&any, "", &any6, "f", Err(EADDRNOTAVAIL)),
            (&any, "f", &any, "f", Err(EADDRNOTAVAIL)),
            (&lo6, "", &a6, "", Err(EADDRNOTAVAIL)),
            (&a, "", &a6, "", Ok(())),
            (&a6, "", &a6, "", Err(EADDRINUSE)),
            (&ll1, "", &ll2, "", Ok(())),
            (&ll1, "", &ll1, "", Err(EADDRINUSE)),
            (&ib(1), "", &ib(1), "", Err(EADDRINUSE)),
            (&ib(1), "", &ib(2), "", Ok(())),
            (&ib(0), "", &ib(2), "", Ok(())),
            // Groups, by the number of a user.
            (&a, "1", &a, "1", Ok(())),
            (&a, "1", &a, "1f", Ok(())),
            (&a, "1r", &a, "1", Ok(())),
            (&a, "1", &a, "2", Err(EADDRINUSE)),
            (&a, "2", &a, "1", Err(EADDRINUSE)),
            (&a, "1r", &a, "2r", Ok(())),
            (&a, "1", &b, "2", Ok(())),
            (&a, "1", &a, "", Err(EADDRINUSE)),
            (&a, "", &a, "1", Err(EADDRINUSE)),
            (&any, "1f", &any, "1f", Ok(())),
            (&any, "1f", &any, "2f", Err(EADDRINUSE)),
            (&any, "1f", &any, "f", Err(EADDRNOTAVAIL)),
            (&any, "f", &any, "1f", Err(EADDRNOTAVAIL)),
            (&any, "1f", &any, "1", Err(EADDRINUSE)),
            (&any, "1", &a, "1", Err(EADDRINUSE)),
            (&any, "1", &any6, "1", Err(EADDRINUSE)),
            (&any, "1f", &any6, "1f", Ok(())),
            (&any6, "1", &any6, "1", Ok(())),
            (&ll1, "1", &ll1, "1", Ok(())),
            (&ll1, "1", &ll2, "2", Ok(())),
            (&ib(1), "1", &ib(1), "1", Ok(())),
            (&ib(1), "1", &ib(1), "2", Err(EADDRINUSE)),
        ];
        for (new, new_flags, other, other_flags, want) in table {
            let mut new_owner = owner(new, new_flags);
            let got = check(&new_owner, &[owner(other, other_flags)]);
            let mut binding = Binding::of(&owner(other, other_flags)).in_group(new_owner.group);
            binding.set_addr(new);
            binding.set_reuseaddr(new_owner.reuseaddr);
            binding.set_afonly(new_owner.afonly);
            assert_eq!(binding, Binding::of(&new_owner));
            assert_eq!(binding.allows_reuse(), new_owner.reuseaddr);
            new_owner.dst = *other;
            assert_eq!(binding, Binding::of(&new_owner));
            assert_eq!(
                (new, new_flags, other, other_flags, got),
                (new, new_flags, other, other_flags, want)
            );
        }
        assert_eq!(check(&owner(&any, ""), &[]), Ok(()));
        // A wildcard decides.
        for owners in [[&b, &a, &any], [&any, &b, &a]] {
            let owners = owners.map(|addr| owner(addr, ""));
            assert_eq!(check(&owner(&a, ""), &owners), Err(EADDRNOTAVAIL));
        }
    }

    #[test]
    fn sharing_ephemeral_ports() {
        let (a, b, any) = (
            v4([10, 0, 0, 1], 0),
            v4([10, 0, 0, 2], 0),
            v4([0, 0, 0, 0], 0),
        );
        let (peer7, peer8) = (v4([10, 9, 9, 9], 7), v4([10, 9, 9, 9], 8));
        let (other7, any7, no_port) = (
            v4([10, 9, 9, 8], 7),
            v4([0, 0, 0, 0], 7),
            v4([10, 9, 9, 9], 0),
        );
        #[rustfmt::skip]
        let table = [
            (&a, &peer7, &a, &peer7, false),
            (&a, &peer7, &a, &peer8, true),
            (&a, &peer7, &a, &no_port, false),
            (&a, &peer7, &b, &peer7, true),
            (&a, &peer7, &any, &peer7, false),
            (&any, &peer7, &any, &other7, true),
            (&any, &peer7, &any, &any7, false),
            (&a, &NONE, &b, &NONE, true),
            (&a, &NONE, &a, &NONE, false),
            // No address differs from any address.
            (&a, &NONE, &a, &peer7, true),
        ];
        for (addr, dst, other_addr, other_dst, want) in table {
            let new = PortOwner {
                dst: *dst,
                ..owner(addr, "")
            };
            let other = PortOwner {
                dst: *other_dst,
                ..owner(other_addr, "")
            };
            assert_eq!((addr, dst, may_share(&new, &[other])), (addr, dst, want));
            assert_eq!(may_share(&other, &[new]), want);
            assert!(may_share(&new, &[]));
            assert_eq!(Peer::of(&NONE), Peer::NONE);
        }
    }

    #[test]
    fn ports_below_1024_are_privileged() {
        // The default of the sysctl `net.ipv4.ip_unprivileged_port_start`.
        assert_eq!(PRIVILEGED_PORTS, 1024);
    }
}
