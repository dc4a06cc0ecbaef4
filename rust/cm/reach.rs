// SPDX-License-Identifier: GPL-2.0

//! Finding out how the sender of a message is reached, without ever blocking.
//!
//! On InfiniBand the sender's LID is all there is to know. Elsewhere a neighbour that is known is used at
//! once. Others are asked for in the background, a bounded number of them at a time, and no more than half
//! of those for one sender, so that senders that nobody can reach cost those that can be reached nothing.

use super::{held::Held, port::Port};
use crate::{
    cma::device::CmDevice,
    core::Core,
    ib::{
        addr::{self, AddrDone, Query},
        ah::{Ah, AhSpec},
        dev_addr::DevAddr,
        device::DeviceRef,
        gid::GidAttr,
        mad::{Agent, ReceivedMad},
    },
    kext::delay,
};
use cmproto::{
    addr::{Gid, SockAddr},
    origin::Origin,
    path::{FromLink, Path},
    ucma::query::Protocol,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, Mutex, UniqueArc,
    },
};

/// How long a neighbour may take to answer, in milliseconds.
const SEARCH_TIMEOUT_MS: u32 = 1000;

/// The sender of a message, as its answers see it.
pub(super) struct Sender {
    device: DeviceRef,
    /// The GID of this host that the message was for; none on InfiniBand if the message did not say.
    pub(super) local: Option<GidAttr>,
    /// What the link says of the message, on InfiniBand.
    pub(super) link: Option<FromLink>,
    /// The way back, but for the hop limit.
    back: Path,
    /// Index of the P_Key that the message carried.
    pub(super) pkey_index: u16,
}

impl Sender {
    /// The sender of `mad`.
    ///
    /// Fails if the message was for a GID that the device does not have.
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

    /// Answers go by `path` from now on, on InfiniBand, where the sender has named it.
    pub(super) fn answer_by(&mut self, path: &Path) {
        if self.link.is_some() {
            self.back = *path;
        }
    }

    /// Creates an address handle for the sender, who was found at `link`.
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

/// What neighbours are asked for; each has a budget of its own.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// A connection request.
    Request,
    /// An answer that no connection gives.
    Answer,
}

impl Purpose {
    /// How many neighbours are asked for at a time.
    const fn budget(self) -> u32 {
        match self {
            Purpose::Request => 64,
            Purpose::Answer => 16,
        }
    }

    /// How many of those may be one sender.
    const fn share(self) -> u32 {
        self.budget() / 2
    }
}

/// Number of slots in which senders are told apart: those of [`Origin::bucket`].
const SLOTS: usize = 256;

/// How many searches for one purpose are under way.
struct Count {
    all: Atomic<u32>,
    by_sender: [Atomic<u32>; SLOTS],
}

impl Count {
    fn new() -> Self {
        Count {
            all: Atomic::new(0),
            by_sender: [const { Atomic::new(0) }; SLOTS],
        }
    }

    /// Those for the senders of a bucket ([`Origin::bucket`]).
    fn of(&self, bucket: u8) -> &Atomic<u32> {
        self.by_sender.get(usize::from(bucket)).unwrap_or(&self.all)
    }
}

/// How many searches are under way.
pub(crate) struct Searches {
    key: [u64; 2],
    requests: Count,
    answers: Count,
}

impl Searches {
    /// No search is under way. The random numbers tell the senders apart ([`Origin::bucket`]).
    pub(crate) fn new(key: [u64; 2]) -> Self {
        Searches {
            key,
            requests: Count::new(),
            answers: Count::new(),
        }
    }

    fn count(&self, purpose: Purpose) -> &Count {
        match purpose {
            Purpose::Request => &self.requests,
            Purpose::Answer => &self.answers,
        }
    }
}

/// One search of a budget.
pub(super) struct Place {
    core: Arc<Core>,
    purpose: Purpose,
    bucket: u8,
}

impl Place {
    fn take(core: &Arc<Core>, purpose: Purpose, sender: &Gid) -> Option<Self> {
        // Counted first, so that the drop is right whether or not there was room.
        let count = core.searches.count(purpose);
        let before = count.all.fetch_add(1, Relaxed);
        let bucket = Origin::of_gid(*sender).bucket(core.searches.key);
        let own = count.of(bucket).fetch_add(1, Relaxed);
        let place = Place {
            core: core.clone(),
            purpose,
            bucket,
        };
        (before < purpose.budget() && own < purpose.share()).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let count = self.core.searches.count(self.purpose);
        count.of(self.bucket).fetch_sub(1, Relaxed);
        count.all.fetch_sub(1, Relaxed);
    }
}

