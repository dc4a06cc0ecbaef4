// SPDX-License-Identifier: GPL-2.0

//! Management datagrams: sending and receiving those of the IB CM on QP1.
//!
//! C header: [`include/rdma/ib_mad.h`](srctree/include/rdma/ib_mad.h)

use super::{
    ah::Ah,
    device::DeviceRef,
    gid::NetworkType,
    send_buffer::{KeptBuffers, SendBuffer},
    ways::Ways,
};
use crate::{
    bindings,
    kext::{
        delay,
        gate::{Gate, Guard},
        reclaim::NoIo,
    },
};
use cmproto::{addr::Gid, path::FromLink, wire};
use core::ptr::{self, NonNull};
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::{
        atomic::{ordering::Acquire, ordering::Relaxed, ordering::Release, Atomic},
        Arc,
    },
};

/// Length of a MAD (IBTA 13.4.2).
pub(crate) const MAD_LEN: usize = wire::MAD_LEN;
/// The management class of the CM (IBTA 13.4.4).
const CLASS_CM: u8 = 7;
/// Version of the messages of that class.
const CLASS_VERSION: u8 = 2;
/// The only method that the CM uses (IBTA 13.4.5).
const METHOD_SEND: u32 = 3;
/// Length of a GRH (IBTA 8.3), and of what takes its place on RoCE.
const GRH_LEN: usize = wire::GRH_LEN;
/// The protocol above IP on RoCE v2.
const IPPROTO_UDP: u8 = 17;

/// How the sending of a message ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendStatus {
    /// It is on its way.
    Success,
    /// It was thrown away, because the agent or the QP is going.
    Flushed,
    /// It could not be sent.
    Error,
}

/// What to do with messages.
///
/// The calls come in process context, from the poller of the port's completion queue: as long as one
/// runs, nothing else arrives at the port, neither here nor at other agents. They may allocate, which waits
/// for no input or output, and take mutexes, but should never wait for the network. None comes any more when the drop of the
/// [`AgentRegistration`] returns, which therefore must not happen in one.
pub(crate) trait MadHandler: Send + Sync + 'static {
    /// A message has come. It can be kept, also beyond the agent, and is freed when dropped.
    fn receive(&self, agent: &Arc<Agent>, mad: ReceivedMad);

    /// Something has come that is too short for a message.
    fn truncated(&self);

    /// A message with the attribute `attr_id` was sent, or not. Must not allocate.
    fn sent(&self, attr_id: u16, status: SendStatus);
}

/// Where the memory of a message to be sent comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// It is allocated.
    New,
    /// It is what the agent keeps, for what storage may depend on: nothing is waited for, and nothing
    /// allocated but for the first message with a P_Key, or if very many are on their way.
    Kept,
}

/// Sends messages at one port.
///
/// Outlives its registration if it must; then nothing can be done with it any more.
///
/// # Invariants
///
/// `agent` is null, or registered as long as somebody is inside `gate`.
#[pin_data]
pub(crate) struct Agent {
    agent: Atomic<*mut bindings::ib_mad_agent>,
    #[pin]
    gate: Gate,
    port: u32,
    /// How many address handles there are for its messages.
    handles: Atomic<u32>,
    /// Those that several connections can use.
    #[pin]
    ways: Ways,
    #[pin]
    buffers: KeptBuffers,
}

impl Agent {
    /// How many address handles there are for the agent's messages.
    pub(super) fn handles(&self) -> u32 {
        self.handles.load(Relaxed)
    }

    /// The ways for which there are address handles.
    pub(super) fn ways(&self) -> &Ways {
        &self.ways
    }

    /// There is one more.
    pub(super) fn count_handle(&self) {
        self.handles.fetch_add(1, Relaxed);
    }

    /// There is one less.
    pub(super) fn uncount_handle(&self) {
        self.handles.fetch_sub(1, Relaxed);
    }

    /// The number of the port.
    pub(crate) fn port_num(&self) -> u32 {
        self.port
    }

    /// The upper half of the transaction ids of messages that start a transaction.
    ///
    /// 0 when the agent is not registered.
    pub(crate) fn hi_tid(&self) -> u32 {
        self.enter().map_or(0, |entered| entered.hi_tid())
    }

