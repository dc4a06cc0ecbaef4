// SPDX-License-Identifier: GPL-2.0

//! Send buffers for MADs.
//!
//! An agent has a pool of buffers for messages that storage may depend on: an allocation could wait
//! for the write-back of memory through the very connection that is being made. They are allocated
//! for the first such message with a P_Key, and return to the pool when they were sent.
//!
//! All other messages share a few buffers of each CPU, which are posted again and again. A message
//! that finds all of its CPU in use has a buffer of its own, which is freed when it was sent. A
//! buffer is taken and put back without a lock, which all CPUs would write.
//!
//! Lock order: the lock of the pool is a leaf; nothing is allocated or freed while it is held.

use super::{
    ah::Handle,
    mad::{Registered, MAD_LEN},
};
use crate::{bindings, kext::percpu::PerCpu};
use atomics::Slots;
use cmproto::wire;
use core::{
    cell::UnsafeCell,
    mem,
    ptr::{self, NonNull},
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    error::{from_err_ptr, to_result},
    new_spinlock,
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
    sync::{Arc, SpinLock},
};

/// The number of QP1, the destination of all messages.
const GSI_QPN: u32 = 1;

/// The number of buffers in the pool for each P_Key.
const POOL_SIZE: usize = 16;

/// The most shared buffers of a CPU. They are charged to nobody, and so they are few.
const SHARED_SIZE: u32 = 32;

/// The index of the P_Key that the messages in shared buffers have. Nearly all have this one.
const SHARED_PKEY_INDEX: u16 = 0;

/// The bit of [`SendBuffer::pool_key`] that a shared buffer has.
const SHARED: usize = 1 << 63;

/// A send buffer (`struct ib_mad_send_buf`), which keeps its agent registered.
///
/// # Invariants
///
/// `raw` is a buffer of the MAD layer that this object owns. It is not posted. If `pool_key` is
/// that of a [`Place`], this was taken for the buffer.
pub(super) struct SendBuffer {
    raw: NonNull<bindings::ib_mad_send_buf>,
    /// The index of the buffer's P_Key plus one if the buffer is one of the pool, [`SHARED`] and
    /// its place if it is a shared one, else 0.
    ///
    /// It is stored in the context of the message in this form.
    pool_key: usize,
}

// SAFETY: Any task may use and free a buffer.
unsafe impl Send for SendBuffer {}

