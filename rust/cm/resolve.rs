// SPDX-License-Identifier: GPL-2.0

//! Address resolution of the sender of a message, which never blocks.
//!
//! On InfiniBand the LID of the sender suffices. On RoCE, a neighbour that is known is used at
//! once. Others are resolved in the background, only so many at a time.

use super::held::Held;
use crate::{
    core::Core,
    device::port::Port,
    endpoint::CmDevice,
    ib::{
        addr::{self, AddrDone, Query, Started},
        ah::{Ah, AhSpec},
        dev_addr::DevAddr,
        device::DeviceRef,
        gid::GidAttr,
        mad::{Agent, ReceivedMad},
    },
    kext::delay,
    table::resolve_budget::{Purpose, ResolvePermit},
};
use cmproto::{
    addr::SockAddr,
    path::{FromLink, Path},
    ucma::query::Protocol,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{Arc, Mutex, UniqueArc},
};

/// Timeout of the resolution of a neighbour, in milliseconds.
const RESOLVE_TIMEOUT_MS: u32 = 1000;

/// The sender of a message, as needed to answer it.
pub(super) struct Sender {
    device: DeviceRef,
    /// The GID of this host that the message was sent to. `None` on InfiniBand if there was no GRH.
    pub(super) local: Option<GidAttr>,
    /// Link-layer information of the message, on InfiniBand only.
    pub(super) link: Option<FromLink>,
    /// The path to the sender, except for the hop limit.
    back: Path,
    /// P_Key index of the message.
    pub(super) pkey_index: u16,
}

impl Sender {
    /// Returns the sender of `mad`.
    ///
    /// Fails if the message was sent to a GID that the device does not have.
    pub(super) fn of(port: &Port, device: &CmDevice, mad: &ReceivedMad) -> Result<Self> {
        let source = mad.source();
        let is_roce = port.protocol == Protocol::Roce;
        let link = (!is_roce).then(|| source.link());
        let local = if is_roce || source.has_grh {
            Some(GidAttr::for_received(&device.device, source)?)
        } else {
            None
        };
        Ok(Sender {
            device: device.device.clone(),
            local,
            link,
            back: Path {
                sgid: source.dgid,
                dgid: source.sgid,
                flow_label: source.flow_label,
                traffic_class: source.traffic_class,
                sl: source.sl,
                slid: link.map_or(0, |link| u16::from(link.path_bits)),
                dlid: link.map_or(0, |link| link.lid),
                ..Path::default()
            },
            pkey_index: source.pkey_index,
        })
    }

    /// Sets the path for answers to `path`, which the sender has named. It is used on InfiniBand
    /// only.
    pub(super) fn answer_by(&mut self, path: &Path) {
        if self.link.is_some() {
            self.back = *path;
        }
    }

    /// Creates an address handle for the sender, which was found at `link`.
    pub(super) fn address(&self, agent: &Arc<Agent>, link: &DevAddr) -> Result<Ah> {
        let path = Path {
            hop_limit: link.hop_limit,
            ..self.back
        };
        let dmac = self.link.is_none().then(|| link.dst_mac());
        let port = agent.port_num();
        let spec = AhSpec::along(&path, &self.device, port, self.local.as_ref(), dmac);
        Ah::new(agent, &self.device, &spec)
    }
}

/// A request or an answer that waits until the address of its sender is resolved.
pub(super) trait Waiting: Send + Sync + 'static {
    /// The purpose of the resolution.
    const PURPOSE: Purpose;

    /// Returns the sender whose address is resolved.
    fn sender(&self) -> &Sender;

    /// Returns the request, if it is one, which ends with its listener.
    fn held(&self) -> Option<&Held> {
        None
    }

    /// Continues when the sender's address is known or cannot be resolved. No lock is held.
    fn resolved(&self, link: Result<&DevAddr>);
}

