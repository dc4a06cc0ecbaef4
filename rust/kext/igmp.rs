// SPDX-License-Identifier: GPL-2.0

//! Membership of network interfaces in IPv4 multicast groups.
//!
//! C header: [`include/linux/igmp.h`](srctree/include/linux/igmp.h)

use super::netdev::NetDevice;
use crate::bindings;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, error::to_result, prelude::*, types::Opaque};

/// A membership of a network interface in an IPv4 multicast group, as `ip maddr` shows it.
///
/// Dropping it leaves the group, unless the interface has other users of the group. The membership
/// holds a reference to the IPv4 part of the interface (`struct in_device`), and thereby to the
/// interface, until [`leave_all`] is called. That must happen when the interface is unregistered.
///
/// # Invariants
///
/// The object was joined. It owns one use of the group until the `in_dev` is dead or gone.
pub(crate) struct IgmpMembership(Pin<KBox<Opaque<bindings::rust_rdma_igmp>>>);

// SAFETY: Any thread can leave a group.
unsafe impl Send for IgmpMembership {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for IgmpMembership {}

impl IgmpMembership {
    /// Joins the interface `dev` to `group`, an IPv4 address in network byte order.
    ///
    /// Takes `rtnl_lock()`. Fails with [`ENODEV`] if the interface has no IPv4 configuration, or
    /// with [`ENOMEM`].
    pub(crate) fn join(dev: &NetDevice, group: [u8; 4]) -> Result<Self> {
        let membership = Opaque::new(bindings::rust_rdma_igmp::default());
        let membership = KBox::pin(membership, GFP_KERNEL_ACCOUNT)?;
        // SAFETY: The device is valid, and so are the four bytes of the address. The object does
        // not move, and if this succeeds it is not freed before it has left.
        to_result(unsafe {
            bindings::rust_rdma_igmp_join(membership.get(), dev.as_raw(), group.as_ptr())
        })?;
        // INVARIANT: The call has counted one use of the group for this object.
        Ok(Self(membership))
    }
}

impl Drop for IgmpMembership {
    /// Leaves the group. Takes `rtnl_lock()`.
    fn drop(&mut self) {
        // SAFETY: Joined, by the type invariant.
        unsafe { bindings::rust_rdma_igmp_leave(self.0.get()) };
    }
}

/// Leaves all groups on an interface that is being unregistered.
///
/// Without this, the unregistration would wait for the memberships for ever. Must be called from
/// the notifier of that event, which holds `rtnl_lock()`.
pub(crate) fn leave_all(dev: &NetDevice) {
    // SAFETY: The device is valid. By the type invariant of `IgmpMembership` all entries of the
    // list are valid.
    unsafe { bindings::rust_rdma_igmp_leave_all(dev.as_raw()) };
}
