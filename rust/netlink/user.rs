// SPDX-License-Identifier: GPL-2.0

//! The users: what they have, and what they may have.

use crate::{
    globals::Globals,
    kext::{
        netlink::Answer,
        sysctl,
        users::{Key, User},
    },
};
use cmproto::{
    netlink::{Attr, Command, ResourceAttr, Viewer},
    ucma::account::Resource,
};
use kernel::prelude::*;

/// The place of an account in the table of accounts.
pub(super) struct Place(Key);

impl Place {
    /// The first place.
    pub(super) const FIRST: Self = Place(Key::FIRST);
}

/// Dumps the users from `place` on that the viewer sees.
///
/// A user has an account below each user who owns a namespace that it is in, and so may come more
/// than once.
pub(super) fn users(
    globals: &Globals,
    viewer: &Viewer,
    place: &mut Place,
    out: &mut Answer<'_>,
) -> Result {
    while let Some(user) = globals.users.from(&place.0) {
        let number = out.request().user_as_seen(user.number());
        if viewer.sees_account(user.number(), number.is_some()) {
            message(&user, number, out)?;
        }
        place.0 = user.key().after();
    }
    Ok(())
}

/// Adds the message about a user, who has this number for the viewer.
fn message(user: &User, number: Option<u32>, out: &mut Answer<'_>) -> Result {
    out.message(Command::UserGet as u8, |_, message| {
        if let Some(number) = number {
            message.u32(Attr::Uid as u16, number)?;
        }
        for resource in Resource::ALL {
            message.nest(Attr::Resource as u16, |message| {
                message.text(ResourceAttr::Name as u16, resource.name().as_bytes())?;
                message.u32(ResourceAttr::Used as u16, user.used(resource))?;
                message.u32(ResourceAttr::Limit as u16, sysctl::max_user(resource))
            })?;
        }
        Ok(())
    })
}
