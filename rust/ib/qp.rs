// SPDX-License-Identifier: GPL-2.0

//! Queue pairs of kernel consumers, whose states the connection manager changes.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::ah::set_lid;
use crate::bindings;
use cmproto::{
    cm::{qp_attr_mask, QpState},
    ucma_abi::{UverbsAhAttr, UverbsQpAttr},
};
use core::{
    marker::PhantomData,
    ptr::{self, NonNull},
};
use kernel::{
    error::{from_err_ptr, to_result},
    prelude::*,
};

/// The owner of a queue pair in `rdma resource show qp`.
const OWNER: &CStr = c"rdma_cm";

/// The next hop to a peer, as far as it is not in an address vector of the ABI.
#[derive(Clone, Copy)]
pub(crate) enum NextHop {
    /// The MAC address on RoCE; zeros if it is not known, and on InfiniBand.
    Mac([u8; 6]),
    /// The LID on Omni-Path.
    OpaLid(u32),
}

impl NextHop {
    /// The next hop that is not known, or is in the address vector.
    pub(crate) const NONE: Self = Self::Mac([0; 6]);
}

/// A queue pair, borrowed from the consumer.
///
/// # Invariants
///
/// The pointer is that of a queue pair that exists for the duration of `'a`.
pub(crate) struct Qp<'a>(NonNull<bindings::ib_qp>, PhantomData<&'a ()>);

impl Qp<'_> {
    /// Borrows a queue pair from a C pointer; the result is `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// The queue pair must be valid for the lifetime of the result.
    pub(crate) unsafe fn from_raw(qp: *mut bindings::ib_qp) -> Option<Self> {
        // INVARIANT: By the safety requirements.
        Some(Self(NonNull::new(qp)?, PhantomData))
    }

    /// Creates a queue pair, which the caller owns. May sleep.
    ///
    /// # Safety
    ///
    /// `pd` must be valid, and `attr` must describe a queue pair of its device.
    pub(crate) unsafe fn create(
        pd: *mut bindings::ib_pd,
        attr: *mut bindings::ib_qp_init_attr,
    ) -> Result<Self> {
        // SAFETY: By the safety requirements. The name lives for ever.
        let qp = unsafe { bindings::ib_create_qp_kernel(pd, attr, OWNER.as_char_ptr()) };
        let qp = from_err_ptr(qp)?;
        // INVARIANT: The queue pair was created above.
        Ok(Self(NonNull::new(qp).ok_or(ENOMEM)?, PhantomData))
    }

    /// Destroys the queue pair. May sleep.
    ///
    /// # Safety
    ///
    /// Nobody else may use the queue pair, during the call or later.
    pub(crate) unsafe fn destroy(self) {
        // SAFETY: By the type invariant and the safety requirements.
        unsafe { bindings::ib_destroy_qp_user(self.0.as_ptr(), ptr::null_mut()) };
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::ib_qp {
        self.0.as_ptr()
    }

    /// Returns the QP number, 24 bits.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: The queue pair is valid by the type invariant; its number does not change.
        unsafe { (*self.0.as_ptr()).qp_num }
    }

    /// Returns whether the queue pair uses a shared receive queue.
    pub(crate) fn has_srq(&self) -> bool {
        // SAFETY: The queue pair is valid by the type invariant; the field does not change.
        unsafe { !(*self.0.as_ptr()).srq.is_null() }
    }

    /// Modifies the attributes that the mask of `attr` names. May sleep.
    ///
    /// `hop` is the next hop to the peer.
    pub(crate) fn modify(&self, attr: &UverbsQpAttr, hop: NextHop) -> Result {
        // SAFETY: The queue pair and its device are valid by the type invariant.
        let mut raw = unsafe { to_raw((*self.0.as_ptr()).device, attr, hop) };
        let mask = c_int::try_from(attr.qp_attr_mask).map_err(|_| EINVAL)?;
        // SAFETY: The queue pair is valid by the type invariant; the attributes are only read.
        to_result(unsafe { bindings::ib_modify_qp(self.0.as_ptr(), &raw mut raw, mask) })
    }
}

