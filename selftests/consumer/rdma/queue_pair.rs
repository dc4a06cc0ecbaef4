// SPDX-License-Identifier: GPL-2.0

//! Queue pairs, and what they need.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{
    device::Device,
    qp_attr::{Alternate, QpMask, QpState, QpType},
    word::Word,
};
use crate::bindings;
use core::{
    mem,
    ptr::{self, NonNull},
};
use kernel::{
    error::{from_err_ptr, to_result},
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex},
};

/// Returns the name that is shown for the owner of queue pairs.
fn name() -> *const c_char {
    <crate::LocalModule as kernel::ModuleMetadata>::NAME.as_char_ptr()
}

/// A protection domain.
///
/// # Invariants
///
/// The pointer is that of a domain of the device.
pub(crate) struct ProtectionDomain {
    pd: NonNull<bindings::ib_pd>,
    device: Device,
}

// SAFETY: Any task may use a domain.
unsafe impl Send for ProtectionDomain {}

// SAFETY: As above.
unsafe impl Sync for ProtectionDomain {}

impl ProtectionDomain {
    pub(crate) fn new(device: &Device) -> Result<Arc<Self>> {
        // SAFETY: The device is valid, and the name lives as long as the module.
        let pd = unsafe { bindings::__ib_alloc_pd(device.as_raw(), 0, name()) };
        let pd = from_err_ptr(pd)?;
        // INVARIANT: It has just been made.
        Ok(Arc::new(
            Self {
                pd: NonNull::new(pd).ok_or(ENOMEM)?,
                device: device.clone(),
            },
            GFP_KERNEL,
        )?)
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_pd {
        self.pd.as_ptr()
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The key of all memory of the kernel.
    pub(super) fn local_dma_lkey(&self) -> u32 {
        // SAFETY: The domain is valid by the type invariant.
        unsafe { (*self.as_raw()).local_dma_lkey }
    }
}

impl Drop for ProtectionDomain {
    fn drop(&mut self) {
        // SAFETY: The domain is valid, and all that is made of it keeps it.
        unsafe { bindings::ib_dealloc_pd_user(self.as_raw(), ptr::null_mut()) };
    }
}

/// A completion queue that only the polling task looks at.
///
/// # Invariants
///
/// The pointer is that of a completion queue of the device.
#[pin_data(PinnedDrop)]
pub(crate) struct CompletionQueue {
    cq: NonNull<bindings::ib_cq>,
    _device: Device,
    /// Held by the task that polls.
    #[pin]
    polling: Mutex<()>,
}

// SAFETY: Any task may use a queue.
unsafe impl Send for CompletionQueue {}

// SAFETY: As above, and one at a time polls.
unsafe impl Sync for CompletionQueue {}

impl CompletionQueue {
    pub(crate) fn new(device: &Device, entries: i32) -> Result<Arc<Self>> {
        // SAFETY: The device is valid, and the name lives as long as the module.
        let cq = unsafe {
            bindings::__ib_alloc_cq(
                device.as_raw(),
                ptr::null_mut(),
                entries,
                0,
                bindings::ib_poll_context_IB_POLL_DIRECT,
                name(),
            )
        };
        let cq = NonNull::new(from_err_ptr(cq)?).ok_or(ENOMEM)?;
        // INVARIANT: It has just been made.
        Arc::pin_init(
            pin_init!(Self {
                cq,
                _device: device.clone(),
                polling <- new_mutex!(()),
            }),
            GFP_KERNEL,
        )
    }

    fn as_raw(&self) -> *mut bindings::ib_cq {
        self.cq.as_ptr()
    }

    /// Tells the waiting tasks of the completed work.
    pub(crate) fn poll(&self) {
        let _polling = self.polling.lock();
        // SAFETY: The queue is valid by the type invariant and is polled directly, by one task; all
        // that is posted to its queue pairs has a function to be called.
        unsafe { bindings::ib_process_cq_direct(self.as_raw(), -1) };
    }
}

#[pinned_drop]
impl PinnedDrop for CompletionQueue {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The queue is valid, and all queue pairs keep theirs.
        unsafe { bindings::ib_free_cq(self.as_raw()) };
    }
}

/// The properties of a new queue pair.
#[derive(Clone, Copy)]
pub(crate) struct QpInit {
    pub(crate) qp_type: QpType,
    pub(crate) max_send_wr: u32,
    pub(crate) max_recv_wr: u32,
    pub(crate) max_send_sge: u32,
    pub(crate) max_recv_sge: u32,
}

impl QpInit {
    pub(super) fn to_raw(self, cq: &CompletionQueue) -> bindings::ib_qp_init_attr {
        // SAFETY: All zeros are attributes.
        let mut raw: bindings::ib_qp_init_attr = unsafe { mem::zeroed() };
        raw.send_cq = cq.as_raw();
        raw.recv_cq = cq.as_raw();
        raw.cap.max_send_wr = self.max_send_wr;
        raw.cap.max_recv_wr = self.max_recv_wr;
        raw.cap.max_send_sge = self.max_send_sge;
        raw.cap.max_recv_sge = self.max_recv_sge;
        raw.qp_type = self.qp_type.0;
        raw.sq_sig_type = bindings::ib_sig_type_IB_SIGNAL_REQ_WR;
        raw
    }
}

/// A queue pair; destroyed when dropped.
///
/// # Invariants
///
/// The pointer is that of a queue pair of the domain and the completion queue.
pub(crate) struct QueuePair {
    qp: NonNull<bindings::ib_qp>,
    /// True if it is destroyed by somebody else.
    forgotten: bool,
    _pd: Arc<ProtectionDomain>,
    _cq: Arc<CompletionQueue>,
}

// SAFETY: Any task may use a queue pair.
unsafe impl Send for QueuePair {}

impl QueuePair {
    /// Takes a queue pair; none for null.
    ///
    /// # Safety
    ///
    /// It must be valid, of that domain and that queue, and nobody else destroy it.
    pub(super) unsafe fn from_raw(
        qp: *mut bindings::ib_qp,
        pd: Arc<ProtectionDomain>,
        cq: Arc<CompletionQueue>,
    ) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self {
            qp: NonNull::new(qp)?,
            forgotten: false,
            _pd: pd,
            _cq: cq,
        })
    }

    /// Makes a queue pair.
    pub(crate) fn new(
        pd: &Arc<ProtectionDomain>,
        cq: &Arc<CompletionQueue>,
        init: &QpInit,
    ) -> Result<Self> {
        let mut init = init.to_raw(cq);
        // SAFETY: The domain, the queue and the attributes are valid, and the name lives as long as
        // the module.
        let qp = unsafe { bindings::ib_create_qp_kernel(pd.as_raw(), &raw mut init, name()) };
        let qp = from_err_ptr(qp)?;
        // SAFETY: It has just been made, and nobody else has it.
        unsafe { Self::from_raw(qp, pd.clone(), cq.clone()) }.ok_or(ENOMEM)
    }

    pub(super) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.qp.as_ptr()
    }

    /// Leaves it to somebody else to destroy it.
    pub(super) fn forget(mut self) {
        self.forgotten = true;
    }

    /// The number.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: The queue pair is valid by the type invariant.
        unsafe { (*self.qp.as_ptr()).qp_num }
    }

    /// Asks the device for the state.
    pub(crate) fn state(&self) -> Result<QpState> {
        Ok(QpState(self.query(QpMask::STATE)?.qp_state))
    }

    /// Asks the device for the alternate path, and for the state of migration.
    pub(crate) fn alternate(&self) -> Result<(Alternate, u32)> {
        let attr = self.query(QpMask::ALT_PATH | QpMask::PATH_MIG_STATE)?;
        Ok((Alternate::from_raw(&attr), attr.path_mig_state))
    }

    fn query(&self, mask: QpMask) -> Result<bindings::ib_qp_attr> {
        // SAFETY: All zeros are attributes.
        let mut attr: bindings::ib_qp_attr = unsafe { mem::zeroed() };
        // SAFETY: As above.
        let mut init: bindings::ib_qp_init_attr = unsafe { mem::zeroed() };
        // SAFETY: The queue pair is valid by the type invariant; the rest is valid for writes.
        to_result(unsafe {
            bindings::ib_query_qp(
                self.qp.as_ptr(),
                &raw mut attr,
                mask.status(),
                &raw mut init,
            )
        })?;
        Ok(attr)
    }

    /// Receives into a word.
    pub(crate) fn post_recv(&self, word: &Arc<Word>) -> Result {
        let mut sge = word.received();
        Word::post(word, |cqe| {
            // SAFETY: All zeros are a request.
            let mut request: bindings::ib_recv_wr = unsafe { mem::zeroed() };
            request.__bindgen_anon_1.wr_cqe = cqe;
            request.sg_list = &raw mut sge;
            request.num_sge = 1;
            // SAFETY: The queue pair is valid by the type invariant, and so is the request, whose word
            // stays until it is done.
            to_result(unsafe { bindings::rust_test_post_recv(self.qp.as_ptr(), &raw mut request) })
        })
    }

    /// Sends a word.
    pub(crate) fn post_send(&self, word: &Arc<Word>) -> Result {
        let mut sge = word.sent();
        Word::post(word, |cqe| {
            // SAFETY: All zeros are a request.
            let mut request: bindings::ib_send_wr = unsafe { mem::zeroed() };
            request.__bindgen_anon_1.wr_cqe = cqe;
            request.sg_list = &raw mut sge;
            request.num_sge = 1;
            request.opcode = bindings::ib_wr_opcode_IB_WR_SEND;
            request.send_flags = bindings::ib_send_flags_IB_SEND_SIGNALED;
            // SAFETY: As in `post_recv`.
            to_result(unsafe { bindings::rust_test_post_send(self.qp.as_ptr(), &raw mut request) })
        })
    }
}

impl Drop for QueuePair {
    fn drop(&mut self) {
        if !self.forgotten {
            // SAFETY: The queue pair is valid by the type invariant, and nobody else has it.
            unsafe { bindings::ib_destroy_qp_user(self.qp.as_ptr(), ptr::null_mut()) };
        }
    }
}

impl Device {
    /// Returns true if its first port speaks iWARP.
    pub(crate) fn is_iwarp(&self) -> bool {
        // SAFETY: The device is valid, and has that port.
        unsafe { bindings::rust_test_is_iwarp(self.as_raw(), 1) }
    }
}
