// SPDX-License-Identifier: GPL-2.0

//! The accounts of users, which count the objects that their programs make.
//!
//! The user who has opened a file of the device pays for all objects that are made through it. In a
//! user namespace of its own, a process can be any of thousands of users. So the account of a user
//! in a namespace is below the account of the namespace's owner, up to the initial namespace, and a
//! charge counts in all of them.

use crate::{errno::Errno, numbered::numbered};
use core::ops::Deref;

numbered! {
    /// A resource of which each user may have a limited number.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Resource {
        /// Identifiers, but for those of requests that are not settled.
        Ids = 0 => "ids",
        /// Identifiers that listen.
        Listeners = 1 => "listeners",
        /// Requests of peers, until they are settled: connections, answered or given up.
        Requests = 2 => "requests",
        /// Memberships in multicast groups.
        Memberships = 3 => "memberships",
        /// Unread events that programs have written.
        WrittenEvents = 4 => "written_events",
        /// Address handles that connections keep.
        AddressHandles = 5 => "address_handles",
    }
    /// Returns the name of the resource, as users and administrators see it.
    fn name -> &'static str
}

impl Resource {
    /// The number of resources.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the error of a command that would exceed the limit.
    pub const fn error(self) -> Errno {
        match self {
            Self::Ids | Self::Listeners | Self::Requests | Self::Memberships => Errno::EMFILE,
            // There is room again when some were read.
            Self::WrittenEvents => Errno::EAGAIN,
            // No command fails: connections do without.
            Self::AddressHandles => Errno::ENOMEM,
        }
    }
}

/// The account of a user.
pub trait Account {
    /// Counts one more of `resource`. Returns the number before.
    fn add(&self, resource: Resource) -> u32;

    /// Counts one less of `resource`.
    fn remove(&self, resource: Resource);
}

/// Charges one of `resource` to an account, `own`, and to those above it, each of which may have
/// `limit`.
///
/// # Errors
///
/// [`Resource::error`] if one of them has as much already; nothing is charged then.
#[inline]
pub fn charge<A: Account>(
    own: &A,
    above: &[impl Deref<Target = A>],
    resource: Resource,
    limit: u32,
) -> Result<(), Errno> {
    if own.add(resource) < limit && (above.is_empty() || charge_above(above, resource, limit)) {
        return Ok(());
    }
    own.remove(resource);
    Err(resource.error())
}

/// Charges the accounts above. Returns false, and charges none of them, if one of them refuses.
#[inline(never)] // Most users have none.
fn charge_above<A: Account>(
    above: &[impl Deref<Target = A>],
    resource: Resource,
    limit: u32,
) -> bool {
    let mut charged = 0_usize;
    for payer in above {
        charged = charged.saturating_add(1);
        if payer.add(resource) >= limit {
            let charged = above.iter().take(charged);
            charged.for_each(|payer| payer.remove(resource));
            return false;
        }
    }
    true
}

/// Undoes a [`charge`].
#[inline]
pub fn release<A: Account>(own: &A, above: &[impl Deref<Target = A>], resource: Resource) {
    own.remove(resource);
    above.iter().for_each(|payer| payer.remove(resource));
}

/// Turns a [`charge`] for the resource `from` into one for `to`, which cannot fail.
#[inline]
pub fn convert<A: Account>(
    own: &A,
    above: &[impl Deref<Target = A>],
    from: Resource,
    to: Resource,
) {
    own.add(to);
    own.remove(from);
    for payer in above {
        payer.add(to);
        payer.remove(from);
    }
}

#[cfg(any(test, CONFIG_KUNIT))]
#[cfg_attr(
    CONFIG_KUNIT,
    allow(unsafe_code),
    crate::kunit::suite(cmproto_ucma_account)
)]
mod tests {
    use super::*;
    use core::cell::Cell;

    const IDS: Resource = Resource::Ids;

    /// An account that counts one resource, whichever it is.
    #[derive(Default)]
    struct User(Cell<u32>);

    impl Account for User {
        fn add(&self, _: Resource) -> u32 {
            self.0.replace(self.0.get() + 1)
        }

