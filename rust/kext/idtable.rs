// SPDX-License-Identifier: GPL-2.0

//! A table that hands out the lowest free number, built on an XArray.
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)
//!
//! A number has three states: free; reserved, so that nobody can look it up and nobody else gets
//! it; and published. So the number of an object can be told to user space before the object is
//! complete, and the object can be hidden before it is torn down while its number is not given to
//! another one.

use crate::bindings;
use core::{ffi::c_void, marker::PhantomData, ptr};
use kernel::{
    prelude::*,
    sync::{Arc, ArcBorrow},
    types::{ForeignOwnable, Opaque},
};

/// The flag that charges tree nodes to the memory cgroup of the allocating task
/// (`XA_FLAGS_ACCOUNT`).
const XA_FLAGS_ACCOUNT: bindings::gfp_t = 32;

/// The filter that matches all entries in a search (`XA_PRESENT`).
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
// SAFETY: The array's lock protects it; the objects are `Send` and `Sync`.
unsafe impl<T: Send + Sync + 'static> Sync for IdTable<T> {}

/// An object that was removed from a table, together with its still reserved number.
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

    /// Reserves the lowest free number; the first is 0.
    ///
    /// May sleep. Fails with [`ENOMEM`], or with [`EBUSY`] if all numbers are in use.
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
        // INVARIANT: `__xa_alloc()` has made the zero entry.
        Ok(Reserved { table: self, id })
    }

    /// Returns the object that is published as `id`.
    pub(crate) fn get(&self, id: u32) -> Option<Arc<T>> {
        self.with(id, |object| object.into())
    }

    /// Calls `f` with the object that is published as `id`, and returns the result. Returns `None`
    /// if there is no object.
    ///
    /// Nobody takes the object meanwhile. `f` runs under the spin lock of the array: it must not
    /// sleep, and must not use the table.
    pub(crate) fn with<R>(&self, id: u32, f: impl FnOnce(ArcBorrow<'_, T>) -> R) -> Option<R> {
        let locked = self.lock();
        let ptr = locked.load(id)?;
        // SAFETY: By the type invariant, the pointer is from `into_foreign`. It stays in the array
        // while the lock is held.
        Some(f(unsafe { Arc::<T>::borrow(ptr) }))
    }

    /// Removes the object that is published as `id` from the table.
    ///
    /// The number stays reserved until the returned [`Reserved`] is dropped. If several callers
    /// race, exactly one gets the object.
    pub(crate) fn take(&self, id: u32) -> Option<Taken<'_, T>> {
        let taken: core::result::Result<_, core::convert::Infallible> =
            self.take_if(id, |_| Ok(()));
        taken.unwrap_or(None)
    }

    /// Removes the object that is published as `id` from the table if `check` succeeds.
    ///
    /// The entry cannot change between the check and the removal. `check` runs under the spin lock
    /// of the array: it must not sleep, and must not use the table.
    pub(crate) fn take_if<E>(
        &self,
        id: u32,
        check: impl FnOnce(&T) -> core::result::Result<(), E>,
    ) -> core::result::Result<Option<Taken<'_, T>>, E> {
        let locked = self.lock();
        let Some(ptr) = locked.load(id) else {
            return Ok(None);
        };
        // SAFETY: As in `with`.
        check(unsafe { &*Arc::<T>::borrow(ptr) })?;
        // A zero entry takes the place of the pointer, so that no memory is needed.
        locked.store(id, ptr::null_mut());
        drop(locked);
        // SAFETY: The pointer is from `into_foreign`, and the array does not own it any more.
        let object = unsafe { Arc::<T>::from_foreign(ptr) };
        // INVARIANT: The entry was replaced by a zero entry above.
        Ok(Some((object, Reserved { table: self, id })))
    }

    /// Returns the published object with the lowest number that is at least `from`.
    ///
    /// To iterate over all objects, continue with the number after the returned one. Objects that
    /// are added or removed meanwhile may be missed.
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
            // The number is reserved, or its object was removed meanwhile.
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
        // A `Reserved` borrows the table, so that there are only published entries.
        let mut from = 0;
        while let Some((id, _)) = self.next(from) {
            self.take(id);
            from = id;
        }
        // SAFETY: The array is initialised and never used again.
        unsafe { bindings::xa_destroy(self.xa.get()) };
    }
}

/// Returns the index of a number in the array.
const fn index(id: u32) -> c_ulong {
    // CAST: Lossless, since a `c_ulong` has at least 32 bits.
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

    /// Returns the pointer stored for `id`, or `None` if the number is free or reserved.
    fn load(&self, id: u32) -> Option<*mut c_void> {
        // SAFETY: The array is initialised.
        let ptr = unsafe { bindings::xa_load(self.xa(), index(id)) };
        (!ptr.is_null()).then_some(ptr)
    }

    /// Replaces the entry of a number that is not free.
    ///
    /// The tree node of such an entry exists, so that this does not allocate and cannot fail.
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

/// A reserved number, which no other task gets or can look up; dropping it frees the number.
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
    /// Returns the number.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Publishes `object` as this number. Does not allocate and cannot fail.
    pub(crate) fn publish(self, object: Arc<T>) {
        let ptr = object.into_foreign();
        let locked = self.table.lock();
        locked.store(self.id, ptr);
        drop(locked);
        // The entry owns the number from here on.
        core::mem::forget(self);
    }
}

impl<T: Send + Sync + 'static> Drop for Reserved<'_, T> {
    fn drop(&mut self) {
        self.table.lock().erase(self.id);
    }
}
