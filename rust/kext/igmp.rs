// SPDX-License-Identifier: GPL-2.0

//! Membership of network interfaces in IPv4 multicast groups.
//!
//! C header: [`include/linux/igmp.h`](srctree/include/linux/igmp.h)

use super::netdev::NetDevice;
use crate::bindings;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, error::to_result, prelude::*, types::Opaque};

/// The membership of an interface in an IPv4 group; `ip maddr` shows it. Dropping it leaves the
/// group, unless others are members by the same interface.
///
/// It owns the IPv4 part of the interface (`struct in_device`) that it was made in, and thereby the
/// interface, until [`leave_all`] is called, which must be when the interface goes.
///
/// # Invariants
///
/// The object was joined. One use of the group is ours, for as long as its `in_dev` is there and not dead.
pub(crate) struct IgmpMembership(Pin<KBox<Opaque<bindings::rust_rdma_igmp>>>);

// SAFETY: Any thread can leave a group.
unsafe impl Send for IgmpMembership {}
// SAFETY: There is nothing to do with a reference.
unsafe impl Sync for IgmpMembership {}

impl IgmpMembership {
    /// Makes the interface `dev` a member of `group`, in network byte order.
    ///
    /// Takes the lock of all network interfaces (`rtnl_lock()`). Fails with [`ENODEV`] if the
    /// interface has no IPv4, and with [`ENOMEM`].
    pub(crate) fn join(dev: &NetDevice, group: [u8; 4]) -> Result<Self> {
        let membership = Opaque::new(bindings::rust_rdma_igmp::default());
        let membership = KBox::pin(membership, GFP_KERNEL_ACCOUNT)?;
        // SAFETY: The device is valid, and so are the four bytes of the address. The object does not move,
        // and if this succeeds it is not freed before it has left.
        to_result(unsafe {
            bindings::rust_rdma_igmp_join(membership.get(), dev.as_raw(), group.as_ptr())
        })?;
        // INVARIANT: The call has counted one use for us.
        Ok(Self(membership))
    }
}

impl Drop for IgmpMembership {
    /// Takes the lock of all network interfaces.
    fn drop(&mut self) {
        // SAFETY: Joined, by the type invariant.
        unsafe { bindings::rust_rdma_igmp_leave(self.0.get()) };
    }
}

/// Leaves all groups by an interface that goes, which would wait for its members otherwise.
///
/// To be called by who is told of that, with the lock of all network interfaces.
pub(crate) fn leave_all(dev: &NetDevice) {
    // SAFETY: The device is valid. By the type invariant of `IgmpMembership` those in the list are there.
    unsafe { bindings::rust_rdma_igmp_leave_all(dev.as_raw()) };
}
