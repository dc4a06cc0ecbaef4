// SPDX-License-Identifier: GPL-2.0

//! The listeners: their owners and backlogs.

use super::identifier::{is_visible, Identifier};
use crate::{
    globals::Globals,
    kext::{net::Net, netlink::Answer},
    table::listener_key::Place,
};
use cmproto::netlink::{Attr, Command, Viewer};
use kernel::prelude::*;

/// Dumps the listeners from `place` on that the viewer sees.
pub(super) fn listeners(
    globals: &Globals,
    viewer: &Viewer,
    net: &Net,
    place: &mut Place,
    out: &mut Answer<'_>,
) -> Result {
    while let Some((at, endpoint)) = globals.listeners.from(place) {
        if is_visible(&endpoint, viewer, net) {
            let (listener, consumer) = endpoint.with_lock(|endpoint, inner| {
                (Identifier::of(endpoint, inner), inner.consumer.clone())
            });
            let backlog = consumer.and_then(|consumer| consumer.backlog());
            out.message(Command::ListenerGet as u8, |request, message| {
                listener.put(request, message)?;
                message.uint(Attr::ServiceId as u16, at.service_id())?;
                let Some(backlog) = &backlog else {
                    return Ok(());
                };
                message.u32(Attr::Backlog as u16, backlog.limit())?;
                message.u32(Attr::Unread as u16, backlog.waiting())?;
                message.u32(Attr::Parked as u16, backlog.parked())?;
                message.u32(Attr::Refused as u16, backlog.refused())
            })?;
        }
        *place = at.after();
    }
    Ok(())
}