impl SendBuffer {
    /// Allocates a zeroed buffer for messages with the P_Key at this index of the port.
    fn new(registered: &Registered<'_>, pkey_index: u16, flags: bindings::gfp_t) -> Result<Self> {
        // SAFETY: The agent is registered while we use it.
        let raw = from_err_ptr(unsafe {
            bindings::ib_create_send_mad(
                registered.as_raw(),
                GSI_QPN,
                pkey_index,
                0,
                wire::HEADER_LEN as c_int,
                wire::DATA_LEN as c_int,
                flags,
                wire::BASE_VERSION,
            )
        })?;
        // INVARIANT: The buffer was allocated above.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            pool_key: 0,
        })
    }

    /// Returns the message.
    #[inline]
    pub(super) fn mad(&mut self) -> &mut [u8; MAD_LEN] {
        // SAFETY: The buffer is ours, and has room for a MAD.
        unsafe { &mut *(*self.raw.as_ptr()).mad.cast() }
    }

    /// Returns the attribute id of the message, in host byte order.
    #[inline]
    pub(super) fn attr_id(&mut self) -> u16 {
        // SAFETY: The buffer is ours, and a MAD begins with a header.
        u16::from_be(unsafe { (*(*self.raw.as_ptr()).mad.cast::<bindings::ib_mad_hdr>()).attr_id })
    }

    /// Sends the message with `ah`, which must have a handle.
    ///
    /// The send handler gets the buffer back with [`posted`](Self::posted). An error returns it at
    /// once.
    #[inline]
    pub(super) fn post(self, ah: Arc<Handle>) -> Result<(), (Error, Self)> {
        let (ah_raw, context) = (ah.as_raw(), Arc::into_raw(ah));
        let raw = self.raw.as_ptr();
        // SAFETY: The buffer is ours.
        unsafe {
            (*raw).ah = ah_raw;
            (*raw).context = [
                context.cast_mut().cast(),
                ptr::without_provenance_mut(self.pool_key),
            ];
            (*raw).timeout_ms = 0;
            (*raw).retries = 0;
        }
        // SAFETY: The buffer is complete. On success it belongs to the MAD layer from here on, and
        // comes back in the send handler. `context` keeps the address handle until then.
        match to_result(unsafe { bindings::ib_post_send_mad(raw, ptr::null_mut()) }) {
            Ok(()) => {
                mem::forget(self);
                Ok(())
            }
            Err(error) => {
                // SAFETY: The pointer is from `into_raw` above, and the reference is still ours.
                drop(unsafe { Arc::from_raw(context) });
                Err((error, self))
            }
        }
    }

    /// Takes over a buffer that was sent, and the address handle that was used.
    ///
    /// # Safety
    ///
    /// The MAD layer must have passed `raw` to a send handler, and this is called once for it. The
    /// buffer must have been sent by [`post`](Self::post).
    #[inline]
    pub(super) unsafe fn posted(raw: *mut bindings::ib_mad_send_buf) -> (Self, Arc<Handle>) {
        // SAFETY: By the safety requirements the context is as `post` has set it.
        unsafe {
            let [ah, pool_key] = (*raw).context;
            let buffer = Self {
                // INVARIANT: The MAD layer has returned the buffer.
                raw: NonNull::new_unchecked(raw),
                pool_key: pool_key.addr(),
            };
            (buffer, Arc::from_raw(ah.cast_const().cast::<Handle>()))
        }
    }
}

impl Drop for SendBuffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the buffer is ours. The agent stays registered while it has
        // buffers.
        unsafe { bindings::ib_free_send_mad(self.raw.as_ptr()) };
    }
}

/// The place of a shared buffer.
///
/// # Invariants
///
/// The slot of the CPU was taken, and is the owner's of this.
struct Place {
    cpu: u32,
    slot: u32,
}

impl Place {
    /// The bits of a key that are those of the slot.
    const SLOT_BITS: u32 = 8;

    /// Turns the place into that of a buffer.
    fn give_to(self, buffer: &mut SendBuffer) {
        // INVARIANT: The place was taken, and is the buffer's now.
        buffer.pool_key = SHARED | (self.cpu as usize) << Self::SLOT_BITS | self.slot as usize;
    }

    /// Returns the place of a buffer, if it is a shared one, which has none from then on.
    fn of(buffer: &mut SendBuffer) -> Option<Self> {
        let key = buffer.pool_key;
        if key & SHARED == 0 {
            return None;
        }
        buffer.pool_key = 0;
        // CAST: The key was made of two numbers, of 32 bits and of 8.
        let cpu = ((key & !SHARED) >> Self::SLOT_BITS) as u32;
        // CAST: The same.
        let slot = (key & ((1 << Self::SLOT_BITS) - 1)) as u32;
        // INVARIANT: The place was that of the buffer, and is this one's now.
        Some(Place { cpu, slot })
    }
}

/// The part of the shared buffers that was taken.
enum Taken {
    /// A buffer that was used before.
    Buffer(SendBuffer),
    /// The place for a buffer.
    Place(Place),
}

/// The shared buffers of a CPU.
///
/// # Invariants
///
/// The task that has taken a slot is the only one to access its buffer.
struct SharedBuffers {
    cpu: u32,
    slots: Slots,
    /// The buffers that were used before, by slot.
    unused: [UnsafeCell<Option<SendBuffer>>; SHARED_SIZE as usize],
}

// SAFETY: A buffer is accessed by one task at a time by the type invariant, and may be used by any.
unsafe impl Sync for SharedBuffers {}

