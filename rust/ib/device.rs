// SPDX-License-Identifier: GPL-2.0

//! RDMA devices and their ports.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::{addr::Storage, gid::GidType};
use crate::{
    bindings,
    kext::{net::Net, netdev::NetDevice},
};
use cmproto::addr::{Gid, SockAddr};
use core::{
    ops::{Deref, RangeInclusive},
    ptr::{self, NonNull},
};
use kernel::{
    fmt,
    prelude::*,
    sync::{aref::ARef, Arc},
    types::Opaque,
};

/// The time after which the removal of a device warns that it waits for references, in
/// milliseconds.
const WARN_INTERVAL_MS: u32 = 10_000;

/// The type of a device (`enum rdma_node_type`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeType {
    /// An InfiniBand channel adapter, and every RoCE adapter.
    IbCa,
    /// An InfiniBand switch.
    IbSwitch,
    /// An InfiniBand router.
    IbRouter,
    /// An iWARP adapter.
    Rnic,
    /// Another type, by its number.
    Other(u8),
}

impl From<u8> for NodeType {
    fn from(value: u8) -> Self {
        match value {
            1 => Self::IbCa,
            2 => Self::IbSwitch,
            3 => Self::IbRouter,
            4 => Self::Rnic,
            other => Self::Other(other),
        }
    }
}

/// The constant properties of a device by which a device is chosen.
#[derive(Copy, Clone, Debug)]
pub(crate) struct DeviceTraits {
    /// The device index of netlink.
    pub(crate) index: u32,
    /// The type of the node.
    pub(crate) node_type: NodeType,
    /// Set if connections are made by the iWARP CM, not by the InfiniBand CM.
    pub(crate) is_iwarp: bool,
}

/// A copy of the name of a device, which user space may change.
#[derive(Copy, Clone)]
pub(crate) struct DeviceName {
    bytes: [u8; bindings::IB_DEVICE_NAME_MAX as usize],
}

impl Deref for DeviceName {
    type Target = [u8];

    /// Returns the name without a terminating NUL.
    fn deref(&self) -> &[u8] {
        self.bytes.split(|b| *b == 0).next().unwrap_or(&[])
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.utf8_chunks() {
            f.write_str(part.valid())?;
        }
        Ok(())
    }
}

/// An RDMA device (`struct ib_device`).
///
/// # Invariants
///
/// A `&Device` comes from a [`DeviceRef`], or is lent by the RDMA core for the time of a call: the
/// device is registered while the reference is usable.
#[repr(transparent)]
pub(crate) struct Device(Opaque<bindings::ib_device>);

// SAFETY: The RDMA core lets any task use a registered device.
unsafe impl Send for Device {}

// SAFETY: The methods below read fields that are constant while the device is registered, or call
// functions of the RDMA core that do their own locking.
unsafe impl Sync for Device {}

impl Device {
    /// Creates a reference from a pointer of the RDMA core.
    ///
    /// # Safety
    ///
    /// The device must stay registered for `'a`.
    pub(crate) unsafe fn from_raw<'a>(ptr: *const bindings::ib_device) -> &'a Self {
        // SAFETY: `Device` is a transparent wrapper, and the caller guarantees that the device
        // lives.
        unsafe { &*ptr.cast() }
    }

    /// Returns the C object.
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// Returns the name, for instance `rxe0`.
    pub(crate) fn name(&self) -> DeviceName {
        let mut bytes = [0; bindings::IB_DEVICE_NAME_MAX as usize];
        // SAFETY: The device is registered by the type invariant.
        let name: *const c_char = unsafe { (&raw const (*self.as_raw()).name).cast() };
        for (i, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: `i` is below the length of the array. The name may be changed at the same
            // time, one byte at a time, hence the volatile access; any mixture of bytes is
            // acceptable.
            *byte = unsafe { name.add(i).read_volatile() };
        }
        DeviceName { bytes }
    }

