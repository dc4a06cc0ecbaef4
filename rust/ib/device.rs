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

/// How long the removal of a device waits in silence for references, in milliseconds.
const PATIENCE_MS: u32 = 10_000;

/// What a device is, by the standard that its programs see (`enum rdma_node_type`).
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
    /// Any other, by number.
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

/// What a device is to who chooses among devices; it does not change.
#[derive(Copy, Clone, Debug)]
pub(crate) struct DeviceTraits {
    /// The number that netlink names it by.
    pub(crate) index: u32,
    /// The type of the node.
    pub(crate) node_type: NodeType,
    /// Whether the iWARP CM connects it, and not the InfiniBand CM.
    pub(crate) is_iwarp: bool,
}

/// The name of a device at one moment: user space may rename it.
#[derive(Copy, Clone)]
pub(crate) struct DeviceName {
    bytes: [u8; bindings::IB_DEVICE_NAME_MAX as usize],
}

impl Deref for DeviceName {
    type Target = [u8];

    /// The bytes of the name, without a terminating NUL.
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
/// A `&Device` comes from a [`DeviceRef`], or is lent for the time of a call by the RDMA core: the
/// device is registered while the reference is usable.
#[repr(transparent)]
pub(crate) struct Device(Opaque<bindings::ib_device>);

// SAFETY: The RDMA core lets any task use a registered device.
unsafe impl Send for Device {}

// SAFETY: What the methods below read is constant while the device is registered, or is read by
// functions of the RDMA core that do their own locking.
unsafe impl Sync for Device {}

impl Device {
    /// Makes a reference from a pointer of the RDMA core.
    ///
    /// # Safety
    ///
    /// The device must stay registered for `'a`.
    pub(super) unsafe fn from_raw<'a>(ptr: *const bindings::ib_device) -> &'a Self {
        // SAFETY: `Device` is a transparent wrapper, and the caller promises that the device lives.
        unsafe { &*ptr.cast() }
    }

    /// The device as the RDMA core knows it.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// The name, for instance `rxe0`.
    pub(crate) fn name(&self) -> DeviceName {
        let mut bytes = [0; bindings::IB_DEVICE_NAME_MAX as usize];
        // SAFETY: The device is registered by the type invariant.
        let name: *const c_char = unsafe { (&raw const (*self.as_raw()).name).cast() };
        for (i, byte) in bytes.iter_mut().enumerate() {
            // SAFETY: `i` is below the length of the array. The name may be changed meanwhile, one
            // byte at a time, hence the volatile access; any mixture of bytes will do.
            *byte = unsafe { name.add(i).read_volatile() };
        }
        DeviceName { bytes }
    }

    /// The number that netlink names the device by.
    pub(crate) fn index(&self) -> u32 {
        // SAFETY: The device is registered by the type invariant, and so has its final index.
        unsafe { (*self.as_raw()).index }
    }

    /// The GUID of the node, in network byte order.
    pub(crate) fn node_guid(&self) -> [u8; 8] {
        // SAFETY: The device is registered by the type invariant.
        unsafe { (*self.as_raw()).node_guid }.to_ne_bytes()
    }

    /// The type of the node.
    pub(crate) fn node_type(&self) -> NodeType {
        // SAFETY: The device is registered by the type invariant.
        NodeType::from(unsafe { (*self.as_raw()).node_type })
    }

    /// What it is to who chooses among devices.
    pub(crate) fn traits(&self) -> DeviceTraits {
        DeviceTraits {
            index: self.index(),
            node_type: self.node_type(),
            is_iwarp: self.ports().any(|port| self.cap_iw_cm(port)),
        }
    }

    /// Time the device may take to acknowledge, an IBA time code of 5 bits (IBTA 9.9.2.1.1).
    pub(crate) fn ca_ack_delay(&self) -> u8 {
        // SAFETY: The device is registered by the type invariant.
        unsafe { (*self.as_raw()).attrs.local_ca_ack_delay }
    }

    /// Whether the device lets a peer flush what it wrote, to both kinds of memory there are.
    pub(crate) fn has_flush(&self) -> bool {
        let flush = bindings::ib_device_cap_flags_IB_DEVICE_FLUSH_GLOBAL
            | bindings::ib_device_cap_flags_IB_DEVICE_FLUSH_PERSISTENT;
        // SAFETY: The device is registered by the type invariant.
        let flags = unsafe { (*self.as_raw()).attrs.device_cap_flags };
        flags & u64::try_from(flush).unwrap_or(0) != 0
    }

    /// Whether the driver is the software RoCE driver, which works over any kind of interface.
    pub(crate) fn is_rxe(&self) -> bool {
        // SAFETY: The device is registered by the type invariant.
        unsafe { (*self.as_raw()).ops.driver_id == bindings::rdma_driver_id_RDMA_DRIVER_RXE }
    }

    /// The numbers of the ports: those of a switch are behind its port 0.
    pub(crate) fn ports(&self) -> RangeInclusive<u32> {
        if self.node_type() == NodeType::IbSwitch {
            return 0..=0;
        }
        // SAFETY: The device is registered by the type invariant.
        1..=unsafe { (*self.as_raw()).phys_port_cnt }
    }

    /// Whether the device has a port of this number.
    pub(crate) fn is_port_valid(&self, port: u32) -> bool {
        self.ports().contains(&port)
    }

    /// Asks `predicate` about `port`; a port that does not exist has no property.
    fn port_is(
        &self,
        port: u32,
        predicate: unsafe extern "C" fn(*const bindings::ib_device, u32) -> bool,
    ) -> bool {
        // SAFETY: The device is registered, and the port is one of its ports.
        self.is_port_valid(port) && unsafe { predicate(self.as_raw(), port) }
    }

