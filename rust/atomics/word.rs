// SPDX-License-Identifier: GPL-2.0

//! The words of memory that the states consist of.
//!
//! A method that is said to be fully ordered is so for all other accesses of its task, before and
//! after it: a store before it is visible to all before a load after it reads. It is so only if it
//! has changed the word.

#[cfg(CONFIG_RUST)]
mod backend {
    use kernel::sync::atomic::{
        ordering::{Acquire, Full, Relaxed, Release},
        Atomic,
    };

    macro_rules! word {
        ($(#[$doc:meta])* $name:ident, $value:ty $(, $pointee:ident)?) => {
            $(#[$doc])*
            pub(crate) struct $name $(<$pointee>)? (Atomic<$value>);

            impl $(<$pointee>)? $name $(<$pointee>)? {
                /// Creates a word with a value.
                #[inline]
                pub(crate) const fn new(value: $value) -> Self {
                    Self(Atomic::new(value))
                }

                /// Returns the value, in no order with other accesses.
                #[inline]
                #[allow(dead_code)]
                pub(crate) fn load_relaxed(&self) -> $value {
                    self.0.load(Relaxed)
                }

                /// Returns the value, and sees what was done before it was stored.
                #[inline]
                #[allow(dead_code)]
                pub(crate) fn load_acquire(&self) -> $value {
                    self.0.load(Acquire)
                }

                /// Stores a value, in no order with other accesses.
                #[inline]
                #[allow(dead_code)]
                pub(crate) fn store_relaxed(&self, value: $value) {
                    self.0.store(value, Relaxed);
                }

                /// Stores a value after everything that was done before.
                #[inline]
                #[allow(dead_code)]
                pub(crate) fn store_release(&self, value: $value) {
                    self.0.store(value, Release);
                }

                /// Changes the value from `old` to `new`, fully ordered. Returns the value if it
                /// is another one, which stays.
                #[inline]
                #[allow(dead_code)]
                pub(crate) fn change(&self, old: $value, new: $value) -> Result<(), $value> {
                    self.0.cmpxchg(old, new, Full).map(|_| ())
                }
            }
        };
    }

    macro_rules! counter {
        ($name:ident, $value:ty) => {
            impl $name {
                /// Adds to the value, fully ordered, and returns what it was before.
                #[inline]
                pub(crate) fn add(&self, n: $value) -> $value {
                    self.0.fetch_add(n, Full)
                }

                /// Subtracts from the value, fully ordered, and returns what it was before.
                #[inline]
                pub(crate) fn sub(&self, n: $value) -> $value {
                    self.0.fetch_sub(n, Full)
                }
            }
        };
    }

    word!(
        /// A word of 64 bits.
        Word64, u64
    );
    word!(
        /// A word of 32 bits.
        Word32, u32
    );
    word!(
        /// A word with a pointer.
        WordPtr, *mut T, T
    );
    counter!(Word64, u64);
    counter!(Word32, u32);

    impl Word32 {
        /// Replaces the value, fully ordered, and returns what it was before.
        #[inline]
        pub(crate) fn replace(&self, value: u32) -> u32 {
            self.0.xchg(value, Full)
        }
    }

    /// Orders all accesses of this task before the call before all that come after it.
    #[inline]
    pub(crate) fn full_barrier() {
        // This is what smp_mb() is; the kernel crate's takes other arguments in each version.
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    }
}

#[cfg(not(CONFIG_RUST))]
mod backend {
    #[cfg(not(loom))]
    use core::sync::atomic::{fence, AtomicPtr, AtomicU32, AtomicU64};
    #[cfg(loom)]
    use loom::sync::atomic::{fence, AtomicPtr, AtomicU32, AtomicU64};

    use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

    macro_rules! word {
        ($name:ident, $atomic:ident, $value:ty $(, $pointee:ident)?) => {
            pub(crate) struct $name $(<$pointee>)? ($atomic $(<$pointee>)?);

            #[allow(dead_code)]
            impl $(<$pointee>)? $name $(<$pointee>)? {
                #[cfg(not(loom))]
                pub(crate) const fn new(value: $value) -> Self {
                    Self($atomic::new(value))
                }

                // A model makes its words anew for each schedule.
                #[cfg(loom)]
                pub(crate) fn new(value: $value) -> Self {
                    Self($atomic::new(value))
                }

                pub(crate) fn load_relaxed(&self) -> $value {
                    self.0.load(Relaxed)
                }

                pub(crate) fn load_acquire(&self) -> $value {
                    self.0.load(Acquire)
                }

                pub(crate) fn store_relaxed(&self, value: $value) {
                    self.0.store(value, Relaxed);
                }

                pub(crate) fn store_release(&self, value: $value) {
                    self.0.store(value, Release);
                }

                pub(crate) fn change(&self, old: $value, new: $value) -> Result<(), $value> {
                    full(|| self.0.compare_exchange(old, new, AcqRel, Relaxed).map(|_| ()))
                }
            }
        };
    }

    macro_rules! counter {
        ($name:ident, $value:ty) => {
            impl $name {
                pub(crate) fn add(&self, n: $value) -> $value {
                    full(|| self.0.fetch_add(n, AcqRel))
                }

                pub(crate) fn sub(&self, n: $value) -> $value {
                    full(|| self.0.fetch_sub(n, AcqRel))
                }
            }
        };
    }

    word!(Word64, AtomicU64, u64);
    word!(Word32, AtomicU32, u32);
    word!(WordPtr, AtomicPtr, *mut T, T);
    counter!(Word64, u64);
    counter!(Word32, u32);

    impl Word32 {
        pub(crate) fn replace(&self, value: u32) -> u32 {
            full(|| self.0.swap(value, AcqRel))
        }
    }

    /// Does what the kernel's memory model calls fully ordered.
    fn full<R>(access: impl FnOnce() -> R) -> R {
        full_barrier();
        let result = access();
        full_barrier();
        result
    }

    pub(crate) fn full_barrier() {
        fence(SeqCst);
    }
}

pub(crate) use backend::{full_barrier, Word32, Word64, WordPtr};
