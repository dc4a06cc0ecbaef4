// SPDX-License-Identifier: GPL-2.0

//! The holders and charges that keep an account open.

use crate::word::{Word32, Word64};

/// The number of holders of an account, and of what is charged to it, of `N` kinds.
///
/// When the last holder and the last charge go at the same time, at least one of the two finds that
/// nothing [keeps](Self::is_kept) the account.
pub struct Occupancy<const N: usize> {
    holders: Word64,
    charges: [Word32; N],
}

impl<const N: usize> Occupancy<N> {
    /// Creates the state of an account without holders and charges.
    pub fn new() -> Self {
        Self {
            holders: Word64::new(0),
            charges: core::array::from_fn(|_| Word32::new(0)),
        }
    }

    /// Counts a holder.
    #[inline]
    pub fn hold(&self) {
        self.holders.add(1);
    }

    /// Uncounts a holder. The caller must then see whether anything [keeps](Self::is_kept) the
    /// account.
    #[inline]
    pub fn release(&self) {
        self.holders.sub(1);
    }

    /// Counts a charge of a kind below `N`, and returns how many there were. The caller must have a
    /// holder or a charge.
    #[inline]
    pub fn charge(&self, kind: usize) -> u32 {
        self.charges.get(kind).map_or(0, |count| count.add(1))
    }

    /// Uncounts a charge of a kind. The caller must then see whether anything
    /// [keeps](Self::is_kept) the account.
    #[inline]
    pub fn uncharge(&self, kind: usize) {
        if let Some(count) = self.charges.get(kind) {
            count.sub(1);
        }
    }

    /// Returns the number of charges of a kind.
    #[inline]
    pub fn charged(&self, kind: usize) -> u32 {
        self.charges.get(kind).map_or(0, Word32::load_relaxed)
    }

    /// Returns whether the account has holders or charges.
    ///
    /// A charge that is turned into one of another kind meanwhile, which is counted before the old
    /// one is uncounted, can be missed once. So the account is closed by a task that has called
    /// this twice, the second time where nobody can find it any more.
    #[inline]
    pub fn is_kept(&self) -> bool {
        // The holders come first: one that is seen to have gone is seen to have charged before.
        self.holders.load_acquire() != 0
            || self.charges.iter().any(|count| count.load_acquire() != 0)
    }
}

impl<const N: usize> Default for Occupancy<N> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn holders_and_charges_keep_an_account() {
        let account = Occupancy::<2>::new();
        assert!(!account.is_kept());
        account.hold();
        assert!(account.is_kept());
        assert_eq!((account.charge(1), account.charge(1)), (0, 1));
        account.release();
        assert!(account.is_kept());
        assert_eq!((account.charged(0), account.charged(1)), (0, 2));
        account.uncharge(1);
        account.uncharge(1);
        assert!(!account.is_kept());
        account.uncharge(2);
        assert_eq!(account.charge(2), 0, "there is no such kind");
        assert!(!account.is_kept());
    }
}

#[cfg(all(test, loom))]
mod tests {
    use super::*;
    use crate::schedule::{every_schedule, spawn};
    use loom::sync::{Arc, Mutex};

    struct Account {
        occupancy: Occupancy<2>,
        /// Set while the account is in the table.
        is_listed: Mutex<bool>,
    }

    impl Account {
        fn new() -> Arc<Self> {
            let occupancy = Occupancy::new();
            occupancy.hold();
            Arc::new(Account {
                occupancy,
                is_listed: Mutex::new(true),
            })
        }

        fn close_if_unused(&self) {
            if !self.occupancy.is_kept() {
                let mut is_listed = self.is_listed.lock().unwrap();
                if !self.occupancy.is_kept() {
                    *is_listed = false;
                }
            }
        }

        fn release(&self) {
            self.occupancy.release();
            self.close_if_unused();
        }

        fn uncharge(&self) {
            self.occupancy.uncharge(0);
            self.close_if_unused();
        }

        /// Holds the account if it is in the table.
        fn find(&self) -> bool {
            let is_listed = self.is_listed.lock().unwrap();
            if *is_listed {
                self.occupancy.hold();
            }
            *is_listed
        }
    }

    #[test]
    fn the_last_of_two_closes() {
        every_schedule(|| {
            let account = Account::new();
            account.occupancy.charge(0);
            let charge = spawn(&account, Account::uncharge);
            account.release();
            charge.join().unwrap();
            assert!(!*account.is_listed.lock().unwrap());
        });
    }

    #[test]
    fn who_finds_an_account_has_one_that_is_listed() {
        every_schedule(|| {
            let account = Account::new();
            let finder = spawn(&account, |account| {
                let found = account.find();
                if found {
                    assert!(*account.is_listed.lock().unwrap());
                    account.release();
                }
            });
            account.release();
            finder.join().unwrap();
            assert!(!*account.is_listed.lock().unwrap());
        });
    }

    #[test]
    fn a_charge_of_another_kind_keeps_it() {
        every_schedule(|| {
            let account = Account::new();
            account.occupancy.charge(1);
            let charge = spawn(&account, |account| {
                account.occupancy.charge(0);
                account.occupancy.uncharge(1);
                assert!(*account.is_listed.lock().unwrap(), "a charge keeps it");
                account.uncharge();
            });
            account.release();
            charge.join().unwrap();
            assert!(!*account.is_listed.lock().unwrap());
        });
    }

    #[test]
    fn a_charge_follows_its_holder() {
        every_schedule(|| {
            let account = Account::new();
            let holder = spawn(&account, |account| {
                account.occupancy.charge(0);
                account.release();
                assert!(*account.is_listed.lock().unwrap(), "a charge keeps it");
                account.uncharge();
            });
            // Somebody else that holds it, or comes too late.
            if account.find() {
                account.release();
            }
            holder.join().unwrap();
            assert!(!*account.is_listed.lock().unwrap());
        });
    }
}
