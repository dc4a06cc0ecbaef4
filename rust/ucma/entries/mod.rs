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
mod reserve;

pub(crate) use self::{
    contexts::{ChannelContexts, Taken},
    entry::{EntryReservation, Numbered, RemovedEntry},
    event::Unread,
    membership::Joined,
    queue::About,
    reserve::{Need, Reserve},
};
