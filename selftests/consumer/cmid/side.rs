// SPDX-License-Identifier: GPL-2.0

//! One end of a conversation: its events, and its actions.

use super::{
    act,
    call_site::CallSite,
    ground::Ground,
    states::{self, Situation},
};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        cm_id::{self, PortSpace, QpType},
        event::{ConnParam, Event, EventType},
        owner::{self, Handler, Owner, Verdict},
        qp_attr::QpState,
    },
};
use core::ops::Deref;
use kernel::{
    new_condvar, new_spinlock,
    prelude::*,
    sync::{
        atomic::{Atomic, Relaxed},
        Arc, CondVar, CondVarTimeoutResult, SpinLock,
    },
    time::{delay::fsleep, msecs_to_jiffies, Delta, Jiffies, Msecs},
};

/// The identifier of a side.
pub(crate) type Id = cm_id::CmId<Side>;
/// The identifier of a side, with the lock of its handler.
pub(crate) type LockedId<'a> = cm_id::LockedId<'a, Side>;
/// An action in a callback.
pub(crate) type Act = fn(&Arc<Side>, &LockedId<'_>, EventType) -> Verdict;

pub(super) type Sides = KVec<Arc<Side>>;

/// The most events that a side is told of.
const EVENTS: usize = 16;
/// Longer than the connection manager tries.
const PATIENCE: Msecs = 120_000;

pub(crate) const REQ_DATA: usize = 56;
pub(crate) const REP_DATA: usize = 196;
pub(crate) const REJ_DATA: usize = 148;
const SIDR_REQ_DATA: usize = 180;
pub(crate) const SIDR_REP_DATA: usize = 136;

/// The private data of a side.
const SAID: &[u8; 5] = b"said\0";

pub(crate) fn sleep_ms(ms: i64) {
    fsleep(Delta::from_millis(ms));
}

/// The events that a side was told of, and the state of its callbacks.
struct EventLog {
    events: [(EventType, i32); EVENTS],
    count: usize,
    seen: usize,
    last: Event,
    /// The last data.
    data: [u8; 256],
    inside: u32,
    gone: bool,
}

struct Plan {
    /// True if all functions are called in each callback.
    calls: bool,
    /// The action in the callback of this event.
    act: Option<(EventType, Act)>,
    /// The side that a request is for.
    child: Option<Arc<Side>>,
    /// The side that it ends in its callback.
    other: Option<Arc<Side>>,
}

/// One end of a conversation.
#[pin_data]
pub(crate) struct Side {
    pub(crate) ground: Arc<Ground>,
    qpn: Atomic<u32>,
    active: Atomic<bool>,
    #[pin]
    owner: SpinLock<Option<Arc<Owner<Side>>>>,
    #[pin]
    plan: SpinLock<Plan>,
    #[pin]
    log: SpinLock<EventLog>,
    #[pin]
    wait: CondVar,
}

/// The largest amount of private data in an event: the device passes on as much.
fn data_len(id: &Id, event: &Event) -> usize {
    let is_datagram = id.qp_type() == QpType::UD;

    // As much as was said, not as much as could be.
    if id.is_iwarp() {
        return event.private_data().len();
    }
    match event.kind {
        EventType::CONNECT_REQUEST if is_datagram => SIDR_REQ_DATA,
        EventType::CONNECT_REQUEST => REQ_DATA,
        EventType::CONNECT_RESPONSE => REP_DATA,
        EventType::REJECTED => REJ_DATA,
        _ => 0,
    }
}

/// Returns the situation of an identifier when it is told of an event.
fn situation_of(id: &Id, event: EventType) -> Situation {
    if id.qp_type() == QpType::UD {
        return Situation::Any;
    }
    match event {
        EventType::ADDR_RESOLVED => Situation::Resolved,
        EventType::ADDR_ERROR => Situation::Bound,
        EventType::ROUTE_RESOLVED => Situation::RouteResolved,
        EventType::CONNECT_REQUEST => Situation::ReqRcvd,
        EventType::CONNECT_RESPONSE => Situation::Response,
        EventType::ESTABLISHED => Situation::Established,
        EventType::DISCONNECTED => Situation::Disconnecting,
        EventType::TIMEWAIT_EXIT => Situation::Disconnected,
        EventType::REJECTED => Situation::Rejected,
        EventType::UNREACHABLE => Situation::Unreachable,
        _ => Situation::Any,
    }
}

impl Handler for Side {
    fn event(this: &Arc<Self>, id: &LockedId<'_>, event: &Event) -> Verdict {
        this.called(id, event)
    }

    fn request(this: &Arc<Self>, request: &mut owner::Request<'_, Self>, event: &Event) -> Verdict {
        check!(!request.is_of_listener());
        check!(!this.is_gone());
        let child = this.plan.lock().child.clone();
        // Nobody waits for it, or it is a copy that was late: the end that had the first has gone.
        let Some(child) = child.filter(|child| child.owner().is_none()) else {
            return Verdict::END;
        };
        match request.adopt(child.clone()) {
            Ok((owner, id)) => {
                *child.owner.lock() = Some(owner);
                child.called(&id, event)
            }
            Err(e) => {
                wrong!("a request is not adopted: {:?}", e);
                Verdict::END
            }
        }
    }
}

fn end_other(side: &Arc<Side>, _id: &LockedId<'_>, _event: EventType) -> Verdict {
    let other = side.plan.lock().other.take();
    if let Some(other) = other {
        other.end();
    }
    Verdict::KEEP
}

impl Side {
    /// A side without an identifier.
    fn new(ground: &Arc<Ground>) -> Result<Arc<Self>> {
        let side = Arc::pin_init(
            pin_init!(Self {
                ground: ground.clone(),
                qpn: Atomic::new(ground.next_qpn()),
                active: Atomic::new(false),
                owner <- new_spinlock!(None),
                plan <- new_spinlock!(Plan {
                    calls: false,
                    act: None,
                    child: None,
                    other: None,
                }),
                log <- new_spinlock!(EventLog {
                    events: [(EventType::default(), 0); EVENTS],
                    count: 0,
                    seen: 0,
                    last: Event::default(),
                    data: [0; 256],
                    inside: 0,
                    gone: false,
                }),
                wait <- new_condvar!(),
            }),
            GFP_KERNEL,
        )?;
        ground.keep(&side)?;
        Ok(side)
    }

    fn owner(&self) -> Option<Arc<Owner<Self>>> {
        self.owner.lock().clone()
    }

    /// A callback.
    fn called(self: &Arc<Self>, id: &LockedId<'_>, event: &Event) -> Verdict {
        check!(self.owner().is_some_and(|owner| owner.has(id)));
        check!(!self.is_gone());
        let said = event.private_data();
        let len = data_len(id, event);
        let inside = {
            let mut log = self.log.lock();
            log.inside = log.inside.wrapping_add(1);
            log.last = *event;
            if len > 0 {
                log.data
                    .iter_mut()
                    .zip(said)
                    .for_each(|(to, from)| *to = *from);
            }
            log.inside
        };
        is!(inside, 1);
        self.wait.notify_all();
        if len > 0 {
            is!(said.len(), len);
        }
        let calls = self.plan.lock().calls;
        if calls {
            states::calls_inside(self, id, situation_of(id, event.kind));
        }
        let act = self.plan.lock().act;
        let verdict = match act {
            Some((on, act)) if on == event.kind => act(self, id, event.kind),
            _ => Verdict::KEEP,
        };
        // A callback that comes in at the same time is seen.
        fsleep(Delta::from_micros(500));
        let is_noted = {
            let log = &mut *self.log.lock();
            log.gone |= verdict != Verdict::KEEP;
            let slot = log.events.get_mut(log.count);
            let is_noted = slot.is_some();
            if let Some(slot) = slot {
                *slot = (event.kind, event.status);
                log.count = log.count.wrapping_add(1);
            }
            log.inside = log.inside.wrapping_sub(1);
            is_noted
        };
        self.wait.notify_all();
        check!(is_noted);
        verdict
    }

    /// Does something with the identifier, from outside.
    pub(crate) fn see<R>(&self, f: impl FnOnce(&Id) -> R) -> Option<R> {
        self.owner()?.with(f)
    }

    /// Calls a function for the identifier, from outside.
    pub(crate) fn call(&self, f: impl FnOnce(&Id) -> Result) -> Result {
        self.see(f).unwrap_or(Err(ENOENT))
    }

    /// Calls a function for the identifier, from outside, with the lock of the handler.
    pub(crate) fn call_locked(&self, f: impl FnOnce(&LockedId<'_>) -> Result) -> Result {
        self.call(|id| f(&id.lock_handler()))
    }

    /// Checks a property of the identifier.
    pub(crate) fn holds(&self, f: impl FnOnce(&Id) -> bool) -> bool {
        self.see(f).unwrap_or(false)
    }

    /// Checks the queue pair's state.
    #[track_caller]
    pub(crate) fn qp_is(&self, state: QpState) -> bool {
        let site = CallSite::of_caller();
        self.see(|id| act::qp_is(id, state, site))
            .unwrap_or_else(|| {
                wrong!("{site:?}: no identifier");
                false
            })
    }

    /// Ends the identifier, which may have ended in a callback.
    pub(crate) fn end(&self) {
        let Some(owner) = self.owner() else {
            return;
        };
        if self.is_gone() {
            // The callback that ended it may not have come to its own end.
            while self.inside() > 0 || !owner.is_gone() {
                fsleep(Delta::from_micros(100));
            }
            return;
        }
        owner.destroy();
        self.log.lock().gone = true;
    }

    /// Destroys the queue pair that the end of the identifier in a callback has left. Returns whether
    /// there was one.
    pub(crate) fn destroy_left_qp(&self) -> bool {
        self.end();
        self.owner().is_some_and(|owner| owner.destroy_left_qp())
    }

    /// Forgets whom it knows.
    pub(super) fn forget(&self) {
        // Not dropped with the lock.
        let owner = self.owner.lock().take();
        let plan = &mut *self.plan.lock();
        let others = (plan.child.take(), plan.other.take());
        drop((owner, others));
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.log.lock().gone
    }

    /// Returns the number of callbacks that run.
    pub(crate) fn inside(&self) -> u32 {
        self.log.lock().inside
    }

    /// Returns the number of events that it has been told of.
    pub(crate) fn told(&self) -> usize {
        self.log.lock().count
    }

    pub(crate) fn last(&self) -> Event {
        self.log.lock().last
    }

    pub(crate) fn data(&self) -> [u8; 256] {
        self.log.lock().data
    }

    /// Returns true if the last data begin like this.
    pub(crate) fn has_heard(&self, said: &[u8]) -> bool {
        self.data().starts_with(said)
    }

    pub(crate) fn qpn(&self) -> u32 {
        self.qpn.load(Relaxed)
    }

    pub(crate) fn set_qpn(&self, qpn: u32) {
        self.qpn.store(qpn, Relaxed);
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Relaxed)
    }

    pub(crate) fn set_active(&self) {
        self.active.store(true, Relaxed);
    }

    /// From now on all functions are called in each callback.
    pub(crate) fn calls_in_callbacks(&self) {
        self.plan.lock().calls = true;
    }

    /// Says what is to be done in the callback of an event.
    pub(crate) fn on(&self, event: EventType, act: Act) {
        self.plan.lock().act = Some((event, act));
    }

    /// Says which side the requests are for.
    pub(crate) fn serve(&self, child: &Arc<Side>) {
        self.plan.lock().child = Some(child.clone());
    }

    /// Says that another side is to end in the callback of an event.
    pub(crate) fn ends_on(&self, event: EventType, other: &Arc<Side>) {
        self.plan.lock().other = Some(other.clone());
        self.on(event, end_other);
    }

    /// Returns its parameters when it connects or accepts.
    pub(crate) fn param(&self) -> ConnParam<'static> {
        let active = self.is_active();
        ConnParam {
            private_data: Some(SAID),
            responder_resources: if active { 3 } else { 4 },
            initiator_depth: if active { 5 } else { 2 },
            flow_control: 1,
            retry_count: 6,
            rnr_retry_count: 7,
            qp_num: self.qpn(),
            ..ConnParam::default()
        }
    }

    /// Waits until something holds; for no longer than this.
    fn wait_for(&self, ms: Msecs, mut holds: impl FnMut(&EventLog) -> bool) -> bool {
        let mut left: Jiffies = msecs_to_jiffies(ms);
        let mut log = self.log.lock();
        while !holds(&log) {
            // Not as a task that hangs.
            left = match self.wait.wait_interruptible_timeout(&mut log, left) {
                CondVarTimeoutResult::Woken { jiffies } => jiffies,
                _ => return holds(&log),
            };
        }
        true
    }

    fn is_told(&self) -> bool {
        self.wait_for(PATIENCE, |log| log.count > log.seen)
    }

    /// Waits until a callback runs; for no longer than this.
    pub(crate) fn wait_inside(&self, ms: Msecs) -> bool {
        self.wait_for(ms, |log| log.inside > 0)
    }

    /// Checks that the next event of a side is this one, which another message may have overtaken.
    pub(crate) fn comes(&self, event: EventType) -> bool {
        if !self.is_told() {
            return false;
        }
        let log = self.log.lock();
        log.events
            .get(log.seen)
            .is_some_and(|(next, _)| *next == event)
    }

    /// The next event of a side is this one.
    #[track_caller]
    pub(crate) fn expect(&self, event: EventType) -> bool {
        self.expect_status(event, 0)
    }

    /// The next event of a side is this one, with this status.
    #[track_caller]
    pub(crate) fn expect_status(&self, event: EventType, status: i32) -> bool {
        if !self.is_told() {
            wrong!("no event {}", event.0);
            return false;
        }
        let next = {
            let log = &mut *self.log.lock();
            let next = log.events.get(log.seen).copied();
            log.seen = log.seen.wrapping_add(1);
            next
        };
        let (next, next_status) = next.unwrap_or_default();
        if next != event || next_status != status {
            let (next, event) = (next.0, event.0);
            wrong!("event {next}, status {next_status}, not {event}, {status}");
            return false;
        }
        true
    }

    /// Nothing has happened that was not expected.
    #[track_caller]
    pub(crate) fn is_quiet(&self) -> bool {
        sleep_ms(20);
        let (count, seen) = {
            let log = self.log.lock();
            (log.count, log.seen)
        };
        is!(count, seen)
    }
}

