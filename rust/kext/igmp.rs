// SPDX-License-Identifier: GPL-2.0

//! Membership of network interfaces in IPv4 multicast groups.
//!
//! C header: [`include/linux/igmp.h`](srctree/include/linux/igmp.h)

use super::{net::Net, netdev::NetDevice};
use crate::bindings;
use core::ffi::c_void;
use kernel::{error::from_err_ptr, prelude::*, sync::aref::ARef};

/// The membership of an interface in an IPv4 group; `ip maddr` shows it. Dropping it leaves the
/// group, unless others are members by the same interface.
///
/// It does not keep the interface from going away.
///
/// # Invariants
///
/// One use of the group at the interface `ifindex` of `net` is ours, for as long as the IPv4 part of
/// that interface (`struct in_device`) is at the address `joined`, which is never dereferenced.
pub(crate) struct IgmpMembership {
    net: ARef<Net>,
    ifindex: i32,
    joined: *const c_void,
    group: [u8; 4],
}

// SAFETY: Any thread can leave a group; `joined` is but a number.
unsafe impl Send for IgmpMembership {}
// SAFETY: There is nothing to do with a reference.
unsafe impl Sync for IgmpMembership {}

impl IgmpMembership {
    /// Makes the interface `dev`, which is in `net`, a member of `group`, in network byte order.
    ///
    /// Takes the lock of all network interfaces (`rtnl_lock()`). Fails with [`ENODEV`] if the
    /// interface has no IPv4, and with [`ENOMEM`].
    pub(crate) fn join(net: &Net, dev: &NetDevice, group: [u8; 4]) -> Result<Self> {
        // SAFETY: The device is valid, and so are the four bytes of the address.
        let joined = unsafe { bindings::rust_rdma_igmp_join(dev.as_raw(), group.as_ptr()) };
        let joined = from_err_ptr(joined.cast_mut())?;
        // INVARIANT: The call has counted one use for us.
        Ok(Self {
            net: net.into(),
            ifindex: dev.ifindex(),
            joined,
            group,
        })
    }
}

impl Drop for IgmpMembership {
    /// Takes the lock of all network interfaces.
    fn drop(&mut self) {
        // SAFETY: The namespace is valid, and so are the four bytes of the address. By the type
        // invariant, a use of the group is ours if the interface is still as it was.
        unsafe {
            bindings::rust_rdma_igmp_leave(
                self.net.as_raw(),
                self.ifindex,
                self.joined,
                self.group.as_ptr(),
            );
        }
    }
}
