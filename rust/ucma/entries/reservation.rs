// SPDX-License-Identifier: GPL-2.0

//! The memory for the events that a context is yet to have.

use super::{
    event::{ParamCache, ParamReservation},
    queue::EventNodeReservation,
};
use crate::{endpoint::Event, kext::slab::Wait};
use core::mem;
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
/// # Invariants
///
/// `more` has a `Some` only while `first` is `Some`, too.
pub(crate) struct EventReservation<C> {
    first: Option<EventNodeReservation<C>>,
    more: Option<KBox<MoreNodes<C>>>,
    param: Option<ParamReservation>,
}

/// Memory for further events.
type MoreNodes<C> = [Option<EventNodeReservation<C>>; MOST_EVENTS - 1];

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

    /// Returns whether an event is expected.
    pub(crate) fn has_events(&self) -> bool {
        self.events != 0
    }

    /// Returns whether no memory is needed.
    pub(crate) fn is_none(&self) -> bool {
        !self.has_events() && !self.param
    }
}

impl<C> EventReservation<C> {
    /// Creates an empty reservation.
    pub(crate) const fn new() -> Self {
        EventReservation {
            first: None,
            more: None,
            param: None,
        }
    }

    /// Allocates memory for `expected`, that of parameters from `params`, or fails with `ENOMEM`.
    #[inline]
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
    #[inline]
    pub(crate) fn allocate_some(expected: ExpectedEvents, params: &ParamCache, wait: Wait) -> Self {
        let flags = match wait {
            Wait::May => GFP_KERNEL_ACCOUNT,
            Wait::MustNot => GFP_NOWAIT | __GFP_NOWARN,
        };
        let mut reservation = Self::new();
        if expected.events > 1 {
            reservation.more = KBox::new([const { None }; MOST_EVENTS - 1], flags).ok();
        }
        for _ in 0..expected.events {
            let Ok(node) = EventNodeReservation::new(flags) else {
                break;
            };
            // Without memory for `more` there is room for one, and the others are missing.
            let _ = reservation.put(node);
        }
        if expected.param {
            reservation.param = ParamReservation::new(params, wait).ok();
        }
        reservation
    }

    /// Returns the part of `expected` for which the reservation has no memory.
    #[inline]
    pub(crate) fn missing(&self, expected: ExpectedEvents) -> ExpectedEvents {
        ExpectedEvents {
            events: match expected.events {
                0 => 0,
                events => events.saturating_sub(self.count()),
            },
            param: expected.param && self.param.is_none(),
        }
    }

    /// Returns the number of events for which there is memory.
    fn count(&self) -> usize {
        let more = self.more.iter().flat_map(|more| more.iter().flatten());
        more.count()
            .saturating_add(usize::from(self.first.is_some()))
    }

    /// Moves as much memory as fits from `other` into this reservation.
    #[inline]
    pub(crate) fn fill_from(&mut self, other: &mut Self) {
        if self.more.is_none() {
            mem::swap(&mut self.more, &mut other.more);
        }
        while let Some(node) = other.take() {
            if let Some(node) = self.put(node) {
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
        let mut more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        match more.find(|node| node.is_some()) {
            Some(node) => node.take(),
            None => self.first.take(),
        }
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
        let mut more = self.more.iter_mut().flat_map(|more| more.iter_mut());
        match more.find(|place| place.is_none()) {
            Some(place) => place.replace(node),
            None => Some(node),
        }
    }
}
