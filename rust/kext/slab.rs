// SPDX-License-Identifier: GPL-2.0

//! Objects of one type from a dedicated slab cache, reference-counted or with one owner.
//!
//! C header: [`include/linux/slab.h`](srctree/include/linux/slab.h)
//!
//! [`Arc`] takes its memory from `kmalloc()`, whose size classes are far apart above a kilobyte.
//! The objects of a [`SlabCache`] or [`SlabBoxCache`] take exactly the size that they need, and
//! have a line of their own in `/proc/slabinfo`.
//!
//! [`Arc`]: kernel::sync::Arc

use crate::bindings;
use core::{
    marker::PhantomData,
    mem::{align_of, offset_of, size_of, ManuallyDrop, MaybeUninit},
    ops::{Deref, DerefMut},
    ptr::{self, NonNull},
};
use kernel::{
    alloc::{flags::GFP_KERNEL_ACCOUNT, AllocError},
    prelude::*,
    sync::Refcount,
};
use zerocopy::FromZeros;

/// An object and its counter.
#[repr(C)]
struct Counted<T> {
    // The allocator keeps its free pointer here while the object is free.
    count: Refcount,
    data: T,
}

/// A slab cache for objects of one size (`struct kmem_cache`).
///
/// The cache must outlive its objects, and so must not be owned by them: the kernel warns, and
/// leaks the memory, when a cache is destroyed that still has objects.
///
/// # Invariants
///
/// This is a cache of objects of the size and the alignment of an `O`, which is destroyed only by
/// the owner of this.
struct Cache<O> {
    raw: NonNull<bindings::kmem_cache>,
    _objects: PhantomData<fn() -> O>,
}

// SAFETY: Any task may allocate from a cache, and destroy it.
unsafe impl<O> Send for Cache<O> {}
// SAFETY: Any task may allocate from a cache; the allocator does its own locking.
unsafe impl<O> Sync for Cache<O> {}

impl<O> Cache<O> {
    /// The free pointer, which the allocator keeps in a free object, is aligned, too.
    const ALIGN: usize = {
        assert!(size_of::<O>() >= size_of::<usize>());
        if align_of::<O>() > align_of::<usize>() {
            align_of::<O>()
        } else {
            align_of::<usize>()
        }
    };

    fn new(name: &CStr) -> Result<Self> {
        let mut args = bindings::kmem_cache_args {
            align: u32::try_from(Self::ALIGN)?,
            use_freeptr_offset: true,
            freeptr_offset: 0,
            ctor: Some(construct_nothing),
            ..pin_init::zeroed()
        };
        let size = u32::try_from(size_of::<O>())?;
        // SAFETY: The arguments are used during the call, and the name is copied.
        let raw = unsafe {
            bindings::__kmem_cache_create_args(name.as_char_ptr(), size, &raw mut args, 0)
        };
        // INVARIANT: The cache was made with this size and alignment, and is owned by the new
        // value.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            _objects: PhantomData,
        })
    }

    fn allocate(&self, flags: bindings::gfp_t) -> Result<NonNull<O>, AllocError> {
        // SAFETY: The cache is there.
        let memory = unsafe { bindings::rust_rdma_kmem_cache_alloc(self.raw.as_ptr(), flags) };
        NonNull::new(memory.cast()).ok_or(AllocError)
    }
}

impl<O> Drop for Cache<O> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the cache is ours. Objects that are left stay valid.
        unsafe { bindings::kmem_cache_destroy(self.raw.as_ptr()) };
    }
}

/// A slab cache for the reference-counted objects of one type. It must outlive its objects, and so
/// must not be owned by them.
pub(crate) struct SlabCache<T>(Cache<Counted<T>>);