impl SharedBuffers {
    fn new(cpu: u32) -> Self {
        Self {
            cpu,
            slots: Slots::new(),
            unused: [const { UnsafeCell::new(None) }; SHARED_SIZE as usize],
        }
    }

    /// Takes a place, if one is free.
    #[inline]
    fn take(&self) -> Option<Taken> {
        let slot = self.slots.take(SHARED_SIZE)?;
        // INVARIANT: We have just taken the slot.
        let place = Place {
            cpu: self.cpu,
            slot,
        };
        // SAFETY: The same.
        Some(match unsafe { self.swap(slot, None) } {
            Some(mut buffer) => {
                place.give_to(&mut buffer);
                Taken::Buffer(buffer)
            }
            None => Taken::Place(place),
        })
    }

    /// Gives a place of this CPU back, with the buffer that is to be there. Returns the buffer if
    /// none is taken any more.
    #[inline]
    fn put_back(&self, place: Place, buffer: Option<SendBuffer>) -> Option<SendBuffer> {
        // SAFETY: The slot was taken by the invariant of the place.
        drop(unsafe { self.swap(place.slot, buffer) });
        match self.slots.put_back(place.slot) {
            true => None,
            // SAFETY: The slot stays ours.
            false => unsafe { self.swap(place.slot, None) },
        }
    }

    /// Frees all buffers that are not in use. No buffer is taken any more.
    fn close(&self) {
        for slot in self.slots.close(SHARED_SIZE) {
            // SAFETY: The slot is ours since it was closed.
            drop(unsafe { self.swap(slot, None) });
        }
    }

    /// Replaces the buffer of a slot.
    ///
    /// # Safety
    ///
    /// The caller must have taken the slot.
    #[inline]
    unsafe fn swap(&self, slot: u32, buffer: Option<SendBuffer>) -> Option<SendBuffer> {
        let cell = self.unused.get(slot as usize)?;
        // SAFETY: By the type invariant and the safety requirements nobody else accesses it.
        mem::replace(unsafe { &mut *cell.get() }, buffer)
    }
}

/// The buffers of the pool for one P_Key that are not in use.
type Buffers = [Option<SendBuffer>; POOL_SIZE];

/// The state of a pool that its lock protects.
struct PoolState {
    /// The buffers by the index of their P_Key.
    by_pkey: RBTree<u16, Buffers>,
    closed: bool,
}

/// The pool of buffers of an agent.
#[pin_data]
pub(super) struct SendBufferPool {
    shared: PerCpu<SharedBuffers>,
    #[pin]
    state: SpinLock<PoolState>,
}

impl SendBufferPool {
    /// Creates an initialiser for an empty pool. Fails with [`ENOMEM`].
    pub(super) fn new() -> Result<impl PinInit<Self>> {
        let state = PoolState {
            by_pkey: RBTree::new(),
            closed: false,
        };
        let shared = PerCpu::new(SharedBuffers::new)?;
        Ok(pin_init!(Self {
            shared,
            state <- new_spinlock!(state, "rdma_cm_send_buffers"),
        }))
    }

    /// Takes a zeroed buffer: a shared one, or one that is charged to the current task if all are
    /// in use. May sleep.
    ///
    /// Fails with [`ENOMEM`].
    pub(super) fn share(&self, registered: &Registered<'_>, pkey_index: u16) -> Result<SendBuffer> {
        if pkey_index == SHARED_PKEY_INDEX {
            match self.shared.here().take() {
                Some(Taken::Buffer(mut buffer)) => {
                    buffer.mad().fill(0);
                    return Ok(buffer);
                }
                Some(Taken::Place(place)) => return self.new_shared(registered, place),
                None => {}
            }
        }
        SendBuffer::new(registered, pkey_index, bindings::GFP_KERNEL_ACCOUNT)
    }

