// SPDX-License-Identifier: GPL-2.0

//! Entries of the GID tables of ports.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use super::{device::DeviceRef, mad_source::MadSource};
use crate::{
    bindings,
    kext::{error::ToKernel, netdev::NetDevice},
};
use cmproto::{
    addr::{Gid, SockAddr},
    errno::Errno,
};
use core::ptr::{self, NonNull};
use kernel::{
    error::{from_err_ptr, to_result},
    prelude::*,
    sync::{aref::ARef, rcu},
};

/// The type of an entry in a GID table (`enum ib_gid_type`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum GidType {
    /// A GID of InfiniBand.
    Ib = bindings::ib_gid_type_IB_GID_TYPE_IB,
    /// A GID of RoCE v1, which has a GRH directly above Ethernet.
    RoceV1 = bindings::ib_gid_type_IB_GID_TYPE_ROCE,
    /// A GID of RoCE v2, which uses UDP over IP.
    RoceV2 = bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP,
}

impl GidType {
    /// Converts an `enum ib_gid_type`; an unknown value is taken as InfiniBand.
    pub(crate) fn from_raw(value: u32) -> Self {
        match value {
            bindings::ib_gid_type_IB_GID_TYPE_ROCE => Self::RoceV1,
            bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => Self::RoceV2,
            _ => Self::Ib,
        }
    }
}

/// The type of the network header of a received message (`enum rdma_network_type`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NetworkType {
    /// InfiniBand, with or without a GRH.
    Ib,
    /// RoCE v1.
    RoceV1,
    /// RoCE v2 over IPv4.
    Ipv4,
    /// RoCE v2 over IPv6.
    Ipv6,
}

impl NetworkType {
    pub(crate) fn from_raw(value: u32) -> Self {
        match value {
            bindings::rdma_network_type_RDMA_NETWORK_ROCE_V1 => Self::RoceV1,
            bindings::rdma_network_type_RDMA_NETWORK_IPV4 => Self::Ipv4,
            bindings::rdma_network_type_RDMA_NETWORK_IPV6 => Self::Ipv6,
            _ => Self::Ib,
        }
    }

    /// Returns the number of the type in C.
    pub(crate) fn to_raw(self) -> u32 {
        match self {
            Self::Ib => bindings::rdma_network_type_RDMA_NETWORK_IB,
            Self::RoceV1 => bindings::rdma_network_type_RDMA_NETWORK_ROCE_V1,
            Self::Ipv4 => bindings::rdma_network_type_RDMA_NETWORK_IPV4,
            Self::Ipv6 => bindings::rdma_network_type_RDMA_NETWORK_IPV6,
        }
    }

    /// Returns the GID type that belongs to the header.
    pub(crate) fn gid_type(self) -> GidType {
        match self {
            Self::Ib => GidType::Ib,
            Self::RoceV1 => GidType::RoceV1,
            Self::Ipv4 | Self::Ipv6 => GidType::RoceV2,
        }
    }
}

/// A reference to an entry in the GID table of a port (`struct ib_gid_attr`).
///
/// The entry keeps its index for as long as there are references, even if the GID is deleted.
///
/// # Invariants
///
/// `attr` is an entry of a table of `device`, and `self` owns a reference to it.
pub(crate) struct GidAttr {
    attr: NonNull<bindings::ib_gid_attr>,
    device: DeviceRef,
}

// SAFETY: References to entries can be used and dropped by any task.
unsafe impl Send for GidAttr {}

// SAFETY: All fields that are read here are constant while there is a reference, except for the
// network device, which is read under RCU.
unsafe impl Sync for GidAttr {}

impl GidAttr {
    /// Takes over the result of a lookup.
    ///
    /// # Safety
    ///
    /// `attr` must be an error pointer, or an entry of `device` with a reference that the caller
    /// owns and gives up.
    unsafe fn from_lookup(attr: *const bindings::ib_gid_attr, device: &DeviceRef) -> Result<Self> {
        let attr = from_err_ptr(attr.cast_mut())?;
        // INVARIANT: The caller transfers a reference.
        Ok(Self {
            attr: NonNull::new(attr).ok_or(ENOENT)?,
            device: device.clone(),
        })
    }