impl<T: 'static> SlabCache<T> {
    /// Creates a cache called `name` in `/proc/slabinfo`. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        Cache::new(name).map(Self)
    }

    /// Allocates an object and initialises it in place.
    ///
    /// The memory is charged to the memory cgroup of the current task. May sleep. Fails with
    /// [`ENOMEM`], or with the error of `init`.
    pub(crate) fn pin_init<E>(&self, init: impl PinInit<T, E>) -> Result<SlabArc<T>>
    where
        Error: From<E>,
    {
        let object = self.0.allocate(bindings::GFP_KERNEL_ACCOUNT)?;
        // SAFETY: By the type invariant the memory has the size and the alignment of the object. It
        // is ours until it is freed, which is after the last use of this reference, and not moved.
        let data: &'static mut MaybeUninit<T> = unsafe {
            (&raw mut (*object.as_ptr()).count).write(Refcount::new(1));
            &mut *(&raw mut (*object.as_ptr()).data).cast()
        };
        data.write_pin_init(init).inspect_err(|_| {
            // SAFETY: The memory is ours, and contains nothing that would have to be dropped.
            unsafe { bindings::kfree(object.as_ptr().cast()) };
        })?;
        // INVARIANT: The object is initialised, and its count of 1 is that of this reference.
        Ok(SlabArc(object))
    }
}

/// A slab cache for the objects of one type that have one owner each. It must outlive its objects,
/// and so must not be owned by them.
pub(crate) struct SlabBoxCache<T>(Cache<T>);

impl<T: 'static> SlabBoxCache<T> {
    /// Creates a cache called `name` in `/proc/slabinfo`. May sleep. Fails with [`ENOMEM`].
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        Cache::new(name).map(Self)
    }

    /// Allocates memory for an object, which is charged to the memory cgroup of the current task.
    pub(crate) fn reserve(&self, wait: Wait) -> Result<SlabMemory<T>, AllocError> {
        let flags = match wait {
            Wait::May => bindings::GFP_KERNEL_ACCOUNT,
            Wait::MustNot => bindings::GFP_NOWAIT,
        };
        // INVARIANT: The memory was just allocated, and is owned by the new value.
        self.0.allocate(flags).map(SlabMemory)
    }
}

/// Says whether an allocation may wait until there is memory.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    /// The caller may sleep.
    May,
    /// The caller must not sleep. A failure causes no warning.
    MustNot,
}

/// Memory for an object of a [`SlabBoxCache`], with anything in it.
///
/// # Invariants
///
/// The memory is from a slab cache for such objects, or from `kmalloc()`, and is large enough for
/// one; it belongs to this, and `kfree()` frees it.
pub(crate) struct SlabMemory<T>(NonNull<T>);

// SAFETY: The memory contains nothing.
unsafe impl<T> Send for SlabMemory<T> {}
// SAFETY: The memory contains nothing.
unsafe impl<T> Sync for SlabMemory<T> {}

impl<T> SlabMemory<T> {
    fn data(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// Makes the memory an object with this value.
    #[inline(always)]
    pub(crate) fn with(self, value: T) -> SlabBox<T> {
        // SAFETY: By the type invariant the memory belongs to this.
        unsafe { self.data().write(value) };
        // INVARIANT: The value was just written.
        SlabBox(self)
    }
}

impl<T> SlabMemory<T> {
    /// Allocates memory that is not from a slab cache of such objects, for objects that are few. It
    /// is charged to the memory cgroup of the current task. May sleep.
    pub(crate) fn without_cache() -> Result<Self, AllocError> {
        let memory = KBox::<T>::new_uninit(GFP_KERNEL_ACCOUNT)?;
        // SAFETY: A `KBox` is not null.
        let memory = unsafe { NonNull::new_unchecked(KBox::into_raw(memory)) };
        // INVARIANT: The memory was just allocated by `kmalloc()`, and is owned by the new value.
        Ok(Self(memory.cast()))
    }
}

impl<T: FromZeros + Copy> SlabMemory<T> {
    /// Makes the memory an object that is all zeros.
    pub(crate) fn zeroed(self) -> SlabBox<T> {
        // SAFETY: By the type invariant the memory belongs to this.
        unsafe { self.data().write_bytes(0, 1) };
        // INVARIANT: All zeros are a value of a `FromZeros`.
        SlabBox(self)
    }
}

impl<T> Drop for SlabMemory<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the memory belongs to this, and is not used any more.
        unsafe { bindings::kfree(self.0.as_ptr().cast()) };
    }
}

