// SPDX-License-Identifier: GPL-2.0

//! The entries of the contexts in a channel, with their unread events.
//!
//! Nothing here names the context itself: the entries are generic in what they are of.

mod contexts;
mod entry;
mod entry_map;
mod event;
mod membership;
mod queue;
mod reservation;
mod slots;

pub(crate) use self::{
    contexts::{ChannelContexts, TakenEvent},
    entry::{
        ChannelEntry, ListenerEntry, MissingMemory, Numbered, Place, PlaceCache, PlaceRef,
        RemovedEntry,
    },
    event::{ParamCache, ParamReservation, Unread},
    membership::MembershipEntry,
    queue::{request_child, EventMemory, EventSubject, Requests, UnreadRequest},
    reservation::{EventReservation, ExpectedEvents},
    slots::{MoreSlots, SlotCache},
};