    /// Takes another reference to an entry.
    ///
    /// Fails with [`EINVAL`] if it is not an entry of `device`.
    ///
    /// # Safety
    ///
    /// The caller must guarantee that the entry has a reference during the call.
    pub(crate) unsafe fn hold(attr: &bindings::ib_gid_attr, device: &DeviceRef) -> Result<Self> {
        if attr.device != device.as_raw() {
            return Err(EINVAL);
        }
        // SAFETY: By the safety requirements.
        unsafe { bindings::rdma_hold_gid_attr(attr) };
        // INVARIANT: The call above took the reference.
        Ok(Self {
            attr: attr.into(),
            device: device.clone(),
        })
    }

    /// Finds the first entry at `port` with this GID and type, and with `ndev` as its network
    /// device if one is given.
    ///
    /// Fails with [`ENOENT`] if there is none.
    pub(crate) fn find_by_port(
        device: &DeviceRef,
        port: u32,
        gid: &Gid,
        ty: GidType,
        ndev: Option<&NetDevice>,
    ) -> Result<Self> {
        let gid = bindings::ib_gid { raw: gid.0 };
        let ndev = ndev.map_or(ptr::null_mut(), NetDevice::as_raw);
        // SAFETY: The device is registered, the function checks the port, and the rest is used
        // during the call only. The reference in the result is ours.
        unsafe {
            let attr = bindings::rdma_find_gid_by_port(
                device.as_raw(),
                &raw const gid,
                ty as u32,
                port,
                ndev,
            );
            Self::from_lookup(attr, device)
        }
    }

    /// Finds an entry like [`GidAttr::find_by_port`], but at any port.
    pub(crate) fn find(
        device: &DeviceRef,
        gid: &Gid,
        ty: GidType,
        ndev: Option<&NetDevice>,
    ) -> Result<Self> {
        let gid = bindings::ib_gid { raw: gid.0 };
        let ndev = ndev.map_or(ptr::null_mut(), NetDevice::as_raw);
        // SAFETY: The device is registered, and the rest is used during the call only. The
        // reference in the result is ours.
        unsafe {
            let attr = bindings::rdma_find_gid(device.as_raw(), &raw const gid, ty as u32, ndev);
            Self::from_lookup(attr, device)
        }
    }

    /// Returns the entry at `index` of the table of `port`.
    ///
    /// Fails with [`EINVAL`] if there is no such port or index, and `ENODATA` if the entry is not
    /// in use.
    pub(crate) fn get(device: &DeviceRef, port: u32, index: u16) -> Result<Self> {
        // SAFETY: The device is registered; the function checks the port and the index. The
        // reference in the result is ours.
        unsafe {
            let attr = bindings::rdma_get_gid_attr(device.as_raw(), port, c_int::from(index));
            Self::from_lookup(attr, device)
        }
    }

    /// Finds the entry that a message was sent to, which becomes the source of the answer.
    ///
    /// On RoCE that is the entry with the GID, the type and the VLAN of the message. Fails with
    /// `EPROTOTYPE` if the message has no GRH, and [`ENOENT`] if there is no such entry (any more).
    pub(crate) fn for_received(device: &DeviceRef, mad: &MadSource) -> Result<Self> {
        if !mad.has_grh {
            return Err(Errno::EPROTOTYPE.to_kernel());
        }
        let ty = mad.network.gid_type();
        let first = Self::find_by_port(device, mad.port_num, &mad.dgid, ty, None)?;
        if !device.protocol_roce(mad.port_num) || first.vlan_id()? == mad.vlan_id {
            return Ok(first);
        }
        drop(first);
        // A port can have the same GID in several VLANs. This is rare, and there is no lookup for
        // it.
        // SAFETY: The device is registered, and has the port, because the lookup above succeeded.
        let len = unsafe { bindings::rust_rdma_gid_tbl_len(device.as_raw(), mad.port_num) };
        for index in 0..u16::try_from(len).unwrap_or(u16::MAX) {
            let Ok(attr) = Self::get(device, mad.port_num, index) else {
                continue;
            };
            let is_of_message = attr.gid() == mad.dgid && attr.gid_type() == ty;
            if is_of_message && attr.vlan_id() == Ok(mad.vlan_id) {
                return Ok(attr);
            }
        }
        Err(ENOENT)
    }

