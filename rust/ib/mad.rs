// SPDX-License-Identifier: GPL-2.0

//! Management datagrams (MADs): sending and receiving CM messages on QP1.
//!
//! C header: [`include/rdma/ib_mad.h`](srctree/include/rdma/ib_mad.h)

use super::{
    ah::Ah,
    ah_cache::AhCache,
    device::DeviceRef,
    mad_source::MadSource,
    send_buffer::{SendBuffer, SendBufferPool},
};
use crate::{
    bindings,
    kext::{
        delay,
        percpu_use::{PerCpuUse, PerCpuUseCount},
        reclaim::NoIo,
    },
};
use atomics::Published;
use cmproto::wire;
use core::ptr::{self, NonNull};
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc,
    },
};

/// The length of a MAD in bytes (IBTA 13.4.2).
pub(crate) const MAD_LEN: usize = wire::MAD_LEN;
/// The result of sending a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendStatus {
    /// The message was sent.
    Success,
    /// The message was discarded, because the agent or the QP is being destroyed.
    Flushed,
    /// The message could not be sent.
    Error,
}

/// A receiver of messages and of send completions.
///
/// The methods are called in process context, from the poller of the port's completion queue: while
/// one runs, nothing else is received at the port, neither by this agent nor by others. They may
/// allocate, which starts no I/O, and take mutexes, but should not wait for the network. After
/// the drop of the [`AgentRegistration`] they are not called any more; the drop waits for a running
/// call, so the registration must not be dropped in one of them.
pub(crate) trait MadHandler: Send + Sync + 'static {
    /// Handles a received message, which may be kept, even beyond the agent.
    fn receive(&self, agent: &Arc<Agent>, mad: ReceivedMad);

    /// Handles a message that is shorter than a MAD.
    fn truncated(&self);

    /// Handles a send completion of a message with the attribute id `attr_id`. Must not allocate.
    fn sent(&self, attr_id: u16, status: SendStatus);
}

/// The source of the memory for a message to be sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// A buffer that other messages have used is posted again, or one is allocated.
    Shared,
    /// A buffer of the agent's pool is used.
    ///
    /// For messages that storage may depend on: waits for no memory, and allocates only for the
    /// first message with a P_Key, or if very many messages are in flight.
    Pool,
}

/// A MAD agent, which sends messages at one port.
///
/// It may outlive its registration; then all methods that need the registration fail.
///
/// # Invariants
///
/// `agent` is registered for as long as `users` counts somebody.
#[pin_data]
pub(crate) struct Agent {
    agent: Published<bindings::ib_mad_agent>,
    #[pin]
    users: PerCpuUseCount,
    port: u32,
    /// The upper half of the transaction ids of messages that start a transaction, or 0 if the
    /// agent was not registered yet.
    hi_tid: Atomic<u32>,
    /// The number of address handles for the messages of the agent.
    handles: Atomic<u32>,
    /// The address handles that connections can share.
    #[pin]
    ah_cache: AhCache,
    #[pin]
    buffers: SendBufferPool,
}

impl Agent {
    /// Returns the number of address handles for the messages of the agent.
    pub(super) fn handles(&self) -> u32 {
        self.handles.load(Relaxed)
    }

    /// Returns the cache of shared address handles.
    pub(super) fn ah_cache(&self) -> &AhCache {
        &self.ah_cache
    }

    /// Counts a new address handle.
    pub(super) fn count_handle(&self) {
        self.handles.fetch_add(1, Relaxed);
    }

    /// Uncounts an address handle that was destroyed.
    pub(super) fn uncount_handle(&self) {
        self.handles.fetch_sub(1, Relaxed);
    }

    /// Returns the port number.
    pub(crate) fn port_num(&self) -> u32 {
        self.port
    }