    /// Whether connections over the port are made by the IB CM (InfiniBand and RoCE).
    pub(crate) fn cap_ib_cm(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_ib_cm)
    }

    /// Whether connections over the port are made by the iWARP CM.
    pub(crate) fn cap_iw_cm(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_iw_cm)
    }

    /// Whether the subnet of the port has a subnet administrator, as those of InfiniBand have.
    pub(crate) fn cap_ib_sa(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_ib_sa)
    }

    /// Whether the port can be addressed by `AF_IB` addresses.
    pub(crate) fn cap_af_ib(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_cap_af_ib)
    }

    /// Whether the port has an InfiniBand link.
    pub(crate) fn protocol_ib(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_protocol_ib)
    }

    /// Whether the port has an InfiniBand link whose paths a subnet administrator knows, with LIDs of 16
    /// bits.
    pub(crate) fn has_ib_paths(&self, port: u32) -> bool {
        self.protocol_ib(port)
            && self.cap_ib_sa(port)
            && !self.port_is(port, bindings::rust_rdma_cap_opa_ah)
    }

    /// Whether the port speaks RoCE, of any version.
    pub(crate) fn protocol_roce(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_protocol_roce)
    }

    /// Whether the port speaks RoCE v2.
    pub(crate) fn protocol_roce_udp_encap(&self, port: u32) -> bool {
        self.port_is(port, bindings::rust_rdma_protocol_roce_udp_encap)
    }

    /// Whether GIDs of type `ty` can be used at the port.
    pub(crate) fn supports_gid_type(&self, port: u32, ty: GidType) -> bool {
        if !self.is_port_valid(port) {
            return false;
        }
        // SAFETY: The device is registered, and the port is one of its ports.
        let mask = unsafe { bindings::roce_gid_type_mask_support(self.as_raw(), port) };
        mask & (1 << ty as u32) != 0
    }

    /// The type of GID that connections at the port use unless told otherwise: RoCE v2 where there
    /// is, else RoCE v1 on RoCE ports.
    pub(crate) fn default_gid_type(&self, port: u32) -> GidType {
        if self.supports_gid_type(port, GidType::RoceV2) {
            GidType::RoceV2
        } else if self.supports_gid_type(port, GidType::RoceV1) {
            GidType::RoceV1
        } else {
            GidType::Ib
        }
    }

    /// The interface of IP over InfiniBand that a request at the port is for: the one in the partition
    /// of `pkey`, whose own GID is `gid` if that is given. If there are more, the one that has the
    /// address `addr`.
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
        // SAFETY: The device is registered and has the port. The GID and the address, which is as long
        // as any, are used during the call only. The result is null or a counted reference.
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

    /// Whether the network namespace `net` may use the device.
    pub(crate) fn access_netns(&self, net: &Net) -> bool {
        // SAFETY: The device is registered, and `net` is alive while there is a reference to it.
        unsafe { bindings::rdma_dev_access_netns(self.as_raw(), net.as_raw()) }
    }
}

impl PartialEq for Device {
    /// Whether both are the same device.
    fn eq(&self, other: &Self) -> bool {
        ptr::eq(self, other)
    }
}

impl Eq for Device {}

/// The end of all references to a device.
#[pin_data]
struct End {
    #[pin]
    reached: Opaque<bindings::completion>,
}

// SAFETY: Completions may be used by any task.
unsafe impl Send for End {}

// SAFETY: Completions do their own locking.
unsafe impl Sync for End {}

impl End {
    fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            reached <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is valid for writes, and what is made there stays there.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }
}

/// What the references to a device share.
///
/// # Invariants
///
/// `device` is registered as long as this object lives.
struct Shared {
    device: NonNull<bindings::ib_device>,
    end: Arc<End>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: `end` is initialised and alive.
        unsafe { bindings::complete_all(self.end.reached.get()) };
    }
}

/// A reference that keeps a device registered.
///
/// Cheap to clone. The removal of the device waits until all are dropped.
#[derive(Clone)]
pub(crate) struct DeviceRef(Arc<Shared>);

// SAFETY: The reference gives access to a `Device`, which any task may use, and to a completion.
unsafe impl Send for DeviceRef {}

// SAFETY: As above.
unsafe impl Sync for DeviceRef {}

impl DeviceRef {
    /// Creates the first reference to a device, and what waits for the last one.
    ///
    /// # Safety
    ///
    /// `device` must stay registered until [`Leash::wait`] returns, and the returned leash must not
    /// be dropped before.
    pub(super) unsafe fn new(device: NonNull<bindings::ib_device>) -> Result<(Self, Leash)> {
        let end = Arc::pin_init(End::new(), GFP_KERNEL)?;
        // INVARIANT: The caller promises that the device outlives all references.
        let shared = Shared {
            device,
            end: end.clone(),
        };
        Ok((Self(Arc::new(shared, GFP_KERNEL)?), Leash(end)))
    }
}

impl Deref for DeviceRef {
    type Target = Device;

    fn deref(&self) -> &Device {
        // SAFETY: By the invariant of `Shared` the device is registered while `self` is there.
        unsafe { Device::from_raw(self.0.device.as_ptr()) }
    }
}

impl PartialEq for DeviceRef {
    /// Whether both refer to the same device.
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for DeviceRef {}

/// What waits for the last reference to a device.
pub(super) struct Leash(Arc<End>);

impl Leash {
    /// Waits until all references are dropped, and complains while it takes long.
    pub(super) fn wait(self, name: &DeviceName) {
        let timeout = kernel::time::msecs_to_jiffies(PATIENCE_MS);
        // SAFETY: The completion is initialised and alive.
        while unsafe { bindings::wait_for_completion_timeout(self.0.reached.get(), timeout) } == 0 {
            pr_warn!("{name}: removal of the device waits for references to it\n");
        }
    }
}
