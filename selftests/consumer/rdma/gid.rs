// SPDX-License-Identifier: GPL-2.0

//! GIDs: the addresses of ports.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use super::device::Device;
use crate::bindings;
use core::{net::Ipv4Addr, ptr};
use kernel::{
    error::{from_err_ptr, to_result},
    prelude::*,
};

/// An address of 16 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Gid(pub(crate) [u8; 16]);

impl Gid {
    /// The address that stands for one of IPv4.
    pub(crate) fn from_ipv4(address: Ipv4Addr) -> Self {
        Self(address.to_ipv6_mapped().octets())
    }

    /// Returns true if the address stands for one of IPv4.
    pub(crate) fn is_ipv4(self) -> bool {
        self.0
            .starts_with(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff])
    }

    /// The GID of this subnet that is made from a LID of Omni-Path.
    pub(crate) fn with_opa_lid(mut self, lid: u32) -> Self {
        let made = (0x0006_6a00 << 32 | u64::from(lid)).to_be_bytes();
        let id = self.0.iter_mut().skip(8);
        id.zip(made).for_each(|(to, from)| *to = from);
        self
    }

    pub(super) fn from_raw(raw: &bindings::ib_gid) -> Self {
        // SAFETY: Any bytes are a GID.
        Self(unsafe { raw.raw })
    }

    pub(super) fn to_raw(self) -> bindings::ib_gid {
        bindings::ib_gid { raw: self.0 }
    }
}

/// An address of Ethernet.
pub(crate) type Mac = [u8; bindings::ETH_ALEN as usize];

/// The identity of an entry of a table of GIDs: to compare.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct GidIdentity(usize);

impl GidIdentity {
    pub(super) fn new(attr: *const bindings::ib_gid_attr) -> Self {
        Self(attr.addr())
    }
}

/// An entry of the table of GIDs of a port (`struct ib_gid_attr`).
///
/// # Invariants
///
/// `attr` is an entry of a table of `device`, and `self` owns a reference to it.
pub(crate) struct GidAttr {
    attr: ptr::NonNull<bindings::ib_gid_attr>,
    _device: Device,
}

// SAFETY: References to entries can be used and dropped by any task.
unsafe impl Send for GidAttr {}

// SAFETY: All that is read here is constant while there is a reference.
unsafe impl Sync for GidAttr {}

impl GidAttr {
    /// The entry of this index; fails if there is none.
    pub(crate) fn get(device: &Device, port: u32, index: i32) -> Result<Self> {
        // SAFETY: The device is there, and any port and index can be asked for.
        let attr = unsafe { bindings::rdma_get_gid_attr(device.as_raw(), port, index) };
        // INVARIANT: The reference is given to the caller.
        Ok(Self {
            attr: ptr::NonNull::new(from_err_ptr(attr.cast_mut())?).ok_or(ENOENT)?,
            _device: device.clone(),
        })
    }

    pub(super) fn as_raw(&self) -> *const bindings::ib_gid_attr {
        self.attr.as_ptr()
    }

    fn attr(&self) -> &bindings::ib_gid_attr {
        // SAFETY: By the type invariant there is a reference. Only `ndev` may change, and is not read.
        unsafe { self.attr.as_ref() }
    }

    pub(crate) fn identity(&self) -> GidIdentity {
        GidIdentity::new(self.as_raw())
    }

    pub(crate) fn gid(&self) -> Gid {
        Gid::from_raw(&self.attr().gid)
    }

    /// Returns true if packets with the GID are those of RoCE v2.
    pub(crate) fn is_roce_v2(&self) -> bool {
        self.attr().gid_type == bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP
    }

    /// Returns true if it is one of InfiniBand, which RoCE v1 shares its number with.
    pub(crate) fn is_ib(&self) -> bool {
        self.attr().gid_type == bindings::ib_gid_type_IB_GID_TYPE_IB
    }

    pub(crate) fn index(&self) -> u16 {
        self.attr().index
    }

    pub(crate) fn port(&self) -> u32 {
        self.attr().port_num
    }

    /// The address of the interface that the GID is of.
    pub(crate) fn mac(&self) -> Result<Mac> {
        let mut mac = Mac::default();
        // SAFETY: By the type invariant there is a reference; there is room for an address, and the
        // VLAN is not asked for.
        to_result(unsafe {
            bindings::rdma_read_gid_l2_fields(self.as_raw(), ptr::null_mut(), mac.as_mut_ptr())
        })?;
        Ok(mac)
    }
}

impl Drop for GidAttr {
    fn drop(&mut self) {
        // SAFETY: The reference is ours by the type invariant.
        unsafe { bindings::rdma_put_gid_attr(self.as_raw()) };
    }
}
