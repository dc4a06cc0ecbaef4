// SPDX-License-Identifier: GPL-2.0

//! Membership of network interfaces in IP multicast groups.
//!
//! C headers: [`include/linux/igmp.h`](srctree/include/linux/igmp.h),
//! [`include/net/addrconf.h`](srctree/include/net/addrconf.h)

use super::netdev::NetDevice;
use crate::bindings;
use core::net::IpAddr;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, error::to_result, prelude::*, types::Opaque};

/// A membership of a network interface in a multicast group of IPv4 (IGMP) or IPv6 (MLD), as
/// `ip maddr` shows it.
///
/// Dropping it leaves the group, unless the interface has other users of the group. The membership
/// holds a reference to the part of the interface for that protocol (`struct in_device` or `struct
/// inet6_dev`), and thereby to the interface, until [`leave_all`] is called. That must happen when
/// the interface is unregistered.
///
/// # Invariants
///
/// The object was joined. It owns one use of the group until the `in_dev` or `in6_dev` is dead or
/// gone.
pub(crate) struct IpMembership(Pin<KBox<Opaque<bindings::rust_rdma_ip_membership>>>);

// SAFETY: Any thread can leave a group.
unsafe impl Send for IpMembership {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for IpMembership {}

impl IpMembership {
    /// Joins the interface `dev` to `group`.
    ///
    /// Takes `rtnl_lock()`. Fails with [`ENODEV`] if the interface does not have that protocol, or
    /// with [`ENOMEM`].
    pub(crate) fn join(dev: &NetDevice, group: IpAddr) -> Result<Self> {
        let membership = Opaque::new(bindings::rust_rdma_ip_membership::default());
        let membership = KBox::pin(membership, GFP_KERNEL_ACCOUNT)?;
        let (this, dev) = (membership.get(), dev.as_raw());
        to_result(match group {
            // SAFETY: The device is valid, and so are the four bytes of the address. The object
            // does not move, and if this succeeds it is not freed before it has left.
            IpAddr::V4(group) => unsafe {
                bindings::rust_rdma_ip_multicast_join(this, dev, group.octets().as_ptr())
            },
            // SAFETY: As above; the address has 16 bytes.
            IpAddr::V6(group) => unsafe {
                bindings::rust_rdma_ipv6_multicast_join(this, dev, group.octets().as_ptr())
            },
        })?;
        // INVARIANT: The call has counted one use of the group for this object.
        Ok(Self(membership))
    }
}

impl Drop for IpMembership {
    /// Leaves the group. Takes `rtnl_lock()`.
    fn drop(&mut self) {
        // SAFETY: Joined, by the type invariant.
        unsafe { bindings::rust_rdma_ip_multicast_leave(self.0.get()) };
    }
}

/// Leaves all groups on an interface that is being unregistered.
///
/// Without this, the unregistration would wait for the memberships for ever. Must be called from
/// the notifier of that event, which holds `rtnl_lock()`.
pub(crate) fn leave_all(dev: &NetDevice) {
    // SAFETY: The device is valid. By the type invariant of `IpMembership` all entries of the
    // list are valid.
    unsafe { bindings::rust_rdma_ip_multicast_leave_all(dev.as_raw()) };
}