    /// Returns the device index of netlink.
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: The device is registered by the type invariant, and so has its final index.
        unsafe { (*self.as_raw()).index }
    }

    /// Returns the GUID of the node, in network byte order.
    pub(crate) fn node_guid(&self) -> [u8; 8] {
        // SAFETY: The device is registered by the type invariant.
        unsafe { (*self.as_raw()).node_guid }.to_ne_bytes()
    }

    /// Returns the type of the node.
    pub(crate) fn node_type(&self) -> NodeType {
        // SAFETY: The device is registered by the type invariant.
        NodeType::from(unsafe { (*self.as_raw()).node_type })
    }

    /// Returns the properties by which a device is chosen.
    pub(crate) fn traits(&self) -> DeviceTraits {
        DeviceTraits {
            index: self.index(),
            node_type: self.node_type(),
            is_iwarp: self.ports().any(|port| self.cap_iw_cm(port)),
        }
    }

    /// Returns the local CA ack delay of the device, a 5-bit time code (IBTA 9.9.2.1.1).
    pub(crate) fn ca_ack_delay(&self) -> u8 {
        // SAFETY: The device is registered by the type invariant.
        unsafe { (*self.as_raw()).attrs.local_ca_ack_delay }
    }

    /// Returns the maximum number of address handles, or 0 if the driver does not say it.
    pub(crate) fn max_ah(&self) -> u32 {
        // SAFETY: The device is registered by the type invariant.
        let max = unsafe { (*self.as_raw()).attrs.max_ah };
        // It has a sign in Linux 7.2.
        u32::try_from(i64::from(max)).unwrap_or(0)
    }

    /// Returns whether the device supports RDMA FLUSH to global visibility or to persistence.
    pub(crate) fn has_flush(&self) -> bool {
        self.has_capability(
            bindings::ib_device_cap_flags_IB_DEVICE_FLUSH_GLOBAL
                | bindings::ib_device_cap_flags_IB_DEVICE_FLUSH_PERSISTENT,
        )
    }

    /// Returns whether queue pairs can migrate to an alternate path.
    pub(crate) fn can_migrate(&self) -> bool {
        self.has_capability(bindings::ib_device_cap_flags_IB_DEVICE_AUTO_PATH_MIG)
    }

    /// Returns whether the device has one of the capabilities (`enum ib_device_cap_flags`).
    fn has_capability(&self, any: bindings::ib_device_cap_flags) -> bool {
        // SAFETY: The device is registered by the type invariant.
        let flags = unsafe { (*self.as_raw()).attrs.device_cap_flags };
        flags & u64::try_from(any).unwrap_or(0) != 0
    }

    /// Returns the port numbers: 1 to the number of ports, or only 0 for a switch.
    pub(crate) fn ports(&self) -> RangeInclusive<u32> {
        if self.node_type() == NodeType::IbSwitch {
            return 0..=0;
        }
        // SAFETY: The device is registered by the type invariant.
        1..=unsafe { (*self.as_raw()).phys_port_cnt }
    }

    /// Returns whether the device has a port with this number.
    pub(crate) fn is_port_valid(&self, port: u32) -> bool {
        self.ports().contains(&port)
    }

    /// Returns the result of `predicate` for `port`, or false if there is no such port.
    fn port_is(
        &self,
        port: u32,
        predicate: unsafe extern "C" fn(*const bindings::ib_device, u32) -> bool,
    ) -> bool {
        // SAFETY: The device is registered, and the port is one of its ports.
        self.is_port_valid(port) && unsafe { predicate(self.as_raw(), port) }
    }

    /// Returns whether the IB CM makes connections at the port (InfiniBand and RoCE).
    pub(crate) fn cap_ib_cm(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_ib_cm)
    }

    /// Returns whether the iWARP CM makes connections at the port.
    pub(crate) fn cap_iw_cm(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_iw_cm)
    }

    /// Returns whether the subnet of the port has a subnet administrator, as on InfiniBand.
    pub(crate) fn cap_ib_sa(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_ib_sa)
    }

    /// Returns whether the port supports native addresses (`AF_IB`).
    pub(crate) fn cap_af_ib(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_af_ib)
    }

    /// Returns whether the port has an InfiniBand link.
    pub(crate) fn protocol_ib(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_protocol_ib)
    }

    /// Returns whether the paths of the port come from a subnet administrator, as on InfiniBand and
    /// Omni-Path.
    pub(crate) fn has_ib_paths(&self, port: u32) -> bool {
        self.protocol_ib(port) && self.cap_ib_sa(port)
    }

    /// Returns whether the port has the address vectors of Omni-Path, with LIDs of 32 bits.
    pub(crate) fn has_opa_lids(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_opa_ah)
    }

    /// Returns whether the port speaks RoCE, of any version.
    pub(crate) fn protocol_roce(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_protocol_roce)
    }

    /// Returns whether the port speaks RoCE v2.
    pub(crate) fn protocol_roce_udp_encap(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_protocol_roce_udp_encap)
    }

    /// Returns whether the port supports GIDs of type `ty`.
    pub(crate) fn supports_gid_type(&self, port: u32, ty: GidType) -> bool {
        if !self.is_port_valid(port) {
            return false;
        }
        // SAFETY: The device is registered, and the port is one of its ports.
        let mask = unsafe { bindings::roce_gid_type_mask_support(self.as_raw(), port) };
        mask & (1 << ty as u32) != 0
    }

    /// Returns the default GID type of the port: RoCE v2 if supported, else RoCE v1 on RoCE ports.
    pub(crate) fn default_gid_type(&self, port: u32) -> GidType {
        if self.supports_gid_type(port, GidType::RoceV2) {
            GidType::RoceV2
        } else if self.supports_gid_type(port, GidType::RoceV1) {
            GidType::RoceV1
        } else {
            GidType::Ib
        }
    }

    /// Returns the interface of IP over InfiniBand that a request received at the port is for.
    ///
    /// That is the interface in the partition of `pkey`, with the GID `gid` if one is given. If
    /// there are several, the one with the address `addr` is chosen.
    ///
    /// Sleeps, and must not be called in [`ClientOps::add`](super::client::ClientOps::add).
    pub(crate) fn net_dev_by_params(
        &self,
        port: u32,
        pkey: u16,
        gid: Option<&Gid>,
        addr: &SockAddr,
    ) -> Option<ARef<NetDevice>> {
        if !self.is_port_valid(port) {
            return None;
        }
        let gid = gid.map(|gid| bindings::ib_gid { raw: gid.0 });
        let gid = gid.as_ref().map_or(ptr::null(), ptr::from_ref);
        let addr = Storage::new(addr);
        // SAFETY: The device is registered and has the port. The GID and the address, which is as
        // long as any, are used during the call only. The result is null or a counted reference.
        unsafe {
            NetDevice::from_counted(bindings::ib_get_net_dev_by_params(
                self.as_raw(),
                port,
                pkey,
                gid,
                addr.as_ptr(),
            ))
        }
    }

    /// Returns the network namespace that the device belongs to.
    pub(crate) fn net(&self) -> ARef<Net> {
        // SAFETY: The device is registered, and holds a reference to its namespace.
        unsafe { Net::from_raw(bindings::rust_rdma_ib_device_net(self.as_raw())) }.into()
    }

    /// Returns whether the device may be used in the network namespace `net`.
    pub(crate) fn access_netns(&self, net: &Net) -> bool {
        // SAFETY: The device is registered, and `net` is alive while there is a reference to it.
        unsafe { bindings::rdma_dev_access_netns(self.as_raw(), net.as_raw()) }
    }
}

