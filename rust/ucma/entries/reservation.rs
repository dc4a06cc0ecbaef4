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

/// Memory for the events that a context is yet to have.
///
/// The commands that cause events fill it, in the process that is charged for the memory and while
/// a failure can still be reported. So no event waits for memory, and no event is lost for lack of
/// it.
///
/// Most contexts need no memory here, because their queues have some, and the others need it for
/// one event at a time.
pub(crate) struct EventReservation<C> {
    /// The memory for one event.
    first: Option<EventNodeReservation<C>>,
    /// The memory for the others.
    rest: Option<KBox<[Option<EventNodeReservation<C>>; MOST_EVENTS - 1]>>,
    param: Option<ParamReservation>,
}

/// The events that may come, for which memory is reserved.
#[derive(Clone, Copy)]
pub(crate) struct ExpectedEvents {
    /// Number of events, at most [`MOST_EVENTS`].
    events: usize,
    /// Set if one of the events has parameters.
    param: bool,
}

impl ExpectedEvents {
    /// A device removal, which can come at any time, and the outcome of a resolution.
    pub(crate) const RESOLVE: Self = ExpectedEvents {
        events: 2,
        param: false,
    };

    /// The events of a route resolution: [`RESOLVE`](Self::RESOLVE), and a change of the peer's
    /// address, which can come from then on.
    pub(crate) const ROUTE: Self = ExpectedEvents {
        events: 3,
        param: false,
    };

    /// The events of a connection: a device removal, a change of the peer's address, and the
    /// outcome of the connection, its end and the end of its time wait. The outcome may come with
    /// the parameters of a REP or a REJ.
    pub(crate) const CONNECT: Self = ExpectedEvents {
        events: 5,
        param: true,
    };

    /// One event with parameters: a connection request, an event of a multicast group,
    /// or an event that a program writes.
    pub(crate) const ONE: Self = ExpectedEvents {
        events: 1,
        param: true,
    };

    /// Returns the needs of one event.
    pub(crate) fn of(event: &Event<'_>) -> Self {
        ExpectedEvents {
            events: 1,
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
            rest: None,
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
        if expected.events > 1 {
            reservation.rest = KBox::new([const { None }; MOST_EVENTS - 1], flags).ok();
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
        let events = match expected.events.saturating_sub(self.count()) {
            // Memory for two comes with a place for the second.
            1 if self.first.is_some() && self.rest.is_none() => 2,
            events => events,
        };
        ExpectedEvents {
            events,
            param: expected.param && self.param.is_none(),
        }
    }

    /// Returns the number of events for which there is memory.
    fn count(&self) -> usize {
        let rest = self.rest.iter().flat_map(|nodes| nodes.iter());
        let others = rest.filter(|node| node.is_some()).count();
        others.saturating_add(self.first.is_some().into())
    }

    /// Moves as much memory as fits from `other` into this reservation.
    pub(crate) fn fill_from(&mut self, other: &mut Self) {
        if self.first.is_none() {
            self.first = other.first.take();
        }
        if self.rest.is_none() {
            self.rest = other.rest.take();
        }
        while let Some(node) = other.take() {
            if let Some(node) = self.put(node) {
                // There is no place for it, nor for those behind it.
                let _ = other.put(node);
                break;
            }
        }
        if self.param.is_none() {
            self.param = other.param.take();
        }
    }

    /// Takes the memory for one event out.
    pub(crate) fn take(&mut self) -> Option<EventNodeReservation<C>> {
        let mut others = self.rest.iter_mut().flat_map(|nodes| nodes.iter_mut());
        others.find_map(Option::take).or_else(|| self.first.take())
    }

    /// Adds memory for the parameters of one event. Returns the memory that was there.
    pub(crate) fn put_param(&mut self, param: ParamReservation) -> Option<ParamReservation> {
        self.param.replace(param)
    }

    /// Takes the memory for the parameters of one event out.
    pub(crate) fn take_param(&mut self) -> Option<ParamReservation> {
        self.param.take()
    }

    /// Adds memory for one event. Returns it if the reservation is full.
    pub(crate) fn put(&mut self, node: EventNodeReservation<C>) -> Option<EventNodeReservation<C>> {
        if self.first.is_none() {
            return self.first.replace(node);
        }
        let mut others = self.rest.iter_mut().flat_map(|nodes| nodes.iter_mut());
        match others.find(|slot| slot.is_none()) {
            Some(slot) => slot.replace(node),
            None => Some(node),
        }
    }
}