    /// Publishes the agent of the MAD layer.
    ///
    /// # Safety
    ///
    /// `agent` must be registered for this agent, until the drop of the registration has closed the
    /// count of users and waited for all of them.
    unsafe fn publish(&self, agent: NonNull<bindings::ib_mad_agent>) {
        // SAFETY: The agent is registered, and the number does not change.
        let hi_tid = unsafe { (*agent.as_ptr()).hi_tid };
        self.hi_tid.store(hi_tid, Relaxed);
        // INVARIANT: By the safety requirements.
        self.agent.publish(agent);
    }

    /// Returns the transaction id of an exchange that the communication id `comm_id` starts.
    pub(crate) fn transaction_id(&self, comm_id: u32) -> u64 {
        (u64::from(self.hi_tid.load(Relaxed)) << 32) | u64::from(comm_id)
    }

    /// Keeps the agent registered. Fails with [`ENODEV`] if it is not registered (any more).
    pub(super) fn registered(&self) -> Result<Registered<'_>> {
        let in_use = self.users.try_get().ok_or(ENODEV)?;
        let agent = self.agent.get().ok_or(ENODEV)?;
        // INVARIANT: We are counted.
        Ok(Registered {
            agent,
            _use: in_use,
        })
    }

    /// Sends a copy of `mad`; otherwise like [`Agent::send_with`].
    pub(crate) fn send(&self, ah: &Ah, pkey_index: u16, mad: &[u8; MAD_LEN]) -> Result {
        self.send_with(ah, pkey_index, Memory::Shared, |buffer| {
            *buffer = *mad;
            Ok(())
        })
    }

    /// Sends the message that `write` writes to a zeroed MAD.
    ///
    /// The destination is QP1 at the port that `ah` leads to, with the P_Key at `pkey_index` of the
    /// local port and the Q_Key 0x80010000 of QP1. The message is sent once, and no response is
    /// expected: retries are up to the caller. May sleep.
    ///
    /// Fails with [`ENODEV`] if the agent is not registered, [`EINVAL`] if `ah` belongs to another
    /// agent, [`ENOMEM`], or with an error of `write` or of the driver. [`MadHandler::sent`] is
    /// called exactly if this succeeds.
    pub(crate) fn send_with(
        &self,
        ah: &Ah,
        pkey_index: u16,
        memory: Memory,
        write: impl FnOnce(&mut [u8; MAD_LEN]) -> Result,
    ) -> Result {
        if !ptr::eq(&**ah.agent(), self) {
            return Err(EINVAL);
        }
        let ah = ah.for_message()?;
        let registered = self.registered()?;
        delay::point();
        delay::at("agent-used");
        let mut buffer = match memory {
            Memory::Shared => self.buffers.share(&registered, pkey_index)?,
            Memory::Pool => self.buffers.take(&registered, pkey_index)?,
        };
        let sent = match write(buffer.mad()) {
            Ok(()) => buffer.post(ah),
            Err(error) => Err((error, buffer)),
        };
        sent.map_err(|(error, buffer)| {
            self.buffers.put(buffer);
            error
        })
    }
}

/// A guard that keeps an agent registered.
///
/// # Invariants
///
/// `agent` is registered for as long as `self` exists.
pub(super) struct Registered<'a> {
    agent: NonNull<bindings::ib_mad_agent>,
    _use: PerCpuUse<'a>,
}

impl Registered<'_> {
    /// Returns the C object.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_mad_agent {
        self.agent.as_ptr()
    }

    /// Returns the device of the agent.
    pub(super) fn device(&self) -> *mut bindings::ib_device {
        // SAFETY: The agent is registered by the type invariant.
        unsafe { (*self.agent.as_ptr()).device }
    }

    /// Returns the protection domain of the agent's QP.
    pub(super) fn pd(&self) -> *mut bindings::ib_pd {
        // SAFETY: The agent is registered by the type invariant, and so is its QP.
        unsafe { (*(*self.agent.as_ptr()).qp).pd }
    }
}

/// The data that the callbacks of an agent use.
struct Context {
    agent: Arc<Agent>,
    handler: Arc<dyn MadHandler>,
}