/// A side that a test has, and that is ended when dropped.
pub(crate) struct Part(Arc<Side>);

impl Part {
    /// A side without an identifier. None if there is none, which has been said.
    #[track_caller]
    pub(crate) fn new(ground: &Arc<Ground>) -> Option<Self> {
        let site = CallSite::of_caller();
        Side::new(ground)
            .map_err(|e| wrong!("{site:?}: no side: {e:?}"))
            .ok()
            .map(Self)
    }

    /// A side with an identifier. None if there is none, which has been said.
    #[track_caller]
    pub(crate) fn create(ground: &Arc<Ground>, ps: PortSpace, qp_type: QpType) -> Option<Self> {
        Self::create_by(ground, |side| Owner::create(side, ps, qp_type))
    }

    /// Creates a side like [`Self::create`], as for a program.
    #[track_caller]
    pub(crate) fn create_user(
        ground: &Arc<Ground>,
        ps: PortSpace,
        qp_type: QpType,
    ) -> Option<Self> {
        Self::create_by(ground, |side| Owner::create_user(side, ps, qp_type))
    }

    #[track_caller]
    fn create_by(
        ground: &Arc<Ground>,
        create: impl FnOnce(Arc<Side>) -> Result<Arc<Owner<Side>>>,
    ) -> Option<Self> {
        let site = CallSite::of_caller();
        let side = Self::new(ground)?;
        let owner = create(side.0.clone())
            .map_err(|e| wrong!("{site:?}: no identifier: {e:?}"))
            .ok()?;
        *side.owner.lock() = Some(owner);
        Some(side)
    }
}

impl Deref for Part {
    type Target = Arc<Side>;

    fn deref(&self) -> &Arc<Side> {
        &self.0
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.end();
    }
}
