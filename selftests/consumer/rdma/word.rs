// SPDX-License-Identifier: GPL-2.0

//! Eight bytes that go from one end to the other.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{number::numbers, queue_pair::ProtectionDomain};
use crate::bindings;
use core::ptr;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{Arc, SpinLock},
    types::Opaque,
};

numbers! {
    /// The status of a request that has ended.
    WcStatus {
        SUCCESS = ib_wc_status_IB_WC_SUCCESS,
    }
}

/// The data that are sent.
const CONTENT: u64 = 0x123456789abcdef0;

/// Length of a word.
const LEN: u32 = 8;

/// The memory that they are sent from and received in.
#[repr(C)]
struct Memory {
    sent: u64,
    received: u64,
}

/// The number of finished requests, and their status: 0 if all were successful.
#[derive(Clone, Copy)]
pub(crate) struct Done {
    pub(crate) count: u32,
    pub(crate) status: WcStatus,
}

/// A word, and where it goes.
///
/// # Invariants
///
/// `map` is the address of `memory` for the device of the domain. Each request that is not done has
/// a reference.
#[pin_data(PinnedDrop)]
pub(crate) struct Word {
    #[pin]
    cqe: Opaque<bindings::ib_cqe>,
    memory: KBox<Opaque<Memory>>,
    map: u64,
    pd: Arc<ProtectionDomain>,
    #[pin]
    done: SpinLock<Done>,
}

// SAFETY: Any task may look at a word.
unsafe impl Send for Word {}

// SAFETY: The memory is read as what a device may write, the rest does not change or has a lock.
unsafe impl Sync for Word {}

impl Word {
    pub(crate) fn new(pd: &Arc<ProtectionDomain>) -> Result<Arc<Self>> {
        let memory = KBox::new(
            Opaque::new(Memory {
                sent: CONTENT,
                received: 0,
            }),
            GFP_KERNEL,
        )?;
        let device = pd.device().as_raw();
        // SAFETY: The device is valid, and the memory is one of its own, of that size.
        let map = unsafe {
            bindings::rust_test_dma_map(device, memory.get().cast(), size_of::<Memory>())
        };
        // INVARIANT: It has just been mapped, and there are no requests.
        Arc::pin_init(
            pin_init!(Self {
                cqe <- Opaque::ffi_init(|cqe: *mut bindings::ib_cqe| {
                    // SAFETY: It is valid for writes.
                    unsafe { cqe.write(bindings::ib_cqe { done: Some(Self::request_done) }) }
                }),
                memory,
                map,
                pd: pd.clone(),
                done <- new_spinlock!(Done {
                    count: 0,
                    status: WcStatus::SUCCESS,
                }),
            }),
            GFP_KERNEL,
        )
    }

    fn sge(&self, addr: u64) -> bindings::ib_sge {
        bindings::ib_sge {
            addr,
            length: LEN,
            lkey: self.pd.local_dma_lkey(),
        }
    }

    /// Returns the memory to send from, for a request.
    pub(super) fn sent(&self) -> bindings::ib_sge {
        self.sge(self.map)
    }

    /// Returns the memory to receive in, for a request.
    pub(super) fn received(&self) -> bindings::ib_sge {
        self.sge(self.map.wrapping_add(LEN.into()))
    }

    /// Posts a request, which keeps the word until it is done.
    pub(super) fn post(
        this: &Arc<Self>,
        post: impl FnOnce(*mut bindings::ib_cqe) -> Result,
    ) -> Result {
        let reference = this.clone().into_raw();
        let result = post(this.cqe.get());
        if result.is_err() {
            // SAFETY: The reference is that of the request that does not exist.
            drop(unsafe { Arc::from_raw(reference) });
        }
        result
    }

    /// Returns the number of finished requests, and their status.
    pub(crate) fn done(&self) -> Done {
        *self.done.lock()
    }

    /// Returns true if it has arrived. To be asked when all requests are done.
    pub(crate) fn has_arrived(&self) -> bool {
        let memory = self.memory.get();
        // SAFETY: The memory is valid, and any bytes are a word.
        let (sent, received) = unsafe {
            bindings::rust_test_dma_sync(self.pd.device().as_raw(), self.map, size_of::<Memory>());
            (
                ptr::read_volatile(&raw const (*memory).sent),
                ptr::read_volatile(&raw const (*memory).received),
            )
        };
        received == sent
    }

    /// Called when a request is done.
    ///
    /// # Safety
    ///
    /// To be called by the RDMA core only, once for each request.
    unsafe extern "C" fn request_done(_cq: *mut bindings::ib_cq, wc: *mut bindings::ib_wc) {
        // SAFETY: The completion is valid, and all are of requests with such an entry.
        let (cqe, status) = unsafe { ((*wc).__bindgen_anon_1.wr_cqe, (*wc).status) };
        // SAFETY: The entry is that of a word, which the request has a reference to.
        let word =
            unsafe { Arc::from_raw(kernel::container_of!(Opaque::cast_from(cqe), Self, cqe)) };
        let mut done = word.done.lock();
        done.count = done.count.wrapping_add(1);
        done.status.0 |= status;
    }
}

#[pinned_drop]
impl PinnedDrop for Word {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: It is mapped by the type invariant, and no request needs it.
        unsafe {
            bindings::rust_test_dma_unmap(self.pd.device().as_raw(), self.map, size_of::<Memory>())
        };
    }
}
