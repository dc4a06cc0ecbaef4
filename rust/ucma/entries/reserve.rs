// SPDX-License-Identifier: GPL-2.0

//! The memory for the events that a context is yet to have.

use super::{event::ParamSpace, queue::Allocated};
use crate::endpoint::Event;
use kernel::{alloc::Flags, prelude::*};

/// The most events for which a reserve has memory.
const MOST_EVENTS: usize = 5;

/// A reserve of memory for the events that a context is yet to have.
///
/// The commands that cause events fill it, in the process that is charged for the memory and while
/// a failure can still be reported. So no event waits for memory, and no event is lost for lack of
/// it.
///
/// # Invariants
///
/// The first `count` of `rooms` are `Some`, the others are `None`.
pub(crate) struct Reserve<C> {
    rooms: [Option<Allocated<C>>; MOST_EVENTS],
    count: usize,
    param: Option<ParamSpace>,
}

/// The amount of memory that a [`Reserve`] has to hold.
#[derive(Clone, Copy)]
pub(crate) struct Need {
    /// Number of events, at most [`MOST_EVENTS`].
    events: usize,
    /// Set if one of the events has parameters.
    param: bool,
}

impl Need {
    /// Memory for a device removal, which can come at any time, and the outcome of a resolution.
    pub(crate) const RESOLVE: Self = Need {
        events: 2,
        param: false,
    };

    /// Memory for a route resolution: [`RESOLVE`](Self::RESOLVE), and a change of the peer's
    /// address, which can come from then on.
    pub(crate) const ROUTE: Self = Need {
        events: 3,
        param: false,
    };

    /// Memory for a connection: a device removal, a change of the peer's address, and the outcome
    /// of the connection, its end and the end of its time wait. The outcome may come with the
    /// parameters of a REP or a REJ.
    pub(crate) const CONNECT: Self = Need {
        events: 5,
        param: true,
    };

    /// Memory for one event with parameters: a connection request, an event of a multicast group,
    /// or an event that a program writes.
    pub(crate) const EVENT: Self = Need {
        events: 1,
        param: true,
    };

    /// Returns the need of one event.
    pub(crate) fn of(event: &Event<'_>) -> Self {
        Need {
            events: 1,
            param: event.param.is_some(),
        }
    }

    /// Returns the rest of the need if there is memory for `events` events already.
    pub(crate) fn beyond(self, events: usize) -> Self {
        Need {
            events: self.events.saturating_sub(events),
            ..self
        }
    }

    /// Returns whether no memory is needed.
    pub(crate) fn is_nothing(&self) -> bool {
        self.events == 0 && !self.param
    }
}

impl<C> Reserve<C> {
    /// Creates an empty reserve.
    pub(crate) const fn new() -> Self {
        Reserve {
            rooms: [const { None }; MOST_EVENTS],
            count: 0,
            param: None,
        }
    }

    /// Allocates a reserve that satisfies `need`, or fails with `ENOMEM`.
    pub(crate) fn allocate(need: Need, flags: Flags) -> Result<Self> {
        let reserve = Self::allocate_some(need, flags);
        if reserve.lacks(need).is_nothing() {
            Ok(reserve)
        } else {
            Err(ENOMEM)
        }
    }

    /// Allocates a reserve with as much of `need` as there is memory for.
    pub(crate) fn allocate_some(need: Need, flags: Flags) -> Self {
        let mut reserve = Self::new();
        for _ in 0..need.events {
            let Ok(room) = Allocated::new(flags) else {
                break;
            };
            let _ = reserve.put(room);
        }
        if need.param {
            reserve.param = ParamSpace::new(flags).ok();
        }
        reserve
    }

    /// Returns what has to be added to the reserve to satisfy `need`.
    pub(crate) fn lacks(&self, need: Need) -> Need {
        Need {
            events: need.events.saturating_sub(self.count),
            param: need.param && self.param.is_none(),
        }
    }

    /// Moves as much memory as fits from `other` into this reserve.
    pub(crate) fn fill_from(&mut self, other: &mut Self) {
        while self.count < MOST_EVENTS {
            let Some(room) = other.take() else {
                break;
            };
            let _ = self.put(room);
        }
        if self.param.is_none() {
            self.param = other.param.take();
        }
    }

    /// Takes the memory for one event out.
    pub(crate) fn take(&mut self) -> Option<Allocated<C>> {
        let last = self.count.checked_sub(1)?;
        let room = self.rooms.get_mut(last)?.take();
        // INVARIANT: The last `Some` was taken.
        self.count = last;
        room
    }

    /// Takes the memory for the parameters of one event out.
    pub(crate) fn take_param(&mut self) -> Option<ParamSpace> {
        self.param.take()
    }

    /// Adds memory for one event. Returns it if the reserve is full.
    pub(crate) fn put(&mut self, room: Allocated<C>) -> Option<Allocated<C>> {
        match self.rooms.get_mut(self.count) {
            Some(slot) => {
                // INVARIANT: One more is `Some`, behind the others.
                self.count = self.count.saturating_add(1);
                slot.replace(room)
            }
            None => Some(room),
        }
    }
}