/// A registered MAD agent; dropping it unregisters the agent.
///
/// The drop waits for messages in flight and for callbacks.
///
/// # Invariants
///
/// The agent in `context.agent` is registered with the address of `context` as its context.
pub(crate) struct AgentRegistration {
    context: KBox<Context>,
    _device: DeviceRef,
}

impl AgentRegistration {
    /// Registers for all CM messages that are received at `port`. May sleep.
    ///
    /// Messages may be received before this returns. Fails with `EPROTONOSUPPORT` if the port has
    /// no IB CM, and [`EINVAL`] if another agent is registered for the same messages.
    pub(crate) fn new(device: &DeviceRef, port: u32, handler: Arc<dyn MadHandler>) -> Result<Self> {
        if !device.is_port_valid(port) {
            return Err(EINVAL);
        }
        let buffers = SendBufferPool::new()?;
        let agent = Arc::pin_init(
            try_pin_init!(Agent {
                agent: Published::new(),
                users <- PerCpuUseCount::new(),
                port,
                hi_tid: Atomic::new(0),
                handles: Atomic::new(0),
                ah_cache <- AhCache::new(),
                buffers <- buffers,
            }? Error),
            GFP_KERNEL,
        )?;
        let context = KBox::new(Context { agent, handler }, GFP_KERNEL)?;

        let mut request = bindings::ib_mad_reg_req {
            mgmt_class: wire::MGMT_CLASS,
            mgmt_class_version: wire::CLASS_VERSION,
            ..pin_init::zeroed()
        };
        if let Some(word) = request.method_mask.first_mut() {
            *word = 1 << wire::METHOD_SEND;
        }
        // SAFETY: The device is registered and has the port, the request is copied, and the context
        // stays where it is until the agent is unregistered.
        let raw = from_err_ptr(unsafe {
            bindings::ib_register_mad_agent(
                device.as_raw(),
                port,
                bindings::ib_qp_type_IB_QPT_GSI,
                &raw mut request,
                0,
                Some(send_handler),
                Some(recv_handler),
                ptr::from_ref(&*context).cast_mut().cast(),
                0,
            )
        })?;
        let raw = NonNull::new(raw).ok_or(EINVAL)?;
        // SAFETY: The agent is registered until the drop has closed the count of users and waited
        // for all of them.
        unsafe { context.agent.publish(raw) };
        Ok(Self {
            context,
            _device: device.clone(),
        })
    }

    /// Returns the agent.
    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.context.agent
    }
}

impl Drop for AgentRegistration {
    fn drop(&mut self) {
        let agent = &self.context.agent;
        agent.users.close_and_wait();
        agent.buffers.close();
        if let Some(raw) = agent.agent.get() {
            // SAFETY: By the type invariant the agent is registered, and there is no user to
            // use it. After this no callback uses the context any more.
            unsafe { bindings::ib_unregister_mad_agent(raw.as_ptr()) };
        }
    }
}

/// Returns the context of a callback.
///
/// # Safety
///
/// To be called in a callback of `agent`; the result must not be used after the callback.
unsafe fn context<'a>(agent: *mut bindings::ib_mad_agent) -> &'a Context {
    // SAFETY: An agent that calls back is registered, and so its context is what
    // `AgentRegistration::new` gave it, shared by all callbacks until the agent is unregistered.
    let context = unsafe { &*(*agent).context.cast::<Context>() };
    // The first message may be received before `AgentRegistration::new` stores the pointer.
    if let (None, Some(agent)) = (context.agent.agent.get(), NonNull::new(agent)) {
        // SAFETY: An agent that calls back is registered, and by `AgentRegistration::new`.
        unsafe { context.agent.publish(agent) };
    }
    context
}