    pub(crate) fn as_raw(&self) -> *const bindings::ib_gid_attr {
        self.attr.as_ptr()
    }

    fn attr(&self) -> &bindings::ib_gid_attr {
        // SAFETY: By the type invariant the entry lives as long as `self`. Only its field `ndev`
        // changes, which is not read through this reference.
        unsafe { self.attr.as_ref() }
    }

    /// Returns the GID.
    pub(crate) fn gid(&self) -> Gid {
        // SAFETY: Any bytes are a GID.
        Gid(unsafe { self.attr().gid.raw })
    }

    /// Returns the type of the GID.
    pub(crate) fn gid_type(&self) -> GidType {
        GidType::from_raw(self.attr().gid_type)
    }

    /// Returns the index in the GID table.
    pub(crate) fn index(&self) -> u16 {
        self.attr().index
    }

    /// Returns the port number.
    pub(crate) fn port_num(&self) -> u32 {
        self.attr().port_num
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &DeviceRef {
        &self.device
    }

    /// Calls `f` with the network device of the GID, in an RCU read-side critical section.
    ///
    /// `f` must not sleep. Fails with [`ENODEV`] or [`EINVAL`] if there is no network device (any
    /// more).
    pub(crate) fn with_ndev<R>(&self, f: impl FnOnce(&NetDevice) -> R) -> Result<R> {
        let _rcu = rcu::read_lock();
        // SAFETY: The entry lives by the type invariant, and this is a read-side critical section.
        let ndev = unsafe { bindings::rdma_read_gid_attr_ndev_rcu(self.attr.as_ptr()) };
        let ndev = from_err_ptr(ndev)?;
        // SAFETY: The network device lives until the end of the critical section.
        Ok(f(unsafe { NetDevice::from_raw(ndev) }))
    }

    /// Returns the network device of the GID.
    ///
    /// Fails like [`GidAttr::with_ndev`].
    pub(crate) fn ndev(&self) -> Result<ARef<NetDevice>> {
        self.with_ndev(|ndev| ndev.into())
    }

    /// Returns the VLAN id of the GID, if its network device is a VLAN.
    pub(crate) fn vlan_id(&self) -> Result<Option<u16>> {
        let mut vlan_id = NO_VLAN;
        // SAFETY: The entry lives by the type invariant; the MAC address is not requested.
        to_result(unsafe {
            bindings::rdma_read_gid_l2_fields(self.attr.as_ptr(), &raw mut vlan_id, ptr::null_mut())
        })?;
        Ok((vlan_id < NO_VLAN).then_some(vlan_id))
    }
}

/// The value that ib_core returns as VLAN id if there is no VLAN.
const NO_VLAN: u16 = 0xffff;

impl Clone for GidAttr {
    fn clone(&self) -> Self {
        // SAFETY: By the type invariant there is a reference already.
        unsafe { bindings::rdma_hold_gid_attr(self.attr.as_ptr()) };
        // INVARIANT: The call above took the reference.
        Self {
            attr: self.attr,
            device: self.device.clone(),
        }
    }
}

impl Drop for GidAttr {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the reference is ours. The release of the last reference
        // needs the device. ib_core waits for it when the device is unregistered, which `device`
        // prevents up to here.
        unsafe { bindings::rdma_put_gid_attr(self.attr.as_ptr()) };
    }
}

/// Returns the IP address that a RoCE GID stands for (`rdma_gid2ip()`).
pub(super) fn ip_of(gid: &Gid) -> SockAddr {
    match gid.to_v4() {
        Some(addr) => SockAddr::v4(addr, 0),
        None => SockAddr::v6(gid.0, 0),
    }
}

/// Returns the MAC address in a link-local GID of RoCE v1, which has no other way to resolve it.
pub(super) fn link_local_mac(sgid: &GidAttr, dgid: &Gid) -> Option<[u8; 6]> {
    if sgid.gid_type() != GidType::RoceV1 {
        return None;
    }
    match dgid.0 {
        [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, _, _, d, e, f] => Some([a ^ 2, b, c, d, e, f]),
        _ => None,
    }
}