    /// Allocates the shared buffer of a place that was taken.
    #[cold]
    fn new_shared(&self, registered: &Registered<'_>, place: Place) -> Result<SendBuffer> {
        match SendBuffer::new(registered, SHARED_PKEY_INDEX, bindings::GFP_KERNEL) {
            Ok(mut buffer) => {
                place.give_to(&mut buffer);
                Ok(buffer)
            }
            Err(error) => {
                self.put_shared(place, None);
                Err(error)
            }
        }
    }

    /// Takes a zeroed buffer, or allocates one without waiting if all are in use.
    ///
    /// Fails with [`ENOMEM`], and [`ENODEV`] if the agent is being unregistered.
    pub(super) fn take(&self, registered: &Registered<'_>, pkey_index: u16) -> Result<SendBuffer> {
        let found = match self.find(pkey_index) {
            Some(found) => found,
            None => {
                self.fill(registered, pkey_index)?;
                self.find(pkey_index).ok_or(ENODEV)?
            }
        };
        match found {
            Some(mut buffer) => {
                buffer.mad().fill(0);
                Ok(buffer)
            }
            None => SendBuffer::new(registered, pkey_index, bindings::GFP_NOWAIT),
        }
    }

    /// Takes a buffer for a P_Key.
    ///
    /// The outer `Option` is `None` if the pool has none for the P_Key yet, the inner one if all
    /// are in use.
    fn find(&self, pkey_index: u16) -> Option<Option<SendBuffer>> {
        let mut state = self.state.lock();
        let buffers = state.by_pkey.get_mut(&pkey_index)?;
        Some(buffers.iter_mut().find_map(Option::take))
    }

    /// Allocates the buffers for a P_Key. May sleep.
    fn fill(&self, registered: &Registered<'_>, pkey_index: u16) -> Result {
        let mut buffers: Buffers = [const { None }; POOL_SIZE];
        for slot in &mut buffers {
            let flags = bindings::GFP_KERNEL_ACCOUNT;
            let mut buffer = SendBuffer::new(registered, pkey_index, flags)?;
            buffer.pool_key = usize::from(pkey_index).wrapping_add(1);
            *slot = Some(buffer);
        }
        let node = RBTreeNode::new(pkey_index, buffers, GFP_KERNEL)?;
        let mut state = self.state.lock();
        // Another task may have done the same meanwhile.
        let unused = if state.closed || state.by_pkey.get(&pkey_index).is_some() {
            Some(node)
        } else {
            state.by_pkey.insert(node)
        };
        drop(state);
        drop(unused);
        Ok(())
    }

    /// Puts a buffer that was sent back into the pool, or frees it if it is neither one of the pool
    /// nor a shared one.
    #[inline]
    pub(super) fn put(&self, mut buffer: SendBuffer) {
        match Place::of(&mut buffer) {
            Some(place) => self.put_shared(place, Some(buffer)),
            None if buffer.pool_key == 0 => drop(buffer),
            None => self.put_back(buffer),
        }
    }

    /// Gives the place of a shared buffer back, to be used again unless the pool is closed.
    #[inline]
    fn put_shared(&self, place: Place, buffer: Option<SendBuffer>) {
        if let Some(shared) = self.shared.of(place.cpu) {
            drop(shared.put_back(place, buffer));
        }
    }

    fn put_back(&self, buffer: SendBuffer) {
        let Ok(pkey_index) = u16::try_from(buffer.pool_key.wrapping_sub(1)) else {
            return;
        };
        let mut unused = Some(buffer);
        let mut state = self.state.lock();
        if let Some(buffers) = state.by_pkey.get_mut(&pkey_index) {
            if let Some(slot) = buffers.iter_mut().find(|slot| slot.is_none()) {
                *slot = unused.take();
            }
        }
        drop(state);
        drop(unused);
    }

    /// Frees all buffers and closes the pool, because the agent waits for its buffers.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let removed = mem::replace(&mut state.by_pkey, RBTree::new());
        drop(state);
        drop(removed);
        for shared in self.shared.all() {
            shared.close();
        }
    }
}
