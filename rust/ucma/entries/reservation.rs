// SPDX-License-Identifier: GPL-2.0

//! The memory for the events that a context is yet to have.

use super::{
    event::{ParamCache, ParamReservation},
    queue::EventNodeReservation,
};
use crate::{endpoint::Event, kext::slab::Wait};
use kernel::{
    alloc::flags::{GFP_KERNEL_ACCOUNT, GFP_NOWAIT, __GFP_NOWARN},
    prelude::*,
};

/// The most events for which a reservation has memory.
const MOST_EVENTS: usize = 5;
/// As many of them as lie outside the reservation.
const FURTHER: usize = MOST_EVENTS - 1;

/// Memory for the events that a context is yet to have.
///
/// The commands that cause events fill it, in the process that is charged for the memory and while
/// a failure can still be reported. So no event waits for memory, and no event is lost for lack of
/// it.
///
/// Most contexts need no more than the slots of their queue, and so there is room for one event
/// here. That for others is allocated with their memory.
pub(crate) struct EventReservation<C> {
    first: Option<EventNodeReservation<C>>,
    further: Option<KBox<[Option<EventNodeReservation<C>>; FURTHER]>>,
    param: Option<ParamReservation>,
}

/// The events that may come, for which memory is reserved.
#[derive(Clone, Copy)]
pub(crate) struct ExpectedEvents {
    /// Number of events, at most [`MOST_EVENTS`].
    events: usize,
    /// Set if there is no room for all of them where their memory goes.
    further: bool,
    /// Set if one of the events has parameters.
    param: bool,
}

impl ExpectedEvents {
    /// A device removal, which can come at any time, and the outcome of a resolution.
    pub(crate) const RESOLVE: Self = ExpectedEvents {
        events: 2,
        further: false,
        param: false,
    };

    /// The events of a route resolution: [`RESOLVE`](Self::RESOLVE), and a change of the peer's
    /// address, which can come from then on.
    pub(crate) const ROUTE: Self = ExpectedEvents {
        events: 3,
        further: false,
        param: false,
    };

    /// The events of a connection: a device removal, a change of the peer's address, and the
    /// outcome of the connection, its end and the end of its time wait. The outcome may come with
    /// the parameters of a REP or a REJ.
    pub(crate) const CONNECT: Self = ExpectedEvents {
        events: 5,
        further: false,
        param: true,
    };

    /// One event with parameters: a connection request, an event of a multicast group,
    /// or an event that a program writes.
    pub(crate) const ONE: Self = ExpectedEvents {
        events: 1,
        further: false,
        param: true,
    };

    /// Returns the needs of one event.
    pub(crate) fn of(event: &Event<'_>) -> Self {
        ExpectedEvents {
            events: 1,
            further: false,
            param: event.param.is_some(),
        }
    }

    /// Returns the events that are left if there is memory for `events` of them already.
    pub(crate) fn beyond(self, events: usize) -> Self {
        ExpectedEvents {
            events: self.events.saturating_sub(events),
            ..self
        }
    }

    /// Returns whether no memory is needed.
    pub(crate) fn is_none(&self) -> bool {
        self.events == 0 && !self.param
    }
}

impl<C> EventReservation<C> {
    /// Creates an empty reservation.
    pub(crate) const fn new() -> Self {
        EventReservation {
            first: None,
            further: None,
            param: None,
        }
    }

    /// Allocates memory for `expected`, that of parameters from `params`, or fails with `ENOMEM`.
    pub(crate) fn allocate(
        expected: ExpectedEvents,
        params: &ParamCache,
        wait: Wait,
    ) -> Result<Self> {
        let reservation = Self::allocate_some(expected, params, wait);
        if reservation.missing(expected).is_none() {
            Ok(reservation)
        } else {
            Err(ENOMEM)
        }
    }

    /// Allocates memory for as much of `expected` as possible.
    pub(crate) fn allocate_some(expected: ExpectedEvents, params: &ParamCache, wait: Wait) -> Self {
        let flags = match wait {
            Wait::May => GFP_KERNEL_ACCOUNT,
            Wait::MustNot => GFP_NOWAIT | __GFP_NOWARN,
        };
        let mut reservation = Self::new();
        if expected.further || expected.events > 1 {
            reservation.further = KBox::new([const { None }; FURTHER], flags).ok();
        }
        for _ in 0..expected.events {
            let Ok(node) = EventNodeReservation::new(flags) else {
                break;
            };
            if reservation.put(node).is_some() {
                break;
            }
        }
        if expected.param {
            reservation.param = ParamReservation::new(params, wait).ok();
        }
        reservation
    }

    /// Returns the part of `expected` for which the reservation has no memory.
    pub(crate) fn missing(&self, expected: ExpectedEvents) -> ExpectedEvents {
        ExpectedEvents {
            events: expected.events.saturating_sub(self.count()),
            further: expected.events > 1 && self.further.is_none(),
            param: expected.param && self.param.is_none(),
        }
    }

    /// Moves as much memory as fits from `other` into this reservation.
    pub(crate) fn fill_from(&mut self, other: &mut Self) {
        if self.further.is_none() {
            self.further = other.further.take();
        }
        if self.first.is_none() {
            self.first = other.first.take();
        }
        while let Some(room) = self.room() {
            let Some(node) = other.take() else {
                break;
            };
            *room = Some(node);
        }
        if self.param.is_none() {
            self.param = other.param.take();
        }
    }

    /// Returns the number of events for which there is memory.
    fn count(&self) -> usize {
        let first = usize::from(self.first.is_some());
        match &self.further {
            Some(nodes) => first.saturating_add(nodes.iter().flatten().count()),
            None => first,
        }
    }

    /// Returns the room for the memory of one more event.
    fn room(&mut self) -> Option<&mut Option<EventNodeReservation<C>>> {
        if self.first.is_none() {
            return Some(&mut self.first);
        }
        self.further
            .as_mut()?
            .iter_mut()
            .find(|node| node.is_none())
    }

    /// Takes the memory for one event out.
    pub(crate) fn take(&mut self) -> Option<EventNodeReservation<C>> {
        if let Some(nodes) = &mut self.further {
            if let Some(node) = nodes.iter_mut().find_map(Option::take) {
                return Some(node);
            }
        }
        self.first.take()
    }

    /// Adds memory for the parameters of one event. Returns the memory that was there.
    pub(crate) fn put_param(&mut self, param: ParamReservation) -> Option<ParamReservation> {
        self.param.replace(param)
    }

    /// Takes the memory for the parameters of one event out.
    pub(crate) fn take_param(&mut self) -> Option<ParamReservation> {
        self.param.take()
    }

    /// Adds memory for one event. Returns it if there is no room for it.
    pub(crate) fn put(&mut self, node: EventNodeReservation<C>) -> Option<EventNodeReservation<C>> {
        match self.room() {
            Some(room) => room.replace(node),
            None => Some(node),
        }
    }
}
