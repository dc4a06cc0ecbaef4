// SPDX-License-Identifier: GPL-2.0

//! A table that hands out the lowest free number, built on an XArray.
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)
//!
//! A number has three states: free, reserved (nobody can look it up, nobody else gets it) and
//! published. An object that user space refers to by number can so be announced before it is
//! complete, and taken out of sight before it is torn down, without its number being given away
//! in between.

use crate::bindings;
use core::{ffi::c_void, marker::PhantomData, ptr};
use kernel::{
    prelude::*,
    sync::Arc,
    types::{ForeignOwnable, Opaque},
};

/// Charge the nodes of the tree to the memory cgroup of whoever causes them (`XA_FLAGS_ACCOUNT`).
const XA_FLAGS_ACCOUNT: bindings::gfp_t = 32;

/// The mark of no mark (`XA_PRESENT`), for searching all entries.
const XA_PRESENT: bindings::xa_mark_t = 8;

/// A map from small numbers to objects.
///
/// # Invariants
///
/// The array holds zero entries for reserved numbers, each of which belongs to one [`Reserved`],
/// and pointers from [`Arc::into_foreign`] for published ones, each of which owns a reference.
#[pin_data(PinnedDrop)]
pub(crate) struct IdTable<T: Send + Sync + 'static> {
    #[pin]
    xa: Opaque<bindings::xarray>,
    _objects: PhantomData<Arc<T>>,
}

// SAFETY: The array's lock protects it; the objects are `Send` and `Sync`.
unsafe impl<T: Send + Sync + 'static> Send for IdTable<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync + 'static> Sync for IdTable<T> {}

/// An object that was taken out of a table, and its number.
pub(crate) type Taken<'a, T> = (Arc<T>, Reserved<'a, T>);

impl<T: Send + Sync + 'static> IdTable<T> {
    /// Creates an initialiser for an empty table.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            xa <- Opaque::ffi_init(|slot| {
                // SAFETY: `slot` is valid for writes.
                unsafe {
                    bindings::xa_init_flags(slot, bindings::XA_FLAGS_ALLOC | XA_FLAGS_ACCOUNT)
                }
            }),
            _objects: PhantomData,
        })
    }

    /// Reserves the lowest free number, from 0 on.
    ///
    /// May sleep. Fails with [`ENOMEM`], or with [`EBUSY`] if all numbers are taken.
    pub(crate) fn reserve(&self) -> Result<Reserved<'_, T>> {
        let mut id = 0;
        let limit = bindings::xa_limit {
            max: u32::MAX,
            min: 0,
        };
        let locked = self.lock();
        // SAFETY: The array is initialised and locked. A null pointer stores a zero entry.
        let ret = unsafe {
            bindings::__xa_alloc(
                locked.xa(),
                &mut id,
                ptr::null_mut(),
                limit,
                bindings::GFP_KERNEL,
            )
        };
        drop(locked);
        kernel::error::to_result(ret)?;
        // INVARIANT: The zero entry was made just now.
        Ok(Reserved { table: self, id })
    }

    /// Returns the object that is published under `id`.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<T>> {
        let locked = self.lock();
        let ptr = locked.load(id)?;
        // SAFETY: By the type invariant, the pointer is from `into_foreign`. It stays in the array
        // while the lock is held.
        let object = unsafe { Arc::<T>::borrow(ptr) };
        Some(object.into())
    }

    /// Takes the object that is published under `id` out of sight.
    ///
    /// The number stays reserved until the returned [`Reserved`] is dropped. Of several callers,
    /// one gets the object.
    pub(crate) fn take(&self, id: u32) -> Option<Taken<'_, T>> {
        let taken: core::result::Result<_, core::convert::Infallible> =
            self.take_if(id, |_| Ok(()));
        taken.unwrap_or(None)
    }

    /// Takes the object that is published under `id` out of sight if `check` says so.
    ///
    /// No other call changes the entry in between. `check` runs under the array's spin lock: it
    /// must not sleep nor call back.
    pub(crate) fn take_if<E>(
        &self,
        id: u32,
        check: impl FnOnce(&T) -> core::result::Result<(), E>,
    ) -> core::result::Result<Option<Taken<'_, T>>, E> {
        let locked = self.lock();
        let Some(ptr) = locked.load(id) else {
            return Ok(None);
        };
        // SAFETY: As in `get`.
        check(unsafe { &*Arc::<T>::borrow(ptr) })?;
        // Turns the entry into a zero entry, which needs no memory.
        locked.store(id, ptr::null_mut());
        drop(locked);
        // SAFETY: The pointer is from `into_foreign`, and the array does not own it any more.
        let object = unsafe { Arc::<T>::from_foreign(ptr) };
        // INVARIANT: The zero entry was made just now.
        Ok(Some((object, Reserved { table: self, id })))
    }

    /// Returns the published object with the lowest number that is at least `from`.
    ///
    /// To visit all, continue behind the number that was returned; objects that come and go in
    /// the meantime may be missed.
    pub(crate) fn next(&self, from: u32) -> Option<(u32, Arc<T>)> {
        let mut at = index(from);
        loop {
            // SAFETY: The array is initialised; this locks by itself.
            let found =
                unsafe { bindings::xa_find(self.xa.get(), &mut at, index(u32::MAX), XA_PRESENT) };
            if found.is_null() {
                return None;
            }
            let id = u32::try_from(at).ok()?;
            if let Some(object) = self.get(id) {
                return Some((id, object));
            }
            // Reserved, or gone meanwhile.
            at = at.checked_add(1)?;
        }
    }

    fn lock(&self) -> Locked<'_, T> {
        // SAFETY: The array is initialised.
        unsafe { bindings::xa_lock(self.xa.get()) };
        Locked { table: self }
    }
}

