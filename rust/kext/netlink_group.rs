// SPDX-License-Identifier: GPL-2.0

//! The multicast group of a family of generic netlink: messages that nobody has asked for.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

use super::{net::Net, netlink::Message};
use crate::bindings;
use atomics::Published;
use core::ptr::NonNull;
use kernel::{prelude::*, sync::rcu};

/// A multicast group, which those may join who have `CAP_NET_ADMIN` in their network namespace. It
/// belongs to a family while that is registered.
///
/// # Invariants
///
/// The published family has one group and is registered. It stays so for an RCU grace period after
/// it was withdrawn.
pub(crate) struct Group {
    family: Published<bindings::genl_family>,
}

impl Group {
    /// Creates a group without a family, which nobody can join.
    pub(crate) fn new() -> Self {
        // INVARIANT: There is no family.
        Group {
            family: Published::new(),
        }
    }

    /// Returns the entry of the group in the table of its family.
    pub(super) fn entry(name: &CStr) -> bindings::genl_multicast_group {
        const GENL_MCAST_CAP_NET_ADMIN: u8 = 1;
        let mut entry: bindings::genl_multicast_group = pin_init::zeroed();
        for (to, from) in entry.name.iter_mut().zip(name.to_bytes_with_nul()) {
            *to = *from;
        }
        entry.flags = GENL_MCAST_CAP_NET_ADMIN;
        entry
    }

    /// Lets the group belong to a family.
    ///
    /// # Safety
    ///
    /// The family must have one group and be registered, until [`close`](Self::close) has returned.
    pub(super) unsafe fn open(&self, family: *mut bindings::genl_family) {
        if let Some(family) = NonNull::new(family) {
            // INVARIANT: By the safety requirements.
            self.family.publish(family);
        }
    }

    /// Ends the belonging to a family. Waits for messages that are being sent.
    pub(super) fn close(&self) {
        self.family.withdraw();
        // SAFETY: The caller may sleep.
        unsafe { bindings::synchronize_rcu() };
    }

    /// Returns whether anybody listens, in any network namespace.
    pub(crate) fn has_listeners(&self) -> bool {
        let _rcu = rcu::read_lock();
        self.family.get().is_some_and(|family| {
            // SAFETY: By the type invariant, the family is registered while the guard lives.
            unsafe { bindings::rust_rdma_genl_has_listeners(family.as_ptr()) }
        })
    }

    /// Sends a message with the attributes that `fill`, which must not sleep, puts into it to those
    /// who listen in `net`. Does not wait for memory: without memory, the message is lost.
    pub(crate) fn send(
        &self,
        net: &Net,
        command: u8,
        fill: impl FnOnce(&mut Message<'_>) -> Result,
    ) {
        // SAFETY: Just a call.
        let skb = unsafe { bindings::rust_rdma_genlmsg_new() };
        if skb.is_null() {
            return;
        }
        let _rcu = rcu::read_lock();
        let family = self.family.get().map(NonNull::as_ptr);
        // SAFETY: By the type invariant, the family is registered while the guard lives, and the
        // buffer is ours until it is sent or freed.
        unsafe {
            match family.filter(|family| Self::write(skb, *family, command, fill).is_ok()) {
                Some(family) => bindings::rust_rdma_genlmsg_multicast(family, net.as_raw(), skb),
                None => bindings::rust_rdma_nlmsg_free(skb),
            }
        }
    }

    /// Writes a message into an empty buffer.
    ///
    /// # Safety
    ///
    /// `skb` must be the caller's, and `family` registered.
    unsafe fn write(
        skb: *mut bindings::sk_buff,
        family: *const bindings::genl_family,
        command: u8,
        fill: impl FnOnce(&mut Message<'_>) -> Result,
    ) -> Result {
        // SAFETY: By the safety requirements.
        let header = unsafe { bindings::genlmsg_put(skb, 0, 0, family, 0, command) };
        let header = NonNull::new(header).ok_or(EMSGSIZE)?;
        // SAFETY: The message was begun above, in a buffer of the caller.
        fill(&mut unsafe { Message::new(skb) })?;
        // SAFETY: This is the message that was begun.
        unsafe { bindings::rust_rdma_genlmsg_end(skb, header.as_ptr()) };
        Ok(())
    }
}
