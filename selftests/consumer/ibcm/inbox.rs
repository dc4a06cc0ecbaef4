// SPDX-License-Identifier: GPL-2.0

//! The events that one end of a conversation is told of, and its actions in the callbacks.

use super::world::{next_qpn, World};
use crate::{
    harness::{check, is, wrong},
    rdma::{
        ib_cm_event::{Event, EventType},
        ib_cm_id::{Handler, IbCmId, IbCmIdRef, Identity, NewId, Verdict},
    },
};
use kernel::{
    new_condvar, new_mutex,
    prelude::*,
    sync::{
        atomic::{Atomic, Full, Relaxed},
        Arc, CondVar, CondVarTimeoutResult, Mutex, SetOnce,
    },
    time::{delay::fsleep, msecs_to_jiffies, Delta},
};

/// The most events that one end of a conversation is told of.
const EVENTS: usize = 16;

/// The time that an event is waited for.
const PATIENCE_MS: u32 = 20_000;

/// An action in the callback of an event. The identifier is that of the inbox.
pub(crate) type Act = fn(&Inbox, &IbCmIdRef, &Event) -> Verdict;

/// The last data that an end was log.
pub(crate) type Data = [u8; 256];

/// The events that an end was told of, and the state of its identifier.
struct EventLog {
    events: [EventType; EVENTS],
    count: usize,
    seen: usize,
    last: Option<Event>,
    data: Data,
    /// There is no identifier any more, or it ends.
    gone: bool,
    id: Option<Identity>,
    act: Option<(EventType, Act)>,
    /// The identifier of an active end, until the test takes it.
    kept: Option<IbCmId<Inbox>>,
}

/// One end of a conversation, as callbacks see it.
#[pin_data]
pub(crate) struct Inbox {
    pub(crate) world: Arc<World>,
    pub(crate) service: u64,
    pub(crate) qpn: u32,
    pub(crate) psn: u32,
    /// The end that a request is for.
    child: Option<Arc<Inbox>>,
    /// The listener whose requests are for this end.
    listener: SetOnce<Identity>,
    /// The number of callbacks at the moment.
    inside: Atomic<i32>,
    #[pin]
    log: Mutex<EventLog>,
    #[pin]
    changed: CondVar,
}

impl Inbox {
    pub(crate) fn new(
        world: &Arc<World>,
        service: u64,
        child: Option<Arc<Inbox>>,
    ) -> Result<Arc<Self>> {
        let qpn = next_qpn();
        Arc::pin_init(
            pin_init!(Self {
                world: world.clone(),
                service,
                qpn,
                psn: qpn.wrapping_add(0x10_0000),
                child,
                listener: SetOnce::new(),
                inside: Atomic::new(0),
                log <- new_mutex!(EventLog {
                    events: [EventType::default(); EVENTS],
                    count: 0,
                    seen: 0,
                    last: None,
                    data: [0; 256],
                    gone: false,
                    id: None,
                    act: None,
                    kept: None,
                }),
                changed <- new_condvar!(),
            }),
            GFP_KERNEL,
        )
    }

    /// Has something done in the callback of this event.
    pub(crate) fn on(&self, event: EventType, act: Act) {
        self.log.lock().act = Some((event, act));
    }

    /// Remembers which identifier the callbacks are to be of.
    pub(super) fn set_id(&self, id: Identity) {
        self.log.lock().id = Some(id);
    }

    /// Remembers whose requests are to be for this end.
    pub(super) fn set_listener(&self, id: Identity) {
        self.listener.populate(id);
    }

    /// Returns true if a request for this end has to be sent to this identifier.
    pub(crate) fn is_listener(&self, id: Identity) -> bool {
        self.listener.copy() == Some(id)
    }

    pub(super) fn set_gone(&self) {
        self.log.lock().gone = true;
    }

    /// The identifier of somebody who has asked; once.
    pub(super) fn take_kept(&self) -> Option<IbCmId<Inbox>> {
        self.log.lock().kept.take()
    }

    /// Returns the number of events so far.
    pub(crate) fn told(&self) -> usize {
        self.log.lock().count
    }

    pub(crate) fn last(&self) -> Option<Event> {
        self.log.lock().last
    }

    pub(crate) fn data(&self) -> Data {
        self.log.lock().data
    }

    /// The next event, if there is one in time.
    pub(super) fn next(&self) -> Option<EventType> {
        let mut log = self.log.lock();
        let mut patience = msecs_to_jiffies(PATIENCE_MS);
        while log.count <= log.seen {
            match self.changed.wait_interruptible_timeout(&mut log, patience) {
                CondVarTimeoutResult::Woken { jiffies } => patience = jiffies,
                _ => return None,
            }
        }
        log.events.get(log.seen).copied()
    }

    /// Goes on to the event after the next.
    pub(super) fn step(&self) {
        let mut log = self.log.lock();
        log.seen = log.seen.saturating_add(1);
    }

    /// Waits until no callback is left.
    pub(super) fn wait_outside(&self) {
        while self.inside.load(Relaxed) != 0 {
            fsleep(Delta::from_micros(100));
        }
    }

    /// Gives the identifier of a request to this end, unless it has one already.
    fn take_place(&self, id: Identity) -> bool {
        let mut log = self.log.lock();
        let free = log.id.is_none();
        if free {
            log.id = Some(id);
        }
        free
    }

    /// The first half of a callback.
    fn hear(&self, id: &IbCmIdRef, event: &Event, data: &[u8]) -> Verdict {
        is!(self.inside.fetch_add(1, Full), 0);
        let act = {
            let mut log = self.log.lock();
            check!(log.id == Some(id.identity()));
            check!(!log.gone);
            log.last = Some(*event);
            log.data
                .iter_mut()
                .zip(data)
                .for_each(|(to, from)| *to = *from);
            log.act
        };
        let verdict = match act {
            Some((on, act)) if on == event.kind() => act(self, id, event),
            _ => Verdict::Keep,
        };
        // A callback that comes in at the same time is seen.
        fsleep(Delta::from_micros(500));
        verdict
    }

    /// The second half: the test may go on.
    fn note(&self, event: &Event, verdict: Verdict, kept: Option<IbCmId<Inbox>>) {
        let mut log = self.log.lock();
        log.gone |= verdict != Verdict::Keep;
        if kept.is_some() {
            log.kept = kept;
        }
        let number = log.count;
        match log.events.get_mut(number) {
            Some(place) => *place = event.kind(),
            None => wrong!("more than {} events", EVENTS),
        }
        log.count = number.saturating_add(1);
        drop(log);
        self.changed.notify_all();
        self.inside.fetch_sub(1, Full);
    }
}

impl Handler for Inbox {
    fn request(this: &Arc<Self>, new: NewId<'_, Self>, event: &Event, data: &[u8]) {
        check!(!this.log.lock().gone);
        // Nobody waits for it, or it is a copy that was late: the end that had the first has gone.
        let Some(child) = this
            .child
            .as_ref()
            .filter(|child| child.take_place(new.identity()))
        else {
            return;
        };
        let verdict = child.hear(&new, event, data);
        let kept = match verdict {
            Verdict::Keep => {
                let kept = new.keep(child.clone());
                check!(kept.is_ok());
                kept.ok()
            }
            Verdict::Destroy(number) => {
                new.refuse_with(number);
                None
            }
        };
        child.note(event, verdict, kept);
    }

    fn event(this: &Arc<Self>, id: &IbCmIdRef, event: &Event, data: &[u8]) -> Verdict {
        let verdict = this.hear(id, event, data);
        this.note(event, verdict, None);
        verdict
    }
}
