// SPDX-License-Identifier: GPL-2.0

//! A port of a device, which sends and receives the messages of the InfiniBand CM.

use crate::{
    ib::{
        counters::{Counts, PortCounters},
        device::DeviceRef,
        gid::GidType,
        mad::{Agent, AgentRegistration},
        port::CmCapability,
        port_events::PortEvents,
    },
    kext::error::ResultExt,
};
use cmproto::{
    cm::{Tunable, Tuning},
    node::AnswerBudget,
    origin::Origin,
    reject::Reason,
    time::Instant,
    ucma::query::Protocol,
    wire::{Attribute, Rej},
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex,
    },
};

/// The resources of a port that is open for messages of the InfiniBand CM.
struct Link {
    agent: AgentRegistration,
    _events: Option<Pin<KBox<PortEvents>>>,
    _capability: CmCapability,
}

/// The state of a port that its lock protects.
struct Inner {
    answers: AnswerBudget,
    link: Option<Link>,
    counters: Option<PortCounters>,
}

/// A port of a device.
///
/// Lock order: the lock is of the class "port", the innermost. It is held only to copy a reference,
/// to swap the state, or to take an answer from the rate limit.
#[pin_data]
pub(crate) struct Port {
    /// The port number, from 1.
    pub(crate) num: u32,
    /// The protocol of the port's link layer and transport.
    pub(crate) protocol: Protocol,
    /// GUID of the node that the port belongs to (IBTA 12.7.9).
    pub(crate) guid: u64,
    /// Time that the device takes to acknowledge a packet, as IBA time code.
    pub(crate) ca_ack_delay: u8,
    /// Default GID type of connections whose route does not determine it.
    default_gid_type: Atomic<u32>,
    /// Default type of service of paths whose consumer has set none.
    default_tos: Atomic<u32>,
    /// Values that the administrator has set, in the order of [`Tunable::ALL`].
    tuning: [Atomic<u32>; Tunable::ALL.len()],
    /// Counters that the administrator sees in sysfs.
    pub(crate) counts: Arc<Counts>,
    /// Set while messages are handled.
    is_open: Atomic<bool>,
    #[pin]
    inner: Mutex<Inner>,
}

impl Port {
    /// Creates a port that is not open yet.
    pub(crate) fn new(device: &DeviceRef, num: u32) -> Result<Arc<Self>> {
        let counts = Counts::new()?;
        // Only the InfiniBand CM uses these counters.
        let counters = if device.cap_ib_cm(num) {
            Some(PortCounters::register(device, num, &counts)?)
        } else {
            None
        };
        let protocol = if device.cap_iw_cm(num) {
            Protocol::Iwarp
        } else if device.protocol_roce(num) {
            Protocol::Roce
        } else {
            Protocol::Ib
        };
        let guid = u64::from_be_bytes(device.node_guid());
        let ca_ack_delay = device.ca_ack_delay();
        let default_gid_type = Atomic::new(device.default_gid_type(num) as u32);
        let inner = Inner {
            answers: AnswerBudget::new(),
            link: None,
            counters,
        };
        Arc::pin_init(
            pin_init!(Port {
                num,
                protocol,
                guid,
                ca_ack_delay,
                default_gid_type,
                default_tos: Atomic::new(0),
                tuning: Tunable::ALL.map(|tunable| Atomic::new(tunable.default_value())),
                counts,
                is_open: Atomic::new(false),
                inner <- new_mutex!(inner, "rdma_cm_port"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the default GID type of connections whose route does not determine it.
    pub(crate) fn default_gid_type(&self) -> GidType {
        GidType::from_raw(self.default_gid_type.load(Relaxed))
    }

    /// Sets the default GID type of new connections.
    pub(crate) fn set_default_gid_type(&self, gid_type: GidType) {
        self.default_gid_type.store(gid_type as u32, Relaxed);
    }

    /// Returns the default type of service of paths whose consumer has set none.
    pub(crate) fn default_tos(&self) -> u8 {
        u8::try_from(self.default_tos.load(Relaxed)).unwrap_or(0)
    }

    /// Sets the default type of service of new paths.
    pub(crate) fn set_default_tos(&self, tos: u8) {
        self.default_tos.store(u32::from(tos), Relaxed);
    }

    /// Returns all values that the administrator has set.
    pub(crate) fn tuning(&self) -> Tuning {
        let mut tuning = Tuning::NONE;
        for (tunable, value) in Tunable::ALL.into_iter().zip(&self.tuning) {
            // The value was checked when it was stored.
            let _ = tuning.set(tunable, value.load(Relaxed));
        }
        tuning
    }

    /// Returns one value that the administrator has set.
    pub(crate) fn tuned(&self, tunable: Tunable) -> u32 {
        let slot = self.tuning.get(tunable as usize);
        slot.map_or(tunable.default_value(), |value| value.load(Relaxed))
    }

    /// Sets a value, which is used from now on.
    ///
    /// Fails with `EINVAL` if the value is too large.
    pub(crate) fn tune(&self, tunable: Tunable, value: u32) -> Result {
        let value = tunable.check(value).kernel()?;
        if let Some(slot) = self.tuning.get(tunable as usize) {
            slot.store(value, Relaxed);
        }
        Ok(())
    }

    /// Opens the port, whose messages `agent` receives. `events` is kept until it is closed.
    ///
    /// Fails with an error of the device if it does not take the capability.
    pub(crate) fn open(
        &self,
        device: &DeviceRef,
        agent: AgentRegistration,
        events: Option<Pin<KBox<PortEvents>>>,
    ) -> Result {
        let capability = CmCapability::set(device, self.num)?;
        self.inner.lock().link = Some(Link {
            agent,
            _events: events,
            _capability: capability,
        });
        self.is_open.store(true, Relaxed);
        Ok(())
    }

    /// Returns whether the port is open. Messages that come before and after that are dropped.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Relaxed)
    }

    /// Closes the port. Waits for the messages that are being handled or sent.
    pub(crate) fn close(&self) {
        self.is_open.store(false, Relaxed);
        let (link, counters) = {
            let mut inner = self.inner.lock();
            (inner.link.take(), inner.counters.take())
        };
        drop(link);
        drop(counters);
    }

    /// Returns whether an answer without a connection may be sent to `to` at `now`.
    pub(crate) fn may_answer(&self, attribute: Attribute, to: Origin, now: Instant) -> bool {
        self.inner.lock().answers.may_answer(attribute, to, now)
    }

    /// Counts a REJ from `from` that a connection has accepted, and takes note of it for
    /// [`may_answer`](Self::may_answer).
    #[cold]
    pub(crate) fn note_rej(&self, rej: &Rej<'_>, from: Origin, now: Instant) {
        self.counts.received_rej(Reason(rej.reason));
        self.inner.lock().answers.note_rej(rej, from, now);
    }

    /// Returns the MAD agent that messages are sent with, if the port is open.
    pub(crate) fn agent(&self) -> Option<Arc<Agent>> {
        let inner = self.inner.lock();
        Some(inner.link.as_ref()?.agent.agent().clone())
    }
}
