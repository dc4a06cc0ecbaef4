// SPDX-License-Identifier: GPL-2.0

//! Multicast groups of kernel consumers.

use super::{queue::Group, KernelId};
use cmproto::{addr::SockAddr, mcast::Member};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, rbtree::RBTreeNodeReservation};

impl KernelId {
    /// Joins a multicast group with the context `name`; an event reports the result.
    ///
    /// Fails with `EINVAL` for an identifier that has created a queue pair, and like
    /// [`Endpoint::join_group`](crate::endpoint::Endpoint::join_group).
    pub(crate) fn join(&self, addr: &SockAddr, member: Member, name: usize) -> Result {
        if self.endpoint.id_priv.has_qp() {
            return Err(EINVAL);
        }
        let number = self.endpoint.globals.next_number();
        let group = Group { addr: *addr, name };
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?.into_node(number, group);
        let joined = self.endpoint.join_group(number, addr, member)?;
        let before = self.queue.lock().groups.insert(node);
        drop(before);
        self.endpoint.report_group(number, &joined);
        Ok(())
    }

    /// Leaves the group that was joined last with the address `addr`, if there is one.
    pub(crate) fn leave(&self, addr: &SockAddr) {
        let node = {
            let mut queue = self.queue.lock();
            let groups = queue.groups.iter();
            let found = groups.filter(|(_, group)| group.addr.same_address(addr));
            let number = found.last().map(|(number, _)| *number);
            number.and_then(|number| queue.groups.remove_node(&number))
        };
        if let Some(node) = node {
            let (number, _) = node.to_key_value();
            self.endpoint.leave_group(number);
        }
    }
}
