// SPDX-License-Identifier: GPL-2.0

//! Buffers for messages that are sent.
//!
//! An agent keeps some for messages that storage may depend on: the memory that an allocation waits for may
//! be written back by the very connection that is being made. They are made for the first such message with a
//! P_Key, and come back when they have been sent.
//!
//! Lock order: the lock of what is kept is a leaf; nothing is allocated or freed while it is held.

use super::{
    ah::Handle,
    mad::{Entered, MAD_LEN},
};
use crate::bindings;
use core::{
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

/// Length of the header that all MADs have.
const HEADER_LEN: c_int = 24;
/// Length of what follows it.
const DATA_LEN: c_int = 232;
/// Version of that header.
const BASE_VERSION: u8 = 1;
/// The QP that takes the messages.
const GSI_QPN: u32 = 1;

/// How many are kept for a P_Key.
const KEPT: usize = 16;

/// A buffer for a message (`struct ib_mad_send_buf`). As long as there is one its agent stays.
///
/// # Invariants
///
/// `raw` is a buffer of the MAD layer that is ours. It is not posted.
pub(super) struct SendBuffer {
    raw: NonNull<bindings::ib_mad_send_buf>,
    /// The index of the P_Key that it is made for, plus one, if it is one to be kept; else 0. As it is
    /// left in the context of the message.
    kept_for: usize,
}

// SAFETY: Any task may use and free a buffer.
unsafe impl Send for SendBuffer {}

impl SendBuffer {
    /// Allocates a buffer, all zeros, for messages with the P_Key at this index of the port.
    #[inline]
    pub(super) fn new(entered: &Entered<'_>, pkey_index: u16) -> Result<Self> {
        Self::allocate(entered, pkey_index, bindings::GFP_KERNEL)
    }

    #[inline]
    fn allocate(entered: &Entered<'_>, pkey_index: u16, flags: bindings::gfp_t) -> Result<Self> {
        // SAFETY: The agent is registered while we are inside.
        let raw = from_err_ptr(unsafe {
            bindings::ib_create_send_mad(
                entered.as_raw(),
                GSI_QPN,
                pkey_index,
                0,
                HEADER_LEN,
                DATA_LEN,
                flags,
                BASE_VERSION,
            )
        })?;
        // INVARIANT: Created just now.
        Ok(Self {
            raw: NonNull::new(raw).ok_or(ENOMEM)?,
            kept_for: 0,
        })
    }

    /// The message.
    #[inline]
    pub(super) fn mad(&mut self) -> &mut [u8; MAD_LEN] {
        // SAFETY: The buffer is ours, and has room for a MAD.
        unsafe { &mut *(*self.raw.as_ptr()).mad.cast() }
    }

    /// The attribute id of the message.
    #[inline]
    pub(super) fn attr_id(&mut self) -> u16 {
        // SAFETY: The buffer is ours, and a MAD begins with a header.
        u16::from_be(unsafe { (*(*self.raw.as_ptr()).mad.cast::<bindings::ib_mad_hdr>()).attr_id })
    }

    /// Sends the message the way of `ah`, which has a handle. The buffer comes back by
    /// [`posted`](Self::posted) of what the send handler is given; if this fails, now.
    #[inline]
    pub(super) fn post(self, ah: Arc<Handle>) -> Result<(), (Error, Self)> {
        let (ah_raw, context) = (ah.as_raw(), Arc::into_raw(ah));
        let raw = self.raw.as_ptr();
        // SAFETY: The buffer is ours.
        unsafe {
            (*raw).ah = ah_raw;
            (*raw).context = [
                context.cast_mut().cast(),
                ptr::without_provenance_mut(self.kept_for),
            ];
            (*raw).timeout_ms = 0;
            (*raw).retries = 0;
        }
        // SAFETY: The buffer is complete. If all is well, it belongs to the MAD layer from here on,
        // and comes back in the send handler, and the address handle is kept by `context` until then.
        match to_result(unsafe { bindings::ib_post_send_mad(raw, ptr::null_mut()) }) {
            Ok(()) => {
                mem::forget(self);
                Ok(())
            }
            Err(error) => {
                // SAFETY: From `into_raw` above, and still ours.
                drop(unsafe { Arc::from_raw(context) });
                Err((error, self))
            }
        }
    }

    /// Takes a buffer back, and the address handle by which the message went.
    ///
    /// # Safety
    ///
    /// The MAD layer must have given `raw` to a send handler, once. It must have come there by
    /// [`post`](Self::post).
    #[inline]
    pub(super) unsafe fn posted(raw: *mut bindings::ib_mad_send_buf) -> (Self, Arc<Handle>) {
        // SAFETY: By the safety requirements: what is in the context is what `post` has left there.
        unsafe {
            let [ah, kept_for] = (*raw).context;
            let buffer = Self {
                // INVARIANT: It is ours again.
                raw: NonNull::new_unchecked(raw),
                kept_for: kept_for.addr(),
            };
            (buffer, Arc::from_raw(ah.cast_const().cast::<Handle>()))
        }
    }
}

impl Drop for SendBuffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. The agent stays as long as it has buffers.
        unsafe { bindings::ib_free_send_mad(self.raw.as_ptr()) };
    }
}