        fn remove(&self, _: Resource) {
            self.0.set(self.0.get() - 1);
        }
    }

    /// Charges `own` and the accounts above until one refuses. Returns the number of charges.
    fn fill(own: &User, above: &[&User], limit: u32) -> usize {
        (0..100)
            .take_while(|_| charge(own, above, IDS, limit).is_ok())
            .count()
    }

    #[test]
    fn a_user_has_as_much_as_the_limit() {
        for limit in [0, 1, 7] {
            let user = User::default();
            assert_eq!(fill(&user, &[], limit), limit as usize);
            let refused = charge(&user, &[] as &[&User], IDS, limit);
            assert_eq!((refused, user.0.get()), (Err(Errno::EMFILE), limit));
        }
    }

    #[test]
    fn a_released_one_makes_room() {
        let user = User::default();
        assert_eq!(fill(&user, &[], 3), 3);
        release(&user, &[] as &[&User], IDS);
        assert_eq!((fill(&user, &[], 3), user.0.get()), (1, 3));
    }

    #[test]
    fn a_limit_that_was_lowered_takes_nothing_away() {
        let user = User::default();
        assert_eq!(fill(&user, &[], 5), 5);
        assert_eq!((fill(&user, &[], 2), user.0.get()), (0, 5));
        (0..4).for_each(|_| release(&user, &[] as &[&User], IDS));
        assert_eq!((fill(&user, &[], 2), user.0.get()), (1, 2));
    }

    #[test]
    fn users_do_not_share() {
        let (one, other) = (User::default(), User::default());
        assert_eq!((fill(&one, &[], 4), fill(&other, &[], 4)), (4, 4));
    }

    #[test]
    fn users_of_a_namespace_share_with_its_owner() {
        let [owner, first, second, inner] = [(); 4].map(|()| User::default());
        let used = || [&owner, &first, &second, &inner].map(|user| user.0.get());
        let above = [&second, &owner];
        assert_eq!(fill(&first, &[&owner], 5), 5);
        release(&first, &[&owner], IDS);
        assert_eq!(fill(&inner, &above, 5), 1);
        // A refusal counts nowhere: neither in the account that refuses, nor below.
        for (own, above) in [
            (&inner, &above[..]),
            (&second, &above[1..]),
            (&first, &above[1..]),
            (&owner, &[]),
        ] {
            assert_eq!(fill(own, above, 5), 0);
        }
        assert_eq!(used(), [5, 4, 1, 1]);
        // Nor above, which is not asked.
        assert_eq!((fill(&inner, &above, 1), used()), (0, [5, 4, 1, 1]));
        release(&inner, &above, IDS);
        assert_eq!((used(), fill(&owner, &[], 5)), ([4, 4, 0, 0], 1));
    }

    #[test]
    fn a_request_becomes_an_id_in_all_accounts() {
        /// An account that counts all resources.
        #[derive(Default)]
        struct Full([Cell<u32>; Resource::COUNT]);

        impl Account for Full {
            fn add(&self, resource: Resource) -> u32 {
                let count = &self.0[resource as usize];
                count.replace(count.get() + 1)
            }

            fn remove(&self, resource: Resource) {
                let count = &self.0[resource as usize];
                count.set(count.get() - 1);
            }
        }

        let (own, owner) = (Full::default(), Full::default());
        let used = |resource| [&own, &owner].map(|user| user.0[resource as usize].get());
        charge(&own, &[&owner], Resource::Requests, 1).unwrap();
        assert_eq!((used(Resource::Requests), used(IDS)), ([1, 1], [0, 0]));
        convert(&own, &[&owner], Resource::Requests, IDS);
        assert_eq!((used(Resource::Requests), used(IDS)), ([0, 0], [1, 1]));
    }

    #[test]
    fn names_differ() {
        for (number, resource) in Resource::ALL.iter().enumerate() {
            assert_eq!(*resource as usize, number);
            let names = Resource::ALL.map(Resource::name);
            assert_eq!(
                names
                    .iter()
                    .filter(|&&name| name == resource.name())
                    .count(),
                1
            );
        }
    }
}
