// SPDX-License-Identifier: GPL-2.0

//! Counted objects of one type, from a slab cache of their own.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! [`Arc`] takes its memory from `kmalloc()`, whose sizes are far apart above a kilobyte. The
//! objects of a [`SlabCache`] have exactly the size that they need, and a row of their own in
//! `/proc/slabinfo`.
//!
//! [`Arc`]: kernel::sync::Arc

use crate::bindings;
use core::{
    marker::PhantomData,
    mem::{align_of, size_of, MaybeUninit},
    ops::Deref,
    ptr::{self, NonNull},
};
use kernel::{prelude::*, str::CStrExt as _, sync::Refcount};

/// An object and its counter.
#[repr(C)]
struct Counted<T> {
    // A free object has the allocator's pointer to the next one here.
    count: Refcount,
    data: T,
}

/// A slab cache for the objects of one type (`struct kmem_cache`).
///
/// It is to outlive its objects, and so must not be owned by them: the kernel warns, and keeps the
/// memory for ever, when a cache is destroyed that has objects.
///
/// # Invariants
///
/// `raw` is a cache of objects of the size and the alignment of a [`Counted<T>`], which nobody else
/// destroys.
pub(crate) struct SlabCache<T> {
    raw: NonNull<bindings::kmem_cache>,
    _objects: PhantomData<fn() -> T>,
}

// SAFETY: Any task may allocate from a cache, and destroy it.
unsafe impl<T> Send for SlabCache<T> {}
// SAFETY: As above.
unsafe impl<T> Sync for SlabCache<T> {}

impl<T: 'static> SlabCache<T> {
    /// Creates a cache that is shown by this name. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        let mut args = bindings::kmem_cache_args {
            align: u32::try_from(align_of::<Counted<T>>())?,
            use_freeptr_offset: true,
            freeptr_offset: 0,
            ctor: Some(construct_nothing),
            ..pin_init::zeroed()
        };
        let size = u32::try_from(size_of::<Counted<T>>())?;
        // SAFETY: The arguments are used during the call, and the name is copied.
        let raw = unsafe {
            bindings::__kmem_cache_create_args(name.as_char_ptr(), size, &raw mut args, 0)
        };
        // INVARIANT: It was made with this size and alignment, and is ours.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _objects: PhantomData,
        })
    }

    /// Allocates an object, charged to the memory cgroup of the current task, and initialises it in
    /// place. May sleep. Fails with [`ENOMEM`], or as `init` does.
    pub(crate) fn pin_init<E>(&self, init: impl PinInit<T, E>) -> Result<SlabArc<T>>
    where
        Error: From<E>,
    {
        // SAFETY: The cache is there.
        let memory = unsafe {
            bindings::rust_rdma_kmem_cache_alloc(self.raw.as_ptr(), bindings::GFP_KERNEL_ACCOUNT)
        };
        let object = NonNull::new(memory.cast::<Counted<T>>()).ok_or(ENOMEM)?;
        // SAFETY: By the type invariant the memory has the size and the alignment of the object. It
        // is ours until it is freed, which is after the last use of this reference, and not moved.
        let data: &'static mut MaybeUninit<T> = unsafe {
            (&raw mut (*object.as_ptr()).count).write(Refcount::new(1));
            &mut *(&raw mut (*object.as_ptr()).data).cast()
        };
        data.write_pin_init(init).inspect_err(|_| {
            // SAFETY: It is ours, and there is nothing in it that would have to be dropped.
            unsafe { bindings::kfree(memory) };
        })?;
        // INVARIANT: The object is initialised, and its count is that of this reference.
        Ok(SlabArc(object))
    }
}

impl<T> Drop for SlabCache<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the cache is ours. What is left of its objects stays valid.
        unsafe { bindings::kmem_cache_destroy(self.raw.as_ptr()) };
    }
}

/// Constructs nothing: an object is initialised, in full, when it is allocated.
///
/// The kernel clears each object of a cache without such a function before that (`init_on_alloc`).
///
/// # Safety
///
/// None: it does nothing.
unsafe extern "C" fn construct_nothing(_object: *mut c_void) {}

/// A counted reference to an object of a [`SlabCache`]; otherwise as the kernel crate's [`Arc`].
///
/// # Invariants
///
/// The object is initialised and pinned, and one of its count is this reference's. It is memory of
/// a slab cache, that `kfree()` takes back.
///
/// [`Arc`]: kernel::sync::Arc
pub(crate) struct SlabArc<T>(NonNull<Counted<T>>);

// SAFETY: Whoever has it may look at the object, and may be the one who drops it.
unsafe impl<T: Send + Sync> Send for SlabArc<T> {}
// SAFETY: As above, since a shared reference can be cloned.
unsafe impl<T: Send + Sync> Sync for SlabArc<T> {}

impl<T> SlabArc<T> {
    /// Whether both are references to one object.
    pub(crate) fn ptr_eq(this: &Self, other: &Self) -> bool {
        ptr::eq(this.0.as_ptr(), other.0.as_ptr())
    }

    /// Drops the object and gives its memory back.
    ///
    /// # Safety
    ///
    /// The count is 0, and nobody calls this twice.
    #[inline(never)]
    unsafe fn free(object: NonNull<Counted<T>>) {
        // SAFETY: Nobody else has a reference. The object is not used any more.
        unsafe {
            ptr::drop_in_place(&raw mut (*object.as_ptr()).data);
            bindings::kfree(object.as_ptr().cast());
        }
    }
}

impl<T> Deref for SlabArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the type invariant the object is there.
        unsafe { &self.0.as_ref().data }
    }
}

impl<T> Clone for SlabArc<T> {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant the object is there.
        unsafe { self.0.as_ref() }.count.inc();
        // INVARIANT: It was just counted.
        Self(self.0)
    }
}

impl<T> Drop for SlabArc<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the object is there, until its count is 0.
        unsafe {
            if self.0.as_ref().count.dec_and_test() {
                Self::free(self.0);
            }
        }
    }
}