/// The buffers for one P_Key that are not on their way.
type Shelf = [Option<SendBuffer>; KEPT];

struct Shelves {
    /// By the index of the P_Key.
    by_pkey: RBTree<u16, Shelf>,
    closed: bool,
}

/// The buffers that an agent keeps.
#[pin_data]
pub(super) struct KeptBuffers {
    #[pin]
    shelves: SpinLock<Shelves>,
}

impl KeptBuffers {
    /// None yet.
    pub(super) fn new() -> impl PinInit<Self> {
        let shelves = Shelves {
            by_pkey: RBTree::new(),
            closed: false,
        };
        pin_init!(Self {
            shelves <- new_spinlock!(shelves, "rdma_cm_send_buffers"),
        })
    }

    /// Takes a buffer, all zeros. If all are on their way it is a new one, which nothing is waited for.
    ///
    /// Fails with [`ENOMEM`], and [`ENODEV`] if the agent is going.
    pub(super) fn take(&self, entered: &Entered<'_>, pkey_index: u16) -> Result<SendBuffer> {
        let found = match self.find(pkey_index) {
            Some(found) => found,
            None => {
                self.fill(entered, pkey_index)?;
                self.find(pkey_index).ok_or(ENODEV)?
            }
        };
        match found {
            Some(mut buffer) => {
                buffer.mad().fill(0);
                Ok(buffer)
            }
            None => SendBuffer::allocate(entered, pkey_index, bindings::GFP_NOWAIT),
        }
    }

    /// Takes a buffer for a P_Key, if one is there; none if nothing is kept for that yet.
    fn find(&self, pkey_index: u16) -> Option<Option<SendBuffer>> {
        let mut shelves = self.shelves.lock();
        let shelf = shelves.by_pkey.get_mut(&pkey_index)?;
        Some(shelf.iter_mut().find_map(Option::take))
    }

    /// Makes the buffers for a P_Key.
    fn fill(&self, entered: &Entered<'_>, pkey_index: u16) -> Result {
        let mut shelf: Shelf = [const { None }; KEPT];
        for place in &mut shelf {
            let mut buffer = SendBuffer::new(entered, pkey_index)?;
            buffer.kept_for = usize::from(pkey_index).wrapping_add(1);
            *place = Some(buffer);
        }
        let node = RBTreeNode::new(pkey_index, shelf, GFP_KERNEL)?;
        let mut shelves = self.shelves.lock();
        // Somebody may have been faster.
        let unused = if shelves.closed || shelves.by_pkey.get(&pkey_index).is_some() {
            Some(node)
        } else {
            shelves.by_pkey.insert(node)
        };
        drop(shelves);
        drop(unused);
        Ok(())
    }

    /// Gives a buffer back. One that is not to be kept, or not any more, is freed.
    #[inline]
    pub(super) fn give_back(&self, buffer: SendBuffer) {
        if buffer.kept_for != 0 {
            self.keep(buffer);
        }
    }

    fn keep(&self, buffer: SendBuffer) {
        let Ok(pkey_index) = u16::try_from(buffer.kept_for.wrapping_sub(1)) else {
            return;
        };
        let mut unused = Some(buffer);
        let mut shelves = self.shelves.lock();
        if let Some(shelf) = shelves.by_pkey.get_mut(&pkey_index) {
            if let Some(place) = shelf.iter_mut().find(|place| place.is_none()) {
                *place = unused.take();
            }
        }
        drop(shelves);
        drop(unused);
    }

    /// Frees all, and keeps none from here on: the agent waits for its buffers when it goes.
    pub(super) fn close(&self) {
        let mut shelves = self.shelves.lock();
        shelves.closed = true;
        let kept = mem::replace(&mut shelves.by_pkey, RBTree::new());
        drop(shelves);
        drop(kept);
    }
}