    /// Keeps the agent registered, or fails with [`ENODEV`].
    pub(super) fn enter(&self) -> Result<Entered<'_>> {
        let guard = self.gate.enter().ok_or(ENODEV)?;
        let agent = NonNull::new(self.agent.load(Acquire)).ok_or(ENODEV)?;
        // INVARIANT: We are inside.
        Ok(Entered {
            agent,
            _guard: guard,
        })
    }

    /// Sends `mad`; otherwise as [`Agent::send_with`].
    pub(crate) fn send(&self, ah: &Ah, pkey_index: u16, mad: &[u8; MAD_LEN]) -> Result {
        self.send_with(ah, pkey_index, Memory::New, |buffer| {
            *buffer = *mad;
            Ok(())
        })
    }

    /// Sends what `write` writes to a MAD that is all zeros, to the QP1 at the other end of `ah`, with the P_Key at `pkey_index`
    /// of the port.
    ///
    /// The Q_Key is that of QP1, 0x80010000. Nothing is retransmitted and no response is expected:
    /// the transport is unreliable. May sleep.
    ///
    /// Fails with [`ENODEV`] if the agent is not registered, [`EINVAL`] if `ah` is not one of the
    /// agent's, [`ENOMEM`], or with what `write` or the driver says; only then [`MadHandler::sent`] is
    /// not called.
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
        let entered = self.enter()?;
        delay::point();
        let mut buffer = match memory {
            Memory::New => SendBuffer::new(&entered, pkey_index)?,
            Memory::Kept => self.buffers.take(&entered, pkey_index)?,
        };
        let sent = match write(buffer.mad()) {
            Ok(()) => buffer.post(ah),
            Err(error) => Err((error, buffer)),
        };
        sent.map_err(|(error, buffer)| {
            self.buffers.give_back(buffer);
            error
        })
    }
}

/// Proof that an agent is registered.
///
/// # Invariants
///
/// `agent` is registered as long as `self` exists.
pub(super) struct Entered<'a> {
    agent: NonNull<bindings::ib_mad_agent>,
    _guard: Guard<'a>,
}

impl Entered<'_> {
    /// The agent.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_mad_agent {
        self.agent.as_ptr()
    }

    /// The device of the agent.
    pub(super) fn device(&self) -> *mut bindings::ib_device {
        // SAFETY: The agent is registered by the type invariant.
        unsafe { (*self.agent.as_ptr()).device }
    }

    /// The protection domain of the agent's QP.
    pub(super) fn pd(&self) -> *mut bindings::ib_pd {
        // SAFETY: The agent is registered by the type invariant, and so is its QP.
        unsafe { (*(*self.agent.as_ptr()).qp).pd }
    }

    fn hi_tid(&self) -> u32 {
        // SAFETY: The agent is registered by the type invariant.
        unsafe { (*self.agent.as_ptr()).hi_tid }
    }
}

/// What the callbacks of an agent need.
struct Context {
    agent: Arc<Agent>,
    handler: Arc<dyn MadHandler>,
}

/// A registered agent; unregistered when dropped, which waits for messages under way and for
/// callbacks.
///
/// # Invariants
///
/// The agent in `context.agent` is registered with the address of `context` as its context.
pub(crate) struct AgentRegistration {
    context: KBox<Context>,
    _device: DeviceRef,
}