/// An object of a [`SlabBoxCache`] that has one owner, as in a [`KBox`].
///
/// # Invariants
///
/// The object in the memory is initialised.
pub(crate) struct SlabBox<T>(SlabMemory<T>);

// SAFETY: The owner may use the object as its own.
unsafe impl<T: Send> Send for SlabBox<T> {}
// SAFETY: A shared reference gives shared access to the object.
unsafe impl<T: Sync> Sync for SlabBox<T> {}

impl<T: Copy> SlabBox<T> {
    /// Returns the memory of the object, which ends.
    pub(crate) fn into_memory(self) -> SlabMemory<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: The memory is moved out of a value that is not dropped, and so has one owner. A
        // `Copy` type has nothing to drop.
        unsafe { ptr::read(&this.0) }
    }
}

impl<T> Drop for SlabBox<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the object is initialised; it is dropped here only, and its
        // memory after it.
        unsafe { ptr::drop_in_place(self.0.data()) };
    }
}

impl<T> Deref for SlabBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the type invariant the object is initialised.
        unsafe { &*self.0.data() }
    }
}

impl<T> DerefMut for SlabBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariant the object is initialised, and this owns it.
        unsafe { &mut *self.0.data() }
    }
}

/// A constructor that does nothing, as each object is initialised in full when it is allocated.
///
/// Without a constructor the kernel would clear each object at its allocation (`init_on_alloc`).
///
/// # Safety
///
/// There are no requirements, as the function does nothing.
unsafe extern "C" fn construct_nothing(_object: *mut c_void) {}

/// A counted reference to an object of a [`SlabCache`], like the kernel crate's [`Arc`].
///
/// # Invariants
///
/// The object is initialised and pinned, and one unit of its count belongs to this reference. Its
/// memory is from a slab cache, so that `kfree()` frees it.
///
/// [`Arc`]: kernel::sync::Arc
pub(crate) struct SlabArc<T>(NonNull<Counted<T>>);

// SAFETY: The holder may use the object through a shared reference, and may be the one who drops
// it.
unsafe impl<T: Send + Sync> Send for SlabArc<T> {}
// SAFETY: As for `Send`, since a shared reference can be cloned.
unsafe impl<T: Send + Sync> Sync for SlabArc<T> {}

impl<T> SlabArc<T> {
    /// Drops the object and frees its memory.
    ///
    /// # Safety
    ///
    /// The count must be 0, and this must be called once for the object.
    #[inline(never)]
    unsafe fn free(object: NonNull<Counted<T>>) {
        // SAFETY: There are no other references, and the object is not used any more.
        unsafe {
            ptr::drop_in_place(&raw mut (*object.as_ptr()).data);
            bindings::kfree(object.as_ptr().cast());
        }
    }
}

impl<T> Deref for SlabArc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the type invariant the object is initialised and not freed.
        unsafe { &self.0.as_ref().data }
    }
}

impl<T> Clone for SlabArc<T> {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant the object is initialised and not freed.
        unsafe { self.0.as_ref() }.count.inc();
        // INVARIANT: The new reference was just counted.
        Self(self.0)
    }
}

// SAFETY: By the type invariant the object is pinned, nobody lends it mutably, and it is dropped
// only when no reference is left. The pointer was made of that to the whole allocation.
unsafe impl<T> containers::Counted for SlabArc<T> {
    fn into_raw(this: Self) -> NonNull<T> {
        let this = ManuallyDrop::new(this);
        // SAFETY: By the type invariant the object is valid, and so is the offset.
        unsafe { this.0.byte_add(offset_of!(Counted<T>, data)) }.cast()
    }

    unsafe fn from_raw(data: NonNull<T>) -> Self {
        // INVARIANT: By the safety requirements this is the reference that the pointer was.
        // SAFETY: Such a pointer is to the `data` of a valid object.
        Self(unsafe { data.byte_sub(offset_of!(Counted<T>, data)) }.cast())
    }
}

impl<T> Drop for SlabArc<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the object is initialised and not freed until its count is
        // 0.
        unsafe {
            if self.0.as_ref().count.dec_and_test() {
                Self::free(self.0);
            }
        }
    }
}
