// SPDX-License-Identifier: GPL-2.0

//! Messages that the CM did not send.
//!
//! C header: [`include/rdma/ib_mad.h`](srctree/include/rdma/ib_mad.h)

use super::{device::Device, path::Path, qp_attr::PeerLink};
use crate::bindings;
use core::ptr::{self, NonNull};
use kernel::{
    error::{from_err_ptr, to_result},
    prelude::*,
    sync::atomic::{Acquire, Atomic, Relaxed, Release},
    time::{delay::fsleep, Delta},
};

/// The size of a management datagram.
pub(crate) const LEN: usize = bindings::IB_MGMT_MAD_SIZE as usize;

/// The queue pair that management datagrams are sent to.
const GSI_QPN: u32 = 1;

/// The time that the device has for sending one.
const PATIENCE_MS: u32 = 20_000;

/// A management datagram.
pub(crate) type Mad = [u8; LEN];

/// The progress of a message: it is sent, or an error has ended it.
const PENDING: i32 = 0;
const SENT: i32 = 1;
const FAILED: i32 = 2;

/// Called when a message is sent.
///
/// # Safety
///
/// To be called by the RDMA core only, for an agent whose context is the progress of the message.
unsafe extern "C" fn on_sent(
    agent: *mut bindings::ib_mad_agent,
    wc: *mut bindings::ib_mad_send_wc,
) {
    // SAFETY: The agent and the completion are valid during the call. The agent is unregistered,
    // which waits for the call, before the progress goes.
    unsafe {
        let progress: &Atomic<i32> = &*(*agent).context.cast();
        let is_sent = (*wc).status == bindings::ib_wc_status_IB_WC_SUCCESS;
        progress.store(if is_sent { SENT } else { FAILED }, Release);
    }
}

/// An agent that only sends.
struct Agent(NonNull<bindings::ib_mad_agent>);

impl Agent {
    /// Registers an agent that tells `progress` of what is sent.
    ///
    /// # Safety
    ///
    /// `progress` must stay until the agent is dropped.
    unsafe fn new(device: &Device, port: u32, progress: &Atomic<i32>) -> Result<Self> {
        // SAFETY: The device is there. There are no unsolicited messages for the agent, and no answers,
        // so that it needs no handler for those.
        let agent = from_err_ptr(unsafe {
            bindings::ib_register_mad_agent(
                device.as_raw(),
                port,
                bindings::ib_qp_type_IB_QPT_GSI,
                ptr::null_mut(),
                0,
                Some(on_sent),
                None,
                ptr::from_ref(progress).cast_mut().cast(),
                0,
            )
        })?;
        Ok(Self(NonNull::new(agent).ok_or(ENOMEM)?))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // SAFETY: It is registered. This waits for its messages.
        unsafe { bindings::ib_unregister_mad_agent(self.0.as_ptr()) };
    }
}

/// An address handle of a peer without a global header.
struct Ah(NonNull<bindings::ib_ah>);

impl Ah {
    fn new(agent: &Agent, port: u32, path: &Path) -> Result<Self> {
        let PeerLink::Lid { dlid, .. } = path.link.peer() else {
            return Err(EINVAL);
        };
        let mut attr = bindings::rdma_ah_attr {
            port_num: port,
            ..Default::default()
        };
        match u16::try_from(dlid) {
            Ok(dlid) => {
                attr.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_IB;
                attr.__bindgen_anon_1.ib.dlid = dlid;
            }
            Err(_) => {
                attr.type_ = bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_OPA;
                attr.__bindgen_anon_1.opa.dlid = dlid;
            }
        }
        // SAFETY: The agent has a queue pair of its port, with a domain. The attributes are valid.
        let ah = from_err_ptr(unsafe {
            let pd = (*(*agent.0.as_ptr()).qp).pd;
            bindings::rdma_create_ah(pd, &raw mut attr, 0)
        })?;
        Ok(Self(NonNull::new(ah).ok_or(ENOMEM)?))
    }
}

impl Drop for Ah {
    fn drop(&mut self) {
        // SAFETY: It is ours, and no message uses it.
        unsafe { bindings::rdma_destroy_ah_user(self.0.as_ptr(), 0, ptr::null_mut()) };
    }
}

/// Sends a message along a path of InfiniBand or Omni-Path, and waits until it has left.
pub(crate) fn send(device: &Device, port: u32, path: &Path, mad: &Mad) -> Result {
    let progress = Atomic::new(PENDING);
    // SAFETY: The progress is dropped after the agent.
    let agent = unsafe { Agent::new(device, port, &progress) }?;
    let ah = Ah::new(&agent, port, path)?;
    // SAFETY: The agent is registered.
    let buf = from_err_ptr(unsafe {
        bindings::ib_create_send_mad(
            agent.0.as_ptr(),
            GSI_QPN,
            0,
            0,
            bindings::IB_MGMT_MAD_HDR as c_int,
            bindings::IB_MGMT_MAD_DATA as c_int,
            bindings::GFP_KERNEL,
            bindings::IB_MGMT_BASE_VERSION as u8,
        )
    })?;
    // SAFETY: The buffer is ours until it is posted, and has room for one message.
    let posted = to_result(unsafe {
        (*buf).ah = ah.0.as_ptr();
        (*buf).mad.cast::<Mad>().write_unaligned(*mad);
        bindings::ib_post_send_mad(buf, ptr::null_mut())
    });
    let mut left = PATIENCE_MS;
    while posted.is_ok() && progress.load(Acquire) == PENDING && left > 0 {
        fsleep(Delta::from_millis(1));
        left = left.saturating_sub(1);
    }
    if posted.is_ok() && progress.load(Relaxed) == PENDING {
        // The message ends with the agent, and the handle goes after that.
        drop(agent);
        return Err(ETIMEDOUT);
    }
    // SAFETY: It was not posted, or was handed back.
    unsafe { bindings::ib_free_send_mad(buf) };
    posted?;
    if progress.load(Relaxed) == SENT {
        Ok(())
    } else {
        Err(EIO)
    }
}
