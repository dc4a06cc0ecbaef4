// SPDX-License-Identifier: GPL-2.0

//! The rules for sharing a port.
//!
//! The rules are those of C's connection manager, not those of TCP: a loopback address counts as a
//! wildcard, a wildcard conflicts with every owner of the port, and the two kinds of conflict have
//! different errors.

use crate::addr::SockAddr;
use crate::errno::Errno;

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
}

/// Checks whether `new` may share the port of `owners`. To check whether an owner may listen, leave
/// it out of `owners` and clear [`PortOwner::reuseaddr`].
///
/// # Errors
///
/// The first conflicting owner decides: [`Errno::EADDRNOTAVAIL`] if it or `new` has a wildcard or
/// loopback address, else [`Errno::EADDRINUSE`].
pub fn check<'a>(
    new: &PortOwner,
    owners: impl IntoIterator<Item = &'a PortOwner>,
) -> Result<(), Errno> {
    for owner in owners {
        let shared = new.reuseaddr && owner.reuseaddr;
        let apart = new.afonly && owner.afonly && new.addr.family() != owner.addr.family();
        if shared || apart {
            continue;
        }
        if new.addr.is_any_or_loopback() || owner.addr.is_any_or_loopback() {
            return Err(Errno::EADDRNOTAVAIL);
        }
        if new.addr.same_address(&owner.addr) {
            return Err(Errno::EADDRINUSE);
        }
    }
    Ok(())
}

/// Returns whether `new` may share an ephemeral port with `owners`: each of them has another port
/// of the peer, another specific address, or another specific address of the peer.
pub fn port_is_unique<'a>(
    new: &PortOwner,
    owners: impl IntoIterator<Item = &'a PortOwner>,
) -> bool {
    owners.into_iter().all(|owner| {
        ports_differ(&new.dst, &owner.dst)
            || addresses_differ(&new.addr, &owner.addr)
            || addresses_differ(&new.dst, &owner.dst)
    })
}

fn ports_differ(a: &SockAddr, b: &SockAddr) -> bool {
    a.port() != 0 && b.port() != 0 && a.port() != b.port()
}

fn addresses_differ(a: &SockAddr, b: &SockAddr) -> bool {
    !a.is_any_or_loopback() && !b.is_any_or_loopback() && !a.same_address(b)
}

/// The range of ephemeral ports (`net.ipv4.ip_local_port_range`).
///
/// # Invariants
///
/// `low` is not greater than `high`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct EphemeralRange {
    low: u16,
    high: u16,
}

impl EphemeralRange {
    /// Creates the range from `low` to `high`, both included. Returns `None` if it is empty.
    pub const fn new(low: u16, high: u16) -> Option<Self> {
        if low > high {
            return None;
        }
        // INVARIANT: This was just checked.
        Some(Self { low, high })
    }

    /// Returns the ports in the order in which to try them: upwards from a start that the random
    /// number `random` chooses, wrapping at the end, each once. The port `last_used` comes last.
    pub fn probe(self, random: u32, last_used: Option<u16>) -> impl Iterator<Item = u16> {
        let count = u64::from(self.high.abs_diff(self.low)).saturating_add(1);
        // Scales the random number to the range 0..count. The result is below 2^16, so that the
        // conversion cannot fail.
        let skip = u64::from(random).wrapping_mul(count) >> 32;
        let start = u16::try_from(skip).map_or(self.low, |skip| self.low.saturating_add(skip));
        let again = last_used.filter(|port| (self.low..=self.high).contains(port));
        (start..=self.high)
            .chain(self.low..start)
            .filter(move |port| Some(*port) != last_used)
            .chain(again)
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(CONFIG_KUNIT, allow(unsafe_code), crate::kunit::suite(cmproto_bind))]
mod tests {
    use super::*;
    use crate::addr::Gid;

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
        }
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
        ];
        for (new, new_flags, other, other_flags, want) in table {
            let got = check(&owner(new, new_flags), [&owner(other, other_flags)]);
            assert_eq!(
                (new, new_flags, other, other_flags, got),
                (new, new_flags, other, other_flags, want)
            );
        }
        assert_eq!(check(&owner(&any, ""), []), Ok(()));
        // The first conflict decides.
        assert_eq!(
            check(
                &owner(&a, ""),
                [&owner(&b, ""), &owner(&a, ""), &owner(&any, "")]
            ),
            Err(EADDRINUSE)
        );
        assert_eq!(
            check(&owner(&a, ""), [&owner(&any, ""), &owner(&a, "")]),
            Err(EADDRNOTAVAIL)
        );
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
            assert_eq!(
                (addr, dst, port_is_unique(&new, [&other])),
                (addr, dst, want)
            );
            assert_eq!(port_is_unique(&other, [&new]), want);
            assert!(port_is_unique(&new, []));
        }
    }

    #[test]
    fn ports_below_1024_are_privileged() {
        // The default of the sysctl `net.ipv4.ip_unprivileged_port_start`.
        assert_eq!(PRIVILEGED_PORTS, 1024);
    }

    #[test]
    #[cfg(test)]
    fn probing_tries_every_port_once() {
        assert_eq!(EphemeralRange::new(5, 4), None);
        for (low, high) in [(32768, 60999), (1, 1), (0, 65535), (65530, 65535)] {
            let range = EphemeralRange::new(low, high).unwrap();
            for random in [0, 1, 0x8000_0000, u32::MAX] {
                let ports: Vec<_> = range.probe(random, None).collect();
                assert_eq!(ports.len(), usize::from(high - low) + 1);
                let wraps = ports.windows(2).filter(|w| w[1] != w[0].wrapping_add(1));
                assert!(wraps.count() <= 1);
                let mut sorted = ports.clone();
                sorted.sort();
                assert!(sorted.iter().copied().eq(low..=high));
                let last = ports[ports.len() / 2];
                let mut rest: Vec<_> = range.probe(random, Some(last)).collect();
                assert_eq!(rest.len(), ports.len());
                assert_eq!(rest.pop(), Some(last));
                assert!(!rest.contains(&last));
            }
            assert_eq!(range.probe(0, None).next(), Some(low));
            assert_eq!(range.probe(u32::MAX, None).next(), Some(high));
        }
    }
}
