// SPDX-License-Identifier: GPL-2.0

//! The accounts of users, and the charges to them.
//!
//! The kernel has such accounts itself (`struct ucounts`), but only for its own list of resources.
//! [`cmproto::ucma::account`] decides which accounts pay, and when one refuses.
//!
//! Lock order: the lock of the table has the class "table shard". While it is held, no other lock
//! is taken and nothing is allocated or freed.

use super::{
    counted::CountedArc,
    cred::Lineage,
    delay,
    error::ResultExt,
    seq_file::{self, SeqFile},
    sysctl,
};
use atomics::Occupancy;
use cmproto::ucma::account::{self, Account, Resource};
use containers::{impl_has_link, Link, Tree};
use core::{iter, ops::Deref, ptr};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    seq_print,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// The key of an account: the user, in the initial user namespace, and the address of the account
/// above, to which the account has a reference, or 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    user: u32,
    above: usize,
}

impl Key {
    /// The lowest key.
    pub(crate) const FIRST: Self = Key { user: 0, above: 0 };

    /// Returns the next key. Addresses never run out.
    pub(crate) fn after(self) -> Self {
        Key {
            above: self.above.saturating_add(1),
            ..self
        }
    }
}

/// The account of a user.
///
/// # Invariants
///
/// The account is in the table while `occupancy`, which counts [`OpenUser`]s and charges, keeps it.
/// Only a task with an [`OpenUser`] or a charge charges it.
pub(crate) struct User {
    link: Link<Key>,
    table: Arc<Users>,
    key: Key,
    /// The accounts of the owners of the user's namespace and of those above, from below.
    above: KVec<OpenUser>,
    occupancy: Occupancy<{ Resource::COUNT }>,
}

impl_has_link! {
    impl HasLink<Key> for User { self.link }
}

/// The table of the accounts of all users who have files or charges.
#[pin_data]
pub(crate) struct Users {
    #[pin]
    accounts: Mutex<Tree<CountedArc<User>, Key>>,
}

/// A counted reference to the account of a user.
#[derive(Clone)]
pub(crate) struct UserRef(CountedArc<User>);

/// A reference that keeps the account of a user open.
///
/// # Invariants
///
/// This is a holder in the account's `occupancy`.
pub(crate) struct OpenUser(UserRef);

/// A charge for one of a resource, which ends when this is dropped.
///
/// # Invariants
///
/// One of `resource` is counted in the account of `user` and in those above.
#[must_use = "dropping it ends the charge"]
pub(crate) struct Charge {
    user: UserRef,
    resource: Resource,
}

/// A charge for an identifier, which ends when this is dropped.
///
/// # Invariants
///
/// One of the [resource](IdCharge::resource) is counted in the account of `user` and in those
/// above.
#[must_use = "dropping it ends the charge"]
pub(crate) struct IdCharge {
    user: UserRef,
    /// Set if the identifier is a request that is not settled.
    is_request: Atomic<bool>,
}

impl Users {
    /// Creates an empty table. Fails with [`ENOMEM`].
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                accounts <- new_mutex!(Tree::new(), "rdma_cm_users"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether there is no account.
    pub(crate) fn is_empty(&self) -> bool {
        self.accounts.lock().is_empty()
    }

    /// Returns the first account whose key is not below `key`.
    pub(crate) fn from(&self, key: &Key) -> Option<UserRef> {
        let accounts = self.accounts.lock();
        let (_, account) = accounts.lower_bound(key)?;
        Some(UserRef((*account).clone()))
    }

    /// Opens the account of the first user of `lineage`. Fails with [`ENOMEM`].
    pub(crate) fn open(self: &Arc<Self>, lineage: &Lineage) -> Result<OpenUser> {
        let (user, owners) = lineage.users().split_first().ok_or(EINVAL)?;
        let mut above = KVec::new();
        for owner in owners.iter().rev() {
            let account = self.enter(*owner, above)?;
            above = KVec::with_capacity(account.above.len().saturating_add(1), GFP_KERNEL_ACCOUNT)?;
            for payer in account.0.payers() {
                // There is room for all.
                let _ = above.push_within_capacity(payer.hold());
            }
        }
        self.enter(*user, above)
    }

    /// Opens the account of `user` below the accounts `above`, which is created if there is none.
    fn enter(self: &Arc<Self>, user: u32, above: KVec<OpenUser>) -> Result<OpenUser> {
        let key = Key {
            user,
            above: above.first().map_or(0, |above| above.0.address()),
        };
        if let Some(found) = OpenUser::find(&self.accounts.lock(), &key) {
            return Ok(found);
        }
        let fresh = User {
            link: Link::new(),
            table: self.clone(),
            key,
            above,
            occupancy: Occupancy::new(),
        };
        let fresh = UserRef(CountedArc::new(fresh, GFP_KERNEL_ACCOUNT)?);
        delay::point();
        let mut accounts = self.accounts.lock();
        if let Some(found) = OpenUser::find(&accounts, &key) {
            // The lock is released before `fresh` is dropped.
            return Ok(found);
        }
        // A new account is in no table yet, so that it is in this one now.
        let _ = accounts.insert(key, fresh.0.clone());
        Ok(fresh.hold())
    }

    /// Removes the account of `user`, unless it is held or charged, also by a task that has found
    /// it meanwhile.
    #[cold]
    fn close(&self, user: &User) {
        delay::point();
        let mut accounts = self.accounts.lock();
        let removed = (!user.occupancy.is_kept()).then(|| accounts.remove(user));
        drop(accounts);
        drop(removed);
    }
}

impl OpenUser {
    /// Returns the account with the key `key`, if it is in the table.
    fn find(accounts: &Tree<CountedArc<User>, Key>, key: &Key) -> Option<Self> {
        let account = accounts.get(key)?;
        Some(UserRef((*account).clone()).hold())
    }
}

impl UserRef {
    /// Keeps the account open, which is in the table.
    fn hold(&self) -> OpenUser {
        self.occupancy.hold();
        // INVARIANT: Counted.
        OpenUser(self.clone())
    }