/// Handles a send completion; called by the MAD layer.
///
/// # Safety
///
/// Only the MAD layer may call this, for agents of [`AgentRegistration::new`].
unsafe extern "C" fn send_handler(
    agent: *mut bindings::ib_mad_agent,
    wc: *mut bindings::ib_mad_send_wc,
) {
    // SAFETY: This is a callback.
    let context = unsafe { context(agent) };
    // SAFETY: The MAD layer passes a valid struct, and returns a buffer that was posted.
    let (status, (mut buffer, ah)) = unsafe { ((*wc).status, SendBuffer::posted((*wc).send_buf)) };
    let attr_id = buffer.attr_id();
    context.agent.buffers.put(buffer);
    let status = match status {
        bindings::ib_wc_status_IB_WC_SUCCESS => SendStatus::Success,
        bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => SendStatus::Flushed,
        _ => SendStatus::Error,
    };
    context.handler.sent(attr_id, status);
    drop(ah);
}

/// Handles a received message; called by the MAD layer.
///
/// # Safety
///
/// Only the MAD layer may call this, for agents of [`AgentRegistration::new`].
unsafe extern "C" fn recv_handler(
    agent: *mut bindings::ib_mad_agent,
    _request: *mut bindings::ib_mad_send_buf,
    wc: *mut bindings::ib_mad_recv_wc,
) {
    let Some(wc) = NonNull::new(wc) else {
        return;
    };
    let _scope = NoIo::begin();
    // SAFETY: This is a callback.
    let context = unsafe { context(agent) };
    // SAFETY: The MAD layer transfers a message, and the agent is registered.
    let mad = unsafe { ReceivedMad::new(wc, agent) };
    match mad {
        Some(mad) => context.handler.receive(&context.agent, mad),
        None => context.handler.truncated(),
    }
}

/// A received message, which is freed when dropped.
///
/// # Invariants
///
/// `wc` is owned by `self`; its buffer holds at least [`MAD_LEN`] bytes, all of them from the wire,
/// which do not change.
pub(crate) struct ReceivedMad {
    wc: NonNull<bindings::ib_mad_recv_wc>,
    source: MadSource,
}

// SAFETY: A message is plain memory, which any task may read and free.
unsafe impl Send for ReceivedMad {}

// SAFETY: A message is not changed after it was received.
unsafe impl Sync for ReceivedMad {}

impl ReceivedMad {
    /// Takes over a message, and frees it if it is shorter than a MAD.
    ///
    /// # Safety
    ///
    /// `wc` must be valid and is given up by the caller. `agent`, which has received it, must be
    /// registered.
    unsafe fn new(
        wc: NonNull<bindings::ib_mad_recv_wc>,
        agent: *mut bindings::ib_mad_agent,
    ) -> Option<Self> {
        // SAFETY: The message is valid and ours, and the completion is a part of it.
        let (len, byte_len) = unsafe { ((*wc.as_ptr()).mad_len, (*(*wc.as_ptr()).wc).byte_len) };
        // `mad_len` is the length that a MAD should have; only the completion has the received
        // length.
        if len < MAD_LEN as c_int || wire::check_length(byte_len as usize).is_err() {
            // SAFETY: The message is valid and ours, and is not used after this.
            unsafe { bindings::ib_free_recv_mad(wc.as_ptr()) };
            return None;
        }
        // SAFETY: The agent is registered by the safety requirements. The completion and the GRH
        // are parts of the message, which is valid.
        let source = unsafe { MadSource::new(agent, &*wc.as_ptr()) };
        // INVARIANT: The caller gives up the message, and both lengths were checked.
        Some(Self { wc, source })
    }

    /// Returns the bytes of the message.
    pub(crate) fn bytes(&self) -> &[u8; MAD_LEN] {
        // SAFETY: By the type invariant there are that many bytes, constant as long as `self`
        // lives.
        unsafe { &*self.wc.as_ref().recv_buf.__bindgen_anon_1.mad.cast() }
    }

    /// Returns the source of the message.
    pub(crate) fn source(&self) -> &MadSource {
        &self.source
    }
}

impl Drop for ReceivedMad {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the message is ours.
        unsafe { bindings::ib_free_recv_mad(self.wc.as_ptr()) };
    }
}
