// SPDX-License-Identifier: GPL-2.0

//! Network devices.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use super::net::Net;
use crate::bindings;
use core::ptr::{self, NonNull};
use kernel::{
    sync::aref::{ARef, AlwaysRefCounted},
    types::Opaque,
};

/// The flag of a device that is administratively up (`IFF_UP`).
const IFF_UP: u32 = 1;
/// The maximum length of a link-layer address (`MAX_ADDR_LEN`), in bytes.
pub(crate) const MAX_ADDR_LEN: usize = 32;

/// A network device (`struct net_device`).
///
/// A reference delays the unregistration of the device, so it must be dropped when the device is
/// unregistered.
///
/// # Invariants
///
/// Instances are always counted by the device's own counter.
#[repr(transparent)]
pub(crate) struct NetDevice(Opaque<bindings::net_device>);

// SAFETY: References to devices can be used and put by any thread.
unsafe impl Send for NetDevice {}
// SAFETY: The fields that are read here are constant or are read atomically.
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
    /// Returns the device with the index `ifindex` in a namespace.
    pub(crate) fn by_index(net: &Net, ifindex: i32) -> Option<ARef<Self>> {
        // SAFETY: The namespace is valid. The result is null or a counted reference.
        unsafe { Self::from_counted(bindings::rust_rdma_dev_get_by_index(net.as_raw(), ifindex)) }
    }

    /// Creates a reference from a C pointer.
    ///
    /// # Safety
    ///
    /// The device must be valid, and its counter not zero, for the duration of `'a`.
    pub(crate) unsafe fn from_raw<'a>(dev: *const bindings::net_device) -> &'a Self {
        // SAFETY: By the safety requirements; `NetDevice` is transparent.
        unsafe { &*dev.cast() }
    }

    /// Takes over a counted reference from C; the result is `None` for a null pointer.
    ///
    /// # Safety
    ///
    /// The caller must own the reference, and must not use it any more.
    pub(crate) unsafe fn from_counted(dev: *mut bindings::net_device) -> Option<ARef<Self>> {
        // SAFETY: By the safety requirements; `NetDevice` is transparent.
        NonNull::new(dev.cast()).map(|dev| unsafe { ARef::from_raw(dev) })
    }

    /// Returns the C object.
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Returns whether both are the same device.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }

    /// Returns the interface index, which is unique within the namespace.
    pub(crate) fn ifindex(&self) -> i32 {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netdev_ifindex(self.as_raw()) }
    }

    /// Returns the namespace of the device, or `None` if that namespace is being destroyed.
    pub(crate) fn net(&self) -> Option<ARef<Net>> {
        // SAFETY: The device is valid. The result is null or a counted reference.
        unsafe { Net::from_counted(bindings::rust_rdma_dev_net(self.as_raw())) }
    }

    /// Returns the MTU in bytes.
    pub(crate) fn mtu(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netdev_mtu(self.as_raw()) }
    }

    /// Returns whether the device is administratively up.
    pub(crate) fn is_up(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netdev_flags(self.as_raw()) & IFF_UP != 0 }
    }

    /// Returns whether the device is up and has a carrier, so that it carries packets.
    pub(crate) fn has_link(&self) -> bool {
        // SAFETY: The device is valid.
        self.is_up() && unsafe { bindings::rust_rdma_netdev_has_carrier(self.as_raw()) }
    }

    /// Returns the link-layer address and its length in bytes.
    pub(crate) fn hw_addr(&self) -> ([u8; MAX_ADDR_LEN], usize) {
        let mut addr = [0; MAX_ADDR_LEN];
        // SAFETY: The device is valid, and so is the buffer, of `MAX_ADDR_LEN` bytes.
        let len =
            unsafe { bindings::rust_rdma_netdev_hw_addr(self.as_raw(), addr.as_mut_ptr(), 32) };
        (addr, len.into())
    }

    /// Returns the lower device, if this is a VLAN device.
    pub(crate) fn vlan_real_dev(&self) -> Option<ARef<Self>> {
        // SAFETY: The device is valid.
        if !unsafe { bindings::rust_rdma_is_vlan_dev(self.as_raw()) } {
            return None;
        }
        // SAFETY: The device is a VLAN. The result is a counted reference.
        unsafe { Self::from_counted(bindings::rust_rdma_vlan_dev_real_dev(self.as_raw())) }
    }

    /// Returns whether the device is the master of a bond.
    pub(crate) fn is_bond_master(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_netif_is_bond_master(self.as_raw()) }
    }

    /// Returns the service level (0 to 15) for a type of service.
    ///
    /// It comes from the traffic classes or from the VLAN's egress map: those of the lower device,
    /// if this is no VLAN and has one, else those of this device.
    pub(crate) fn service_level(&self, tos: u8) -> u8 {
        // SAFETY: The device is valid.
        unsafe { bindings::rust_rdma_tos_to_sl(self.as_raw(), tos) }
    }

    /// Returns whether IPv4 packets from `local` to `peer` leave by this device.
    ///
    /// Both must be unicast addresses of hosts, not loopback addresses; otherwise this is false.
    /// The addresses are in network byte order. Never sleeps.
    pub(crate) fn is_route_v4(&self, local: [u8; 4], peer: [u8; 4]) -> bool {
        // SAFETY: The device is valid, and so are the addresses.
        unsafe {
            bindings::rust_rdma_reverse_path_ok4(self.as_raw(), local.as_ptr(), peer.as_ptr())
        }
    }

    /// Returns whether IPv6 packets from `local` to `peer` leave by this device.
    ///
    /// Addresses are in network byte order. Never sleeps.
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