/// The progress of a resolution.
enum Progress {
    Starting,
    Running(#[expect(dead_code, reason = "dropping it ends the query")] Query),
    Done,
}

/// A running resolution, which owns the request or answer that waits for it.
#[pin_data]
struct Resolve<T> {
    core: Arc<Core>,
    _permit: ResolvePermit,
    waiting: T,
    #[pin]
    progress: Mutex<Progress>,
}

/// The neighbour through which a sender is reached, as far as it is known without waiting.
pub(super) enum Neighbour {
    /// The link-layer address is known.
    Resolved(DevAddr),
    /// The link-layer address has to be resolved, and the limits allow it.
    Unresolved(ResolvePermit),
}

impl Sender {
    /// Looks up the address of the sender. Allocates nothing that lasts.
    ///
    /// Fails with `EBUSY` if the address has to be resolved and a limit is reached, and with other
    /// errors if there is no route to the sender.
    pub(super) fn neighbour(&self, core: &Arc<Core>, purpose: Purpose) -> Result<Neighbour> {
        if let Some(link) = &self.link {
            let hop_limit = if link.has_grh { u8::MAX } else { 0 };
            return Ok(Neighbour::Resolved(DevAddr::by_lid(hop_limit)));
        }
        let local = self.local.as_ref().ok_or(EINVAL)?;
        match addr::lookup_gid(local, &self.back.dgid)? {
            Some(found) => Ok(Neighbour::Resolved(found)),
            None => ResolvePermit::take(&core.resolve_budget, purpose, &self.back.dgid)
                .map(Neighbour::Unresolved)
                .ok_or(EBUSY),
        }
    }
}

/// Calls [`Waiting::resolved`] when the address of the sender is known: at once if it is known
/// already.
pub(super) fn resolve<T: Waiting>(core: &Arc<Core>, waiting: T) {
    match waiting.sender().neighbour(core, T::PURPOSE) {
        Ok(Neighbour::Resolved(found)) => waiting.resolved(Ok(&found)),
        Ok(Neighbour::Unresolved(permit)) => resolve_later(core, permit, waiting),
        Err(error) => waiting.resolved(Err(error)),
    }
}

/// Starts to resolve the address of the sender, and calls [`Waiting::resolved`] when that is done.
pub(super) fn resolve_later<T: Waiting>(core: &Arc<Core>, permit: ResolvePermit, waiting: T) {
    // The memory is allocated before `waiting` is moved, so that `waiting` can be told if there is
    // none.
    let Ok(memory) = UniqueArc::<Resolve<T>>::new_uninit(GFP_KERNEL) else {
        return waiting.resolved(Err(ENOMEM));
    };
    let resolve = memory.pin_init_with(pin_init!(Resolve {
        core: core.clone(),
        _permit: permit,
        waiting,
        progress <- new_mutex!(Progress::Starting, "rdma_cm_resolve"),
    }));
    match resolve {
        Ok(resolve) => Arc::from(resolve).start(),
        Err(impossible) => match impossible {},
    }
}

impl<T: Waiting> Resolve<T> {
    fn start(self: Arc<Self>) {
        match self.waiting.held().map_or(Ok(true), Held::await_sender) {
            Ok(true) => {}
            // The listener has ended, and has ended the request.
            Ok(false) => return,
            Err(error) => return self.waiting.resolved(Err(error)),
        }
        let sender = self.waiting.sender();
        let asked = sender.local.as_ref().ok_or(EINVAL).and_then(|local| {
            let (resolver, peer) = (&self.core.resolver, &sender.back.dgid);
            resolver.resolve_gid(local, peer, RESOLVE_TIMEOUT_MS, self.clone())
        });
        match asked {
            Ok(Started::Known(_, found)) => {
                *self.progress.lock() = Progress::Done;
                self.over(Ok(&found));
            }
            Ok(Started::Asked(query)) => {
                let mut progress = self.progress.lock();
                if matches!(*progress, Progress::Starting) {
                    *progress = Progress::Running(query);
                }
            }
            Err(error) => {
                *self.progress.lock() = Progress::Done;
                self.over(Err(error));
            }
        }
    }

    /// Reports the result of the resolution, unless the request has ended with its listener.
    fn over(&self, link: Result<&DevAddr>) {
        if self.waiting.held().is_none_or(Held::take_back) {
            self.waiting.resolved(link);
        }
    }
}

impl<T: Waiting> AddrDone for Resolve<T> {
    fn done(self: Arc<Self>, status: Result, _src: SockAddr, found: &DevAddr) {
        let before = core::mem::replace(&mut *self.progress.lock(), Progress::Done);
        drop(before);
        delay::point();
        self.over(status.map(|()| found));
    }
}