impl PartialEq for Device {
    /// Returns whether both are the same device.
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Device {}

/// The drop of the last reference to a device, as a completion.
#[pin_data]
struct LastDrop {
    #[pin]
    completion: Opaque<bindings::completion>,
}

// SAFETY: Completions may be used by any task.
unsafe impl Send for LastDrop {}

// SAFETY: Completions do their own locking.
unsafe impl Sync for LastDrop {}

impl LastDrop {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            completion <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is valid for writes, and the object that is made there stays
                // there.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }
}

/// The object that the references to a device share.
///
/// # Invariants
///
/// `device` is registered for as long as this object lives.
struct Shared {
    device: NonNull<bindings::ib_device>,
    last_drop: Arc<LastDrop>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `last_drop` is initialised and alive.
        unsafe { bindings::complete_all(self.last_drop.completion.get()) };
    }
}

/// A reference that keeps a device registered.
///
/// Cloning is cheap. The removal of the device waits until all references are dropped.
#[derive(Clone)]
pub(crate) struct DeviceRef(Arc<Shared>);

// SAFETY: The reference gives access to a `Device`, which any task may use, and to a completion.
unsafe impl Send for DeviceRef {}

// SAFETY: The reference gives access to a `Device`, which any task may use, and to a completion.
unsafe impl Sync for DeviceRef {}

impl DeviceRef {
    /// Creates the first reference to a device, and the handle that waits for the last one.
    ///
    /// # Safety
    ///
    /// `device` must stay registered until [`LastRef::wait`] returns, and the returned handle
    /// must not be dropped before.
    pub(super) unsafe fn new(device: NonNull<bindings::ib_device>) -> Result<(Self, LastRef)> {
        let last_drop = Arc::pin_init(LastDrop::new(), GFP_KERNEL)?;
        // INVARIANT: The caller guarantees that the device outlives all references.
        let shared = Shared {
            device,
            last_drop: last_drop.clone(),
        };
        Ok((Self(Arc::new(shared, GFP_KERNEL)?), LastRef(last_drop)))
    }
}

impl Deref for DeviceRef {
    type Target = Device;

    fn deref(&self) -> &Device {
        // SAFETY: By the invariant of `Shared` the device is registered while `self` exists.
        unsafe { Device::from_raw(self.0.device.as_ptr()) }
    }
}

impl PartialEq for DeviceRef {
    /// Returns whether both refer to the same device.
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for DeviceRef {}

/// A handle to wait for the drop of the last reference to a device.
pub(super) struct LastRef(Arc<LastDrop>);

impl LastRef {
    /// Waits until all references are dropped, and logs a warning every 10 seconds.
    pub(super) fn wait(self, name: &DeviceName) {
        let timeout = kernel::time::msecs_to_jiffies(WARN_INTERVAL_MS);
        // SAFETY: The completion is initialised and alive.
        while unsafe { bindings::wait_for_completion_timeout(self.0.completion.get(), timeout) }
            == 0
        {
            pr_warn!("{name}: removal of the device waits for references to it\n");
        }
    }
}
