// SPDX-License-Identifier: GPL-2.0

//! An identifier in C's layout, with other fields in place of those that only C uses.
//!
//! More than a quarter of a `struct rdma_id_private` are fields that the C connection manager alone
//! uses. Here they have room for fields of the object that the identifier is a part of.

use super::restrack::RdmaIdPrivate;
use crate::bindings::{rdma_cm_id, rdma_id_private_head as Head};
use core::{
    mem::{align_of, offset_of, size_of, MaybeUninit},
    ops::Deref,
    ptr,
};
use kernel::{prelude::*, types::Opaque};

/// The start of the first gap. `net_work` is the last field that a consumer could know of, and is
/// for the C connection manager alone.
const FIRST: usize = offset_of!(Head, id) + offset_of!(rdma_cm_id, net_work);
/// The part between the first two gaps, with the state.
const STATE: usize = offset_of!(Head, reserved_id) / 8 * 8;
const SECOND: usize = (offset_of!(Head, state) + size_of::<u32>()).next_multiple_of(8);
/// The part between the last two gaps, with the consumer and the number of the queue pair.
const CONSUMER: usize = offset_of!(Head, consumer);
const THIRD: usize = (offset_of!(Head, qp_num) + size_of::<u32>()).next_multiple_of(8);
/// The rest, which begins with the resource entry.
const REST: usize = offset_of!(Head, res);

/// The size of the first gap.
pub(crate) const FIRST_GAP: usize = STATE - FIRST;
/// The size of the second gap.
pub(crate) const SECOND_GAP: usize = CONSUMER - SECOND;
/// The size of the third gap.
pub(crate) const THIRD_GAP: usize = REST - THIRD;

/// Returns the number of words that a value of the type `T` leaves free in a gap of `gap` bytes. A
/// type that does not fit is an error when the module is built.
pub(crate) const fn words_left<T>(gap: usize) -> usize {
    assert!(size_of::<T>() <= gap, "the gap is too small");
    let left = gap.saturating_sub(size_of::<T>());
    match left.checked_div(size_of::<u64>()) {
        Some(words) => words,
        None => 0,
    }
}

/// A value with `WORDS` words behind it, which are not used, so that it is as large as its gap.
#[pin_data]
#[repr(C)]
pub(crate) struct Padded<T, const WORDS: usize> {
    pub(crate) value: T,
    _rest: Opaque<[u64; WORDS]>,
}

impl<T, const WORDS: usize> Padded<T, WORDS> {
    /// Initialises the value, in place.
    pub(crate) fn new(value: impl Init<T>) -> impl PinInit<Self> {
        pin_init!(Self {
            value <- value,
            _rest: Opaque::uninit(),
        })
    }
}

/// An identifier that has a value in each of its three gaps.
///
/// It is the [`RdmaIdPrivate`] that it dereferences to, which has no access to the gaps.
#[repr(C)]
pub(crate) struct OverlaidRdmaId<A, B, C> {
    _public: Opaque<[u8; FIRST]>,
    pub(crate) first: A,
    _state: Opaque<[u8; SECOND - STATE]>,
    pub(crate) second: B,
    _consumer: Opaque<[u8; THIRD - CONSUMER]>,
    pub(crate) third: C,
    _rest: Opaque<[u8; size_of::<RdmaIdPrivate>() - REST]>,
}

impl<A: 'static, B: 'static, C: 'static> OverlaidRdmaId<A, B, C> {
    /// The identifier and the gaps have the layout of the identifier alone.
    const FITS: () = {
        assert!(offset_of!(Self, first) == FIRST);
        assert!(offset_of!(Self, _state) == STATE);
        assert!(offset_of!(Self, second) == SECOND);
        assert!(offset_of!(Self, _consumer) == CONSUMER);
        assert!(offset_of!(Self, third) == THIRD);
        assert!(offset_of!(Self, _rest) == REST);
        assert!(size_of::<Self>() == size_of::<RdmaIdPrivate>());
        assert!(align_of::<Self>() == align_of::<RdmaIdPrivate>());
    };

    /// Initialises the identifier and what is in its gaps, in place.
    pub(crate) fn new(
        id_priv: impl PinInit<RdmaIdPrivate>,
        first: impl PinInit<A>,
        second: impl PinInit<B>,
        third: impl PinInit<C>,
    ) -> impl PinInit<Self> {
        const { Self::FITS };
        // SAFETY: The parts are initialised, as that cannot fail, and stay where they are. By
        // `FITS` the identifier is in its place. Its initialiser may write to the gaps, which are
        // initialised after it.
        unsafe {
            pin_init::pin_init_from_closure(move |slot: *mut Self| {
                place(slot.cast()).write_pin_init(id_priv)?;
                place(&raw mut (*slot).first).write_pin_init(first)?;
                place(&raw mut (*slot).second).write_pin_init(second)?;
                place(&raw mut (*slot).third).write_pin_init(third)?;
                Ok(())
            })
        }
    }
}

/// Returns the memory for a part of an object.
///
/// # Safety
///
/// The memory must belong to the caller, which does not move what it initialises there.
unsafe fn place<T>(slot: *mut T) -> &'static mut MaybeUninit<T> {
    // SAFETY: By the safety requirements. The reference is not used when the object has gone.
    unsafe { &mut *slot.cast() }
}

impl<A: 'static, B: 'static, C: 'static> Deref for OverlaidRdmaId<A, B, C> {
    type Target = RdmaIdPrivate;

    fn deref(&self) -> &RdmaIdPrivate {
        const { Self::FITS };
        // SAFETY: The identifier was initialised there, and lives as long as this. It and ib_core
        // access none of the bytes in the gaps ([`FIRST`], [`SECOND`], [`THIRD`]).
        unsafe { &*ptr::from_ref(self).cast() }
    }
}

impl<A, B, C> Drop for OverlaidRdmaId<A, B, C> {
    fn drop(&mut self) {
        // SAFETY: The identifier was initialised there, is dropped nowhere else, and is not used
        // after this. The gaps are dropped after it.
        unsafe { ptr::drop_in_place(ptr::from_mut(self).cast::<RdmaIdPrivate>()) };
    }
}

// SAFETY: An identifier can be sent, and so can the values in the gaps.
unsafe impl<A: Send, B: Send, C: Send> Send for OverlaidRdmaId<A, B, C> {}
// SAFETY: An identifier can be shared, and so can the values in the gaps.
unsafe impl<A: Sync, B: Sync, C: Sync> Sync for OverlaidRdmaId<A, B, C> {}
// SAFETY: The rest is not used.
unsafe impl<T: Send, const WORDS: usize> Send for Padded<T, WORDS> {}
// SAFETY: The rest is not used.
unsafe impl<T: Sync, const WORDS: usize> Sync for Padded<T, WORDS> {}
