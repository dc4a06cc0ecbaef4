// SPDX-License-Identifier: GPL-2.0

//! The entries of the contexts in a channel, with their unread events.
//!
//! Nothing here names the context itself: the entries are generic in what they are of.

mod by_id;
mod event;
mod membership;
mod place;
mod places;
mod queue;
mod reserve;

pub(crate) use self::{
    event::Unread,
    membership::Joined,
    place::{Leavings, Numbered, PlaceRoom},
    places::{Places, Taken},
    queue::About,
    reserve::{Need, Reserve},
};