impl AgentRegistration {
    /// Registers for all messages of the CM that come to `port`. They may come before this returns.
    /// May sleep.
    ///
    /// Fails with `EPROTONOSUPPORT` if the port has no IB CM, and [`EINVAL`] if somebody else is
    /// registered for the same messages.
    pub(crate) fn new(device: &DeviceRef, port: u32, handler: Arc<dyn MadHandler>) -> Result<Self> {
        if !device.is_port_valid(port) {
            return Err(EINVAL);
        }
        let agent = Arc::pin_init(
            pin_init!(Agent {
                agent: Atomic::new(ptr::null_mut()),
                gate <- Gate::new(),
                port,
                handles: Atomic::new(0),
                ways <- Ways::new(),
                buffers <- KeptBuffers::new(),
            }),
            GFP_KERNEL,
        )?;
        let context = KBox::new(Context { agent, handler }, GFP_KERNEL)?;

        let mut request = bindings::ib_mad_reg_req {
            mgmt_class: CLASS_CM,
            mgmt_class_version: CLASS_VERSION,
            ..pin_init::zeroed()
        };
        if let Some(word) = request.method_mask.first_mut() {
            *word = 1 << METHOD_SEND;
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
        // INVARIANT: It is registered, until our drop has emptied the gate.
        context.agent.agent.store(raw, Release);
        Ok(Self {
            context,
            _device: device.clone(),
        })
    }

    /// The agent.
    pub(crate) fn agent(&self) -> &Arc<Agent> {
        &self.context.agent
    }
}

impl Drop for AgentRegistration {
    fn drop(&mut self) {
        let agent = &self.context.agent;
        agent.gate.close_and_wait();
        agent.buffers.close();
        // SAFETY: By the type invariant the agent is registered, and nobody is inside the gate to
        // use it. After this no callback uses the context any more.
        unsafe { bindings::ib_unregister_mad_agent(agent.agent.load(Relaxed)) };
    }
}

/// Gets the context of a callback.
///
/// # Safety
///
/// To be called in a callback of `agent`; the result must not be used after it.
unsafe fn context<'a>(agent: *mut bindings::ib_mad_agent) -> &'a Context {
    // SAFETY: An agent that calls back is registered, and so its context is what
    // `AgentRegistration::new` gave it, shared by all callbacks until the agent is unregistered.
    let context = unsafe { &*(*agent).context.cast::<Context>() };
    // The first message may come before `AgentRegistration::new` gets to this.
    if context.agent.agent.load(Relaxed).is_null() {
        // INVARIANT: An agent that calls back is registered.
        context.agent.agent.store(agent, Release);
    }
    context
}

/// Called when a message has been sent, or is given up.
///
/// # Safety
///
/// To be called by the MAD layer only, for agents of [`AgentRegistration::new`].
unsafe extern "C" fn send_handler(
    agent: *mut bindings::ib_mad_agent,
    wc: *mut bindings::ib_mad_send_wc,
) {
    // SAFETY: This is a callback.
    let context = unsafe { context(agent) };
    // SAFETY: The MAD layer passes a valid struct, and gives back a buffer that was posted.
    let (status, (mut buffer, ah)) = unsafe { ((*wc).status, SendBuffer::posted((*wc).send_buf)) };
    let attr_id = buffer.attr_id();
    context.agent.buffers.give_back(buffer);
    let status = match status {
        bindings::ib_wc_status_IB_WC_SUCCESS => SendStatus::Success,
        bindings::ib_wc_status_IB_WC_WR_FLUSH_ERR => SendStatus::Flushed,
        _ => SendStatus::Error,
    };
    context.handler.sent(attr_id, status);
    drop(ah);
}

/// Called when a message has come.
///
/// # Safety
///
/// To be called by the MAD layer only, for agents of [`AgentRegistration::new`].
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
    // SAFETY: The MAD layer hands over a message, and the agent is registered.
    let mad = unsafe { ReceivedMad::new(wc, agent) };
    match mad {
        Some(mad) => context.handler.receive(&context.agent, mad),
        None => context.handler.truncated(),
    }
}

/// Where a message came from, and how.
#[derive(Clone, Debug)]
pub(crate) struct MadSource {
    /// The port that it came to.
    pub(crate) port_num: u32,
    /// The GID of the sender; zero without a GRH.
    pub(crate) sgid: Gid,
    /// The GID that it was sent to; zero without a GRH.
    pub(crate) dgid: Gid,
    /// Whether there is a GRH; on RoCE there always should be.
    pub(crate) has_grh: bool,
    /// The kind of network header.
    pub(crate) network: NetworkType,
    /// Index of the P_Key that it carried.
    pub(crate) pkey_index: u16,
    /// The QP of the sender.
    pub(crate) src_qp: u32,
    /// The LID of the sender; means nothing on RoCE.
    pub(crate) slid: u32,
    /// Low bits of the LID that it was sent to.
    pub(crate) dlid_path_bits: u8,
    /// Service level.
    pub(crate) sl: u8,
    /// The VLAN that it came over, if any.
    pub(crate) vlan_id: Option<u16>,
    /// Flow label; 0 over IPv4, which has none.
    pub(crate) flow_label: u32,
    /// Traffic class, or type of service.
    pub(crate) traffic_class: u8,
    /// Hop limit, or time to live, as it arrived.
    pub(crate) hop_limit: u8,
}

/// A message that has come. Freed when dropped.
///
/// # Invariants
///
/// `wc` belongs to `self`; its buffer holds at least [`MAD_LEN`] bytes, all of them from the wire,
/// which nobody changes.
pub(crate) struct ReceivedMad {
    wc: NonNull<bindings::ib_mad_recv_wc>,
    source: MadSource,
}

// SAFETY: A message is plain memory, which any task may read and free.
unsafe impl Send for ReceivedMad {}

// SAFETY: Nothing changes a message.
unsafe impl Sync for ReceivedMad {}

impl ReceivedMad {
    /// Takes over a message; frees it if it is not a full MAD.
    ///
    /// # Safety
    ///
    /// `wc` must be valid, the caller gives it up, and `agent`, which it came to, is registered.
    unsafe fn new(
        wc: NonNull<bindings::ib_mad_recv_wc>,
        agent: *mut bindings::ib_mad_agent,
    ) -> Option<Self> {
        // SAFETY: The message is valid, and ours, and the completion is a part of it.
        let (len, byte_len) = unsafe { ((*wc.as_ptr()).mad_len, (*(*wc.as_ptr()).wc).byte_len) };
        // The first is what a MAD should have; only the completion knows what has come.
        if len < MAD_LEN as c_int || wire::check_length(byte_len as usize).is_err() {
            // SAFETY: As above.
            unsafe { bindings::ib_free_recv_mad(wc.as_ptr()) };
            return None;
        }
        // SAFETY: As above, and the completion and the GRH are parts of the message.
        let source = unsafe { MadSource::new(agent, &*wc.as_ptr()) };
        // INVARIANT: The caller gives the message up, and both lengths were checked.
        Some(Self { wc, source })
    }