/// Converts an address vector to its C form, with the source GID given by its index.
///
/// # Safety
///
/// `device` must be valid, and must have the port unless the port number is 0.
pub(crate) unsafe fn ah_to_raw(
    device: *mut bindings::ib_device,
    ah: &UverbsAhAttr,
    hop: NextHop,
) -> bindings::rdma_ah_attr {
    let mut raw = bindings::rdma_ah_attr {
        sl: ah.sl,
        static_rate: ah.static_rate,
        port_num: u32::from(ah.port_num),
        ..Default::default()
    };
    if ah.port_num == 0 {
        return raw;
    }
    // SAFETY: By the safety requirements.
    raw.type_ = unsafe { bindings::rust_rdma_ah_find_type(device, raw.port_num) };
    let (dmac, dlid) = match hop {
        NextHop::Mac(dmac) => (dmac, u32::from(ah.dlid)),
        NextHop::OpaLid(dlid) => ([0; 6], dlid),
    };
    if raw.type_ == bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE {
        raw.__bindgen_anon_1.roce = bindings::roce_ah_attr { dmac };
    } else {
        // A port of another type has no LIDs.
        let _ = set_lid(&mut raw, dlid, ah.src_path_bits);
    }
    if ah.is_global != 0 {
        raw.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        raw.grh = bindings::ib_global_route {
            dgid: bindings::ib_gid { raw: ah.grh.dgid },
            flow_label: ah.grh.flow_label,
            sgid_index: ah.grh.sgid_index,
            hop_limit: ah.grh.hop_limit,
            traffic_class: ah.grh.traffic_class,
            ..Default::default()
        };
    }
    raw
}

/// Converts the attributes of a queue pair to their C form.
///
/// # Safety
///
/// The requirements of [`ah_to_raw`].
unsafe fn to_raw(
    device: *mut bindings::ib_device,
    attr: &UverbsQpAttr,
    hop: NextHop,
) -> bindings::ib_qp_attr {
    bindings::ib_qp_attr {
        qp_state: attr.qp_state,
        path_mtu: attr.path_mtu,
        path_mig_state: attr.path_mig_state,
        qkey: attr.qkey,
        rq_psn: attr.rq_psn,
        sq_psn: attr.sq_psn,
        dest_qp_num: attr.dest_qp_num,
        // CAST: A set of flags, of which no more than 31 bits are in use.
        qp_access_flags: c_int::try_from(attr.qp_access_flags).unwrap_or(0),
        // SAFETY: By the safety requirements.
        ah_attr: unsafe { ah_to_raw(device, &attr.ah_attr, hop) },
        // SAFETY: By the safety requirements.
        alt_ah_attr: unsafe { ah_to_raw(device, &attr.alt_ah_attr, NextHop::NONE) },
        pkey_index: attr.pkey_index,
        alt_pkey_index: attr.alt_pkey_index,
        max_rd_atomic: attr.max_rd_atomic,
        max_dest_rd_atomic: attr.max_dest_rd_atomic,
        min_rnr_timer: attr.min_rnr_timer,
        port_num: u32::from(attr.port_num),
        timeout: attr.timeout,
        retry_cnt: attr.retry_cnt,
        rnr_retry: attr.rnr_retry,
        alt_port_num: u32::from(attr.alt_port_num),
        alt_timeout: attr.alt_timeout,
        ..pin_init::zeroed()
    }
}

/// Sets the attributes that the mask of `attr` names in those of a consumer, and leaves the others
/// alone.
///
/// # Safety
///
/// The requirements of [`ah_to_raw`].
pub(crate) unsafe fn set_named(
    raw: &mut bindings::ib_qp_attr,
    device: *mut bindings::ib_device,
    attr: &UverbsQpAttr,
    hop: NextHop,
) {
    // SAFETY: By the safety requirements.
    let known = unsafe { to_raw(device, attr, hop) };
    macro_rules! set {
        ($($name:ident: $($field:ident),+;)*) => {$(
            if attr.qp_attr_mask & qp_attr_mask::$name != 0 {
                $(raw.$field = known.$field;)+
            }
        )*};
    }
    set! {
        ACCESS_FLAGS: qp_access_flags;
        PKEY_INDEX: pkey_index;
        PORT: port_num;
        QKEY: qkey;
        AV: ah_attr;
        PATH_MTU: path_mtu;
        TIMEOUT: timeout;
        RETRY_CNT: retry_cnt;
        RNR_RETRY: rnr_retry;
        RQ_PSN: rq_psn;
        MAX_QP_RD_ATOMIC: max_rd_atomic;
        ALT_PATH: alt_ah_attr, alt_pkey_index, alt_port_num, alt_timeout;
        MIN_RNR_TIMER: min_rnr_timer;
        SQ_PSN: sq_psn;
        MAX_DEST_RD_ATOMIC: max_dest_rd_atomic;
        PATH_MIG_STATE: path_mig_state;
        DEST_QPN: dest_qp_num;
    }
    // As in C, this one is set for RTR even if the mask does not name it.
    if attr.qp_state == QpState::Rtr as u32 {
        raw.rq_psn = known.rq_psn;
    }
}