#[pinned_drop]
impl<T: Send + Sync + 'static> PinnedDrop for IdTable<T> {
    fn drop(self: Pin<&mut Self>) {
        // `Reserved` borrows the table, so there are only published entries.
        let mut from = 0;
        while let Some((id, _)) = self.next(from) {
            self.take(id);
            from = id;
        }
        // SAFETY: The array is initialised and never used again.
        unsafe { bindings::xa_destroy(self.xa.get()) };
    }
}

/// Returns the place of a number in the array.
const fn index(id: u32) -> c_ulong {
    // Lossless: a `c_ulong` has at least 32 bits.
    id as c_ulong
}

/// The array while its lock is held.
struct Locked<'a, T: Send + Sync + 'static> {
    table: &'a IdTable<T>,
}

impl<T: Send + Sync + 'static> Locked<'_, T> {
    fn xa(&self) -> *mut bindings::xarray {
        self.table.xa.get()
    }

    /// Returns the pointer under `id`; `None` if the number is free or reserved.
    fn load(&self, id: u32) -> Option<*mut c_void> {
        // SAFETY: The array is initialised.
        let ptr = unsafe { bindings::xa_load(self.xa(), index(id)) };
        (!ptr.is_null()).then_some(ptr)
    }

    /// Replaces the entry of a number that is not free.
    ///
    /// Such an entry has its node, so that nothing is allocated and nothing fails.
    fn store(&self, id: u32, ptr: *mut c_void) {
        // SAFETY: The array is initialised and locked.
        unsafe { bindings::__xa_store(self.xa(), index(id), ptr, 0) };
    }

    fn erase(&self, id: u32) {
        // SAFETY: The array is initialised and locked.
        unsafe { bindings::__xa_erase(self.xa(), index(id)) };
    }
}

impl<T: Send + Sync + 'static> Drop for Locked<'_, T> {
    fn drop(&mut self) {
        // SAFETY: Existence of `self` proves that the lock is held.
        unsafe { bindings::xa_unlock(self.xa()) };
    }
}

/// A number that nobody else gets and nobody can look up; dropping it frees the number.
///
/// # Invariants
///
/// The table has a zero entry for `id`, and there is no other [`Reserved`] for it.
#[must_use = "dropping it frees the number at once"]
pub(crate) struct Reserved<'a, T: Send + Sync + 'static> {
    table: &'a IdTable<T>,
    id: u32,
}

impl<T: Send + Sync + 'static> Reserved<'_, T> {
    /// The number.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Lets others find `object` under the number. Does not allocate and cannot fail.
    pub(crate) fn publish(self, object: Arc<T>) {
        let ptr = object.into_foreign();
        let locked = self.table.lock();
        locked.store(self.id, ptr);
        drop(locked);
        // The number now belongs to the entry.
        core::mem::forget(self);
    }
}

impl<T: Send + Sync + 'static> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.table.lock().erase(self.id);
    }
}
