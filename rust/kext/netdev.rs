// SPDX-License-Identifier: GPL-2.0

//! Network devices.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use super::net::Net;
use crate::bindings;
use core::ptr::{self, NonNull};
use kernel::{
    prelude::*,
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque,
};

/// The device is administratively up (`IFF_UP`).
const IFF_UP: u32 = 1;
/// The longest link-layer address (`MAX_ADDR_LEN`).
pub(crate) const MAX_ADDR_LEN: usize = 32;

/// A network device (`struct net_device`).
///
/// Who holds a reference delays the device's unregistration: let go when the device is unregistered.
///
/// # Invariants
///
/// Instances are always counted by the device's own counter.
#[repr(transparent)]
pub(crate) struct NetDevice(Opaque<bindings::net_device>);

// SAFETY: References to devices can be used and put by any thread.
unsafe impl Send for NetDevice {}
// SAFETY: As above; what is read here is constant or read atomically.
unsafe impl Sync for NetDevice {}

// SAFETY: The type invariant says that instances are counted.
unsafe impl AlwaysRefCounted for NetDevice {
    fn inc_ref(&self) {
        // SAFETY: The reference proves that the counter is not zero.
        unsafe { bindings::rust_rdma_dev_hold(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller gives up a reference.
        unsafe { bindings::rust_rdma_dev_put(obj.as_ptr().cast()) };
    }
}

impl NetDevice {
    /// Returns the device with an index in a namespace.
    pub(crate) fn by_index(net: &Net, ifindex: i32) -> Option<ARef<Self>> {
        // SAFETY: The namespace is valid. The result is null or a counted reference.
        unsafe { Self::from_counted(bindings::rust_rdma_dev_get_by_index(net.as_raw(), ifindex)) }
    }

    /// Returns a reference for a pointer of C.
    ///
    /// # Safety
    ///
    /// The device must be valid, and counted, for the duration of `'a`.
    pub(crate) unsafe fn from_raw<'a>(dev: *const bindings::net_device) -> &'a Self {
        // SAFETY: By the safety requirements; `NetDevice` is transparent.
        unsafe { &*dev.cast() }
    }

    /// Takes over a counted reference from C, or null.
    ///
    /// # Safety
    ///
    /// The caller must own the reference and gives it up.
    pub(crate) unsafe fn from_counted(dev: *mut bindings::net_device) -> Option<ARef<Self>> {
        // SAFETY: By the safety requirements; `NetDevice` is transparent.
        NonNull::new(dev.cast()).map(|dev| unsafe { ARef::from_raw(dev) })
    }

    /// Returns the C object.
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Whether the two are the same device.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }

    /// The index, unique within the namespace.
    pub(crate) fn ifindex(&self) -> i32 {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netdev_ifindex(self.as_raw()) }
    }

    /// The namespace that the device is in now; `None` while that one is going away.
    pub(crate) fn net(&self) -> Option<ARef<Net>> {
        // SAFETY: The device is valid. The result is null or a counted reference.
        unsafe { Net::from_counted(bindings::rust_rdma_dev_net(self.as_raw())) }
    }

    /// The largest packet, in bytes.
    pub(crate) fn mtu(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netdev_mtu(self.as_raw()) }
    }

    /// Whether the device is administratively up.
    pub(crate) fn is_up(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netdev_flags(self.as_raw()) & IFF_UP != 0 }
    }

    /// The kind of hardware (`ARPHRD_*`).
    pub(crate) fn hw_type(&self) -> u16 {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netdev_type(self.as_raw()) }
    }

    /// The link-layer address, and how many bytes of it are meant.
    pub(crate) fn hw_addr(&self) -> ([u8; MAX_ADDR_LEN], usize) {
        let mut addr = [0; MAX_ADDR_LEN];
        // SAFETY: The device is valid, and so is the buffer, of `MAX_ADDR_LEN` bytes.
        let len =
            unsafe { bindings::rust_rdma_netdev_hw_addr(self.as_raw(), addr.as_mut_ptr(), 32) };
        (addr, len.into())
    }

    /// The device below, if this is a VLAN of it.
    pub(crate) fn vlan_real_dev(&self) -> Option<ARef<Self>> {
        // SAFETY: The device is valid.
        if !unsafe { bindings::rust_rdma_is_vlan_dev(self.as_raw()) } {
            return None;
        }
        // SAFETY: The device is a VLAN. The result is a counted reference.
        unsafe { Self::from_counted(bindings::rust_rdma_vlan_dev_real_dev(self.as_raw())) }
    }

    /// Whether other devices are bonded below this one.
    pub(crate) fn is_bond_master(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netif_is_bond_master(self.as_raw()) }
    }

    /// The service level for a type of service, 0..=15: what the VLAN's egress map or the queue
    /// configuration makes of it, on this device or the one right below.
    pub(crate) fn service_level(&self, tos: u8) -> u8 {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_tos_to_sl(self.as_raw(), tos) }
    }

    /// Whether a packet from `local` to `peer` would leave by this very device, and both are
    /// addresses of hosts. Network byte order. Never sleeps.
    pub(crate) fn is_route_v4(&self, local: [u8; 4], peer: [u8; 4]) -> bool {
        // SAFETY: The device is valid, and so are the addresses.
        unsafe {
            bindings::rust_rdma_reverse_path_ok4(self.as_raw(), local.as_ptr(), peer.as_ptr())
        }
    }

    /// Whether a packet from `local` to `peer` would leave by this very device. Network byte
    /// order. Never sleeps.
    pub(crate) fn is_route_v6(&self, local: [u8; 16], peer: [u8; 16]) -> bool {
        // SAFETY: The device is valid, and so are the addresses.
        unsafe {
            bindings::rust_rdma_reverse_path_ok6(self.as_raw(), local.as_ptr(), peer.as_ptr())
        }
    }
}

impl PartialEq for NetDevice {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other)
    }
}

impl Eq for NetDevice {}