    /// The message.
    pub(crate) fn bytes(&self) -> &[u8; MAD_LEN] {
        // SAFETY: By the type invariant there are that many bytes, constant as long as `self` lives.
        unsafe { &*self.wc.as_ref().recv_buf.__bindgen_anon_1.mad.cast() }
    }

    /// Where it came from.
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

impl MadSource {
    /// What the link says of a message that has come over InfiniBand.
    pub(crate) fn link(&self) -> FromLink {
        FromLink {
            // The upper half is for links of another kind.
            lid: u16::try_from(self.slid & 0xffff).unwrap_or(0),
            path_bits: self.dlid_path_bits,
            sl: self.sl,
            has_grh: self.has_grh,
        }
    }

    /// # Safety
    ///
    /// `agent` must be registered, and what `recv` points to be valid.
    unsafe fn new(agent: *mut bindings::ib_mad_agent, recv: &bindings::ib_mad_recv_wc) -> Self {
        // SAFETY: By the safety requirements.
        let (device, port, wc) =
            unsafe { ((*agent).device, u32::from((*agent).port_num), &*recv.wc) };
        let flags = wc.wc_flags as u32;
        let has_grh = flags & bindings::ib_wc_flags_IB_WC_GRH != 0;
        let mut this = Self {
            port_num: port,
            sgid: Gid::ZERO,
            dgid: Gid::ZERO,
            has_grh,
            network: NetworkType::Ib,
            pkey_index: wc.pkey_index,
            src_qp: wc.src_qp,
            slid: wc.slid,
            dlid_path_bits: wc.dlid_path_bits,
            sl: wc.sl,
            vlan_id: (flags & bindings::ib_wc_flags_IB_WC_WITH_VLAN != 0).then_some(wc.vlan_id),
            flow_label: 0,
            traffic_class: 0,
            hop_limit: 0,
        };
        if !has_grh {
            return this;
        }
        // SAFETY: There is a GRH, or what takes its place.
        let grh = unsafe { &*recv.recv_buf.grh };
        // SAFETY: The device is registered and has the port.
        if unsafe { bindings::rust_rdma_cap_eth_ah(device, port) } {
            this.network = if flags & bindings::ib_wc_flags_IB_WC_WITH_NETWORK_HDR_TYPE != 0 {
                NetworkType::from_raw(u32::from(wc.network_hdr_type))
            } else {
                guess_network(grh)
            };
        }
        this.read_grh(grh);
        this
    }

    /// Reads what `network` says there is.
    fn read_grh(&mut self, grh: &bindings::ib_grh) {
        if self.network == NetworkType::Ipv4 {
            // SAFETY: A GRH is that many bytes without padding, and any bytes are bytes.
            let bytes = unsafe { &*ptr::from_ref(grh).cast::<[u8; GRH_LEN]>() };
            // The IPv4 header stands in the last 20 bytes; the first 20 are undefined.
            let [.., _, tos, _, _, _, _, _, _, ttl, _, _, _, s0, s1, s2, s3, d0, d1, d2, d3] =
                *bytes;
            self.traffic_class = tos;
            self.hop_limit = ttl;
            self.sgid = Gid::from_v4([s0, s1, s2, s3]);
            self.dgid = Gid::from_v4([d0, d1, d2, d3]);
            return;
        }
        let word = u32::from_be(grh.version_tclass_flow);
        let [_, _, _, class] = (word >> 20).to_be_bytes();
        self.flow_label = word & 0xf_ffff;
        self.traffic_class = class;
        self.hop_limit = grh.hop_limit;
        // SAFETY: Any bytes are a GID.
        let (sgid, dgid) = unsafe { (Gid(grh.sgid.raw), Gid(grh.dgid.raw)) };
        self.sgid = sgid;
        self.dgid = dgid;
    }
}

/// Tells the network header of a RoCE message when the device does not.
fn guess_network(grh: &bindings::ib_grh) -> NetworkType {
    // SAFETY: The union of network headers is as long as a GRH.
    let version = unsafe { bindings::ib_get_rdma_header_version(ptr::from_ref(grh).cast()) };
    if version == 4 {
        NetworkType::Ipv4
    } else if grh.next_hdr == IPPROTO_UDP {
        NetworkType::Ipv6
    } else {
        NetworkType::RoceV1
    }
}