    /// Returns the address of the account, which no other has while there is a reference.
    pub(crate) fn address(&self) -> usize {
        ptr::from_ref(&**self).addr()
    }

    /// Returns the accounts that pay: this one and those above.
    fn payers(&self) -> impl Iterator<Item = &UserRef> {
        Iterator::chain(iter::once(self), self.above.iter().map(|above| &above.0))
    }

    /// Shows the use of each resource by the user, and the limits. The accounts above follow, if
    /// their users have a number in the namespace of the reader.
    pub(crate) fn show(&self, out: &SeqFile) {
        for payer in self.payers() {
            let Some(user) = seq_file::user_as_seen(out, payer.key.user) else {
                continue;
            };
            seq_print!(out, "user:\t{user}\n");
            for resource in Resource::ALL {
                let (name, used) = (resource.name(), payer.used(resource));
                let limit = sysctl::max_user(resource);
                seq_print!(out, "{name}:\t{used} of {limit}\n");
            }
        }
    }
}

impl Deref for UserRef {
    type Target = User;

    fn deref(&self) -> &User {
        &self.0
    }
}

impl Deref for OpenUser {
    type Target = User;

    fn deref(&self) -> &User {
        &self.0
    }
}

impl AsRef<UserRef> for OpenUser {
    fn as_ref(&self) -> &UserRef {
        &self.0
    }
}

impl Drop for OpenUser {
    fn drop(&mut self) {
        self.occupancy.release();
        self.close_if_unused();
    }
}

impl User {
    /// Closes the account after its last holder or its last charge has gone.
    #[inline]
    fn close_if_unused(&self) {
        if !self.occupancy.is_kept() {
            self.table.close(self);
        }
    }

    /// Returns the key of the account.
    pub(crate) fn key(&self) -> Key {
        self.key
    }

    /// Returns the user, in the initial user namespace.
    pub(crate) fn number(&self) -> u32 {
        self.key.user
    }

    /// Returns the number of a resource that the user has.
    pub(crate) fn used(&self, resource: Resource) -> u32 {
        self.occupancy.charged(resource as usize)
    }
}

impl Account for User {
    #[inline]
    fn add(&self, resource: Resource) -> u32 {
        self.occupancy.charge(resource as usize)
    }

    #[inline]
    fn remove(&self, resource: Resource) {
        self.occupancy.uncharge(resource as usize);
    }
}

impl Charge {
    /// Charges one of `resource` to the account of `user` and to those above.
    ///
    /// Fails with the [error](Resource::error) of the resource if one of them has as much as it may
    /// have.
    pub(crate) fn new(user: &UserRef, resource: Resource) -> Result<Self> {
        charge(user, resource)?;
        // INVARIANT: Counted.
        Ok(Charge {
            user: user.clone(),
            resource,
        })
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        release(&self.user, self.resource);
    }
}

impl IdCharge {
    /// Charges an identifier to the account of `user` and to those above. Fails like
    /// [`Charge::new`].
    pub(crate) fn new(user: &UserRef, is_request: bool) -> Result<Self> {
        charge(user, Self::resource(is_request))?;
        // INVARIANT: Counted.
        Ok(IdCharge {
            user: user.clone(),
            is_request: Atomic::new(is_request),
        })
    }

    /// Returns the resource that an identifier is charged for.
    fn resource(is_request: bool) -> Resource {
        match is_request {
            true => Resource::Requests,
            false => Resource::Ids,
        }
    }

    /// Notes that a request is settled. To be called by one task at a time.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.is_request.load(Relaxed) {
            account::convert(
                &*self.user,
                &self.user.above,
                Resource::Requests,
                Resource::Ids,
            );
            // INVARIANT: Counted as an identifier now.
            self.is_request.store(false, Relaxed);
        }
    }

    /// Returns the user whose account is charged.
    pub(crate) fn user(&self) -> &UserRef {
        &self.user
    }
}

impl Drop for IdCharge {
    fn drop(&mut self) {
        release(&self.user, Self::resource(self.is_request.load(Relaxed)));
    }
}

#[inline]
fn charge(user: &UserRef, resource: Resource) -> Result {
    let limit = sysctl::max_user(resource);
    account::charge(&**user, &user.above, resource, limit).kernel()
}

#[inline]
fn release(user: &UserRef, resource: Resource) {
    account::release(&**user, &user.above, resource);
    user.close_if_unused();
}
