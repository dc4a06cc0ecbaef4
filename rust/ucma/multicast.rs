// SPDX-License-Identifier: GPL-2.0

//! The membership of a context in a multicast group.
//!
//! A membership has a number of its own, from one table for all channels, and a uid of its own,
//! which its events carry.

use super::{
    context::Context,
    entries::{EventReservation, ExpectedEvents, MembershipEntry},
    globals::Ucma,
};
use crate::kext::{idtable::Reserved, slab::Wait, users::Charge};
use kernel::{
    alloc::flags::GFP_KERNEL_ACCOUNT,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::Arc,
};

/// A membership in a multicast group, which user space names by a number.
pub(super) struct Multicast {
    context: Arc<Context>,
    /// The key of the membership in the endpoint and in the channel.
    group: u64,
    _charge: Charge,
}

/// A membership whose number is reserved, but cannot be looked up yet.
pub(super) struct UnpublishedGroup<'a> {
    pub(super) multicast: Arc<Multicast>,
    pub(super) number: Reserved<'a, Multicast>,
    /// Memory for the entry in the channel.
    pub(super) reservation: RBTreeNodeReservation<u64, MembershipEntry<Context>>,
    /// Memory for the event of the membership.
    pub(super) events: EventReservation<Context>,
}

impl<'a> UnpublishedGroup<'a> {
    /// Creates a membership of `context`.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there is no memory or no free number.
    pub(super) fn new(ucma: &'a Ucma, context: &Arc<Context>, charge: Charge) -> Result<Self> {
        let multicast = Multicast {
            context: context.clone(),
            group: ucma.globals.next_number(),
            _charge: charge,
        };
        Ok(UnpublishedGroup {
            multicast: Arc::new(multicast, GFP_KERNEL_ACCOUNT)?,
            number: ucma.groups.reserve().map_err(|_| ENOMEM)?,
            reservation: RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?,
            events: EventReservation::allocate(ExpectedEvents::ONE, &ucma.slabs.params, Wait::May)?,
        })
    }
}

impl Multicast {
    /// Returns the context that is a member.
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// Returns the key of the membership in the endpoint and in the channel.
    pub(super) fn group(&self) -> u64 {
        self.group
    }

    /// Removes the memberships of a context that is being destroyed from the table.
    pub(super) fn remove_all(ucma: &Ucma, mut groups: RBTree<u64, MembershipEntry<Context>>) {
        while let Some(cursor) = groups.cursor_front_mut() {
            let (_, node) = cursor.remove_current();
            let (group, joined) = node.to_key_value();
            let taken = ucma.groups.take_if(joined.id, |multicast| {
                if multicast.group == group {
                    Ok(())
                } else {
                    Err(())
                }
            });
            drop(taken);
        }
    }
}