/// Something that waits for an answer to reach its sender.
pub(super) trait Waiting: Send + Sync + 'static {
    /// What it is.
    const PURPOSE: Purpose;

    /// Whom it waits to reach.
    fn sender(&self) -> &Sender;

    /// The request that waits, if it is one: it ends with its listener.
    fn held(&self) -> Option<&Held> {
        None
    }

    /// The sender's address is known, or cannot be found. No lock is held.
    fn reached(&self, link: Result<&DevAddr>);
}

/// How far a search is.
enum Progress {
    Starting,
    Running(#[expect(dead_code, reason = "dropping it ends the query")] Query),
    Done,
}

/// A search under way; it owns what waits for it.
#[pin_data]
struct Search<T> {
    place: Place,
    waiting: T,
    #[pin]
    progress: Mutex<Progress>,
}

/// How a sender can be reached.
pub(super) enum Way {
    /// Its address is known.
    Known(DevAddr),
    /// It has to be asked for, and there is room to do that.
    Unknown(Place),
}

impl Sender {
    /// Finds out how the sender can be reached. Allocates nothing that lasts.
    ///
    /// Fails with `EBUSY` if it would have to be asked for and there is no room, or if nothing leads to
    /// it.
    pub(super) fn way(&self, core: &Arc<Core>, purpose: Purpose) -> Result<Way> {
        if let Some(link) = &self.link {
            let hop_limit = if link.has_grh { u8::MAX } else { 0 };
            return Ok(Way::Known(DevAddr::by_lid(hop_limit)));
        }
        let local = self.local.as_ref().ok_or(EINVAL)?;
        let peer = &self.back.dgid;
        match addr::lookup_gid(local, peer)? {
            Some(found) => Ok(Way::Known(found)),
            None => Place::take(core, purpose, peer)
                .map(Way::Unknown)
                .ok_or(EBUSY),
        }
    }
}

/// Calls `waiting` when its sender's address is known: now, if it is known, else later.
pub(super) fn reach<T: Waiting>(core: &Arc<Core>, waiting: T) {
    match waiting.sender().way(core, T::PURPOSE) {
        Ok(Way::Known(found)) => waiting.reached(Ok(&found)),
        Ok(Way::Unknown(place)) => search(place, waiting),
        Err(error) => waiting.reached(Err(error)),
    }
}

/// Has the sender's address asked for, and calls `waiting` when it is known.
pub(super) fn search<T: Waiting>(place: Place, waiting: T) {
    // Before `waiting` is given away: who waits must hear that there is no memory.
    let Ok(memory) = UniqueArc::<Search<T>>::new_uninit(GFP_KERNEL) else {
        return waiting.reached(Err(ENOMEM));
    };
    let search = memory.pin_init_with(pin_init!(Search {
        place,
        waiting,
        progress <- new_mutex!(Progress::Starting, "rdma_cm_search"),
    }));
    match search {
        Ok(search) => Arc::from(search).start(),
        Err(impossible) => match impossible {},
    }
}

impl<T: Waiting> Search<T> {
    fn start(self: Arc<Self>) {
        let unreached = &self.place.core.unreached;
        match self
            .waiting
            .held()
            .map_or(Ok(true), |held| unreached.enter(held))
        {
            Ok(true) => {}
            // Its listener has ended, and the request with it.
            Ok(false) => return,
            Err(error) => return self.waiting.reached(Err(error)),
        }
        let sender = self.waiting.sender();
        let asked = sender.local.as_ref().ok_or(EINVAL).and_then(|local| {
            let (resolver, peer) = (&self.place.core.resolver, &sender.back.dgid);
            resolver.resolve_gid(local, peer, SEARCH_TIMEOUT_MS, self.clone())
        });
        match asked {
            Ok(query) => {
                delay::point();
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

    /// Tells who waits that the search is over, unless that has ended with its listener.
    fn over(&self, link: Result<&DevAddr>) {
        let unreached = &self.place.core.unreached;
        if self.waiting.held().is_none_or(|held| unreached.leave(held)) {
            self.waiting.reached(link);
        }
    }
}

impl<T: Waiting> AddrDone for Search<T> {
    fn done(self: Arc<Self>, status: Result, _src: SockAddr, found: &DevAddr) {
        let before = core::mem::replace(&mut *self.progress.lock(), Progress::Done);
        drop(before);
        delay::point();
        self.over(status.map(|()| found));
    }
}
