// SPDX-License-Identifier: GPL-2.0

//! The devices that connections can be made over.
//!
//! A device is added when ib_core adds it, and removed when ib_core removes it. Whatever uses the
//! device holds a [`DeviceRef`] in some form (an attachment, an address handle, a query), and
//! ib_core's removal waits until all of these are gone. The removal first closes the set of
//! attached endpoints, then ends each of them, and last unregisters the MAD agents.

use super::device_filter::DeviceFilter;
use crate::{
    cm::port::Port,
    core::Core,
    endpoint::{Attachment, Endpoint, EndpointRef, IdKind, Inner},
    ib::{
        device::{DeviceRef, DeviceTraits},
        gid::GidAttr,
        trace,
    },
    kext::{
        delay,
        error::ToKernel,
        gate::{Gate, OwnedGuard},
        net::Net,
        netdev::NetDevice,
    },
    table::members::Members,
};
use cmproto::{
    addr::{Gid, SockAddr},
    errno::Errno,
    origin::IbPort,
    ucma::query::Protocol,
};
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// A device that connections can be made over.
#[pin_data]
pub(crate) struct CmDevice {
    /// The RDMA device.
    pub(crate) device: DeviceRef,
    /// The properties by which a device is chosen.
    pub(crate) traits: DeviceTraits,
    /// The ports that can carry connections, by number.
    ports: RBTree<u32, Arc<Port>>,
    #[pin]
    members: Members<EndpointRef>,
    /// The users of the device that destroy their endpoints themselves. The removal of the device
    /// waits until there are none.
    residents: Arc<Gate>,
}

impl CmDevice {
    /// Creates a device with its ports. Nobody can find it yet.
    fn new(device: &DeviceRef, ports: RBTree<u32, Arc<Port>>) -> Result<Arc<Self>> {
        let device = device.clone();
        let traits = device.traits();
        let residents = Arc::pin_init(Gate::new(), GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(CmDevice {
                device,
                traits,
                ports,
                residents,
                members <- Members::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the port with the number `num`, if it can carry connections.
    pub(crate) fn port(&self, num: u32) -> Option<&Arc<Port>> {
        self.ports.get(&num)
    }

    /// Returns the port with the number `num` as the key of the subnet that its LIDs belong to.
    pub(crate) fn ib_port(&self, num: u32) -> IbPort {
        IbPort {
            device: self.device.index(),
            port: u8::try_from(num).unwrap_or(0),
        }
    }

    /// Keeps the removal of the device waiting until the guard is dropped. Returns `None` if the
    /// device is being removed.
    pub(crate) fn stay(&self) -> Option<OwnedGuard> {
        Gate::enter_owned(&self.residents)
    }

    /// Returns whether the device is being removed.
    pub(super) fn is_closed(&self) -> bool {
        self.members.is_closed()
    }

    /// Ends everything that uses the device.
    fn close(&self) {
        self.members.close();
        delay::point();
        // All endpoints are told before any is taken down. Otherwise the last message of one could
        // reach another at the same device before that has heard of the removal.
        self.members.for_each(|member| member.announce_removal());
        // An endpoint that was ending already may still be in the set.
        self.members.drain(|member| member.bury_removed());
        // These consumers disconnect, for which the ports are needed.
        self.residents.close_and_wait();
        for port in self.ports.values() {
            port.close();
        }
    }

    /// Finds a port that has the GID, or that is up and has a GID with the same subnet prefix.
    /// Returns the number of the port and its GID.
    fn find_native(&self, net: &Net, gid: Gid, pkey: u16) -> Option<(u32, Gid)> {
        if !self.device.access_netns(net) {
            return None;
        }
        self.ports.values().find_map(|port| {
            if !self.device.cap_af_ib(port.num) {
                return None;
            }
            self.device.find_pkey(port.num, pkey).ok()?;
            let is_active = self.device.port_state(port.num).ok()?.is_active();
            let mut gids = self.device.gids(port.num);
            let own =
                gids.find(|own| *own == gid || (is_active && own.prefix() == gid.prefix()))?;
            Some((port.num, own))
        })
    }

    /// Returns whether a port of the device has the GID.
    pub(crate) fn has_gid(&self, gid: &Gid) -> bool {
        self.ports.values().any(|port| {
            let gid_type = port.default_gid_type();
            GidAttr::find_by_port(&self.device, port.num, gid, gid_type, None).is_ok()
        })
    }

    /// Finds a port of the device that has the local address `source`, and the GID of the address.
    /// The source addresses of an InfiniBand port are GIDs, those of other ports are addresses of
    /// interfaces.
    fn find_gid(&self, source: &Source<'_>) -> Option<(&Arc<Port>, GidAttr)> {
        if !self.device.access_netns(source.net) {
            return None;
        }
        self.ports.values().find_map(|port| {
            let find = |gid: &Gid, interface| {
                let gid_type = port.default_gid_type();
                GidAttr::find_by_port(&self.device, port.num, gid, gid_type, interface).ok()
            };
            let attr = match (port.protocol, &source.link, source.interface) {
                (Protocol::Ib, SourceLink::InfiniBand(gid), _) => find(gid, None),
                (Protocol::Iwarp, SourceLink::Other, Some(interface)) => {
                    self.find_iwarp(port.num, source.net, interface)
                }
                (Protocol::Roce, SourceLink::Other, Some(interface)) => {
                    find(&source.addr.to_gid(), Some(interface))
                }
                _ => None,
            };
            Some((port, attr?))
        })
    }

    /// Finds the one GID of an iWARP port, if `interface` is the port's interface in `net`, a VLAN
    /// on top of it, or the interface below it if it is a VLAN.
    fn find_iwarp(&self, port: u32, net: &Net, interface: &NetDevice) -> Option<GidAttr> {
        let attr = GidAttr::get(&self.device, port, 0).ok()?;
        let own = attr.ndev().ok()?;
        let is_vlan_of = |vlan: &NetDevice, real: &NetDevice| {
            vlan.vlan_real_dev().is_some_and(|dev| dev.ptr_eq(real))
        };
        let is_there =
            own.ptr_eq(interface) || is_vlan_of(interface, &own) || is_vlan_of(&own, interface);
        (is_there && own.net()?.ptr_eq(net)).then_some(attr)
    }

    /// Returns the port over which the iWARP CM connects, if there is one.
    pub(super) fn iwarp_port(&self) -> Option<u32> {
        let mut ports = self.ports.values();
        let port = ports.find(|port| port.protocol == Protocol::Iwarp)?;
        Some(port.num)
    }

    /// Returns whether the interface of an iWARP port is in the network namespace `net`.
    pub(super) fn is_iwarp_in(&self, port: u32, net: &Net) -> bool {
        GidAttr::get(&self.device, port, 0)
            .and_then(|attr| attr.ndev())
            .is_ok_and(|own| own.net().is_some_and(|own| own.ptr_eq(net)))
    }
}

/// The kind of link that a local address belongs to.
#[derive(Clone, Copy)]
pub(crate) enum SourceLink {
    /// InfiniBand; the port has this GID.
    InfiniBand(Gid),
    /// Any other link.
    Other,
}

/// A local address, and the namespace, interface and link that it belongs to.
pub(crate) struct Source<'a> {
    pub(crate) addr: &'a SockAddr,
    /// The network namespace.
    pub(crate) net: &'a Net,
    /// The interface that has the address; `None` for a native address.
    pub(crate) interface: Option<&'a NetDevice>,
    /// The kind of link.
    pub(crate) link: SourceLink,
}

/// The devices, by index.
#[pin_data]
pub(crate) struct Devices {
    #[pin]
    list: Mutex<RBTree<u32, Arc<CmDevice>>>,
}

impl Devices {
    /// Creates an empty list.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(RBTree::new(), "rdma_cm_devices"),
        })
    }

    /// Adds a device.
    fn add(&self, device: &Arc<CmDevice>) -> Result {
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?
            .into_node(device.device.index(), device.clone());
        let before = self.list.lock().insert(node);
        drop(before);
        Ok(())
    }

    /// Removes a device.
    fn remove(&self, device: &CmDevice) {
        let node = self.list.lock().remove_node(&device.device.index());
        drop(node);
    }

    /// Returns the first device whose index is not below `index`.
    fn from(&self, index: u32) -> Option<Arc<CmDevice>> {
        let list = self.list.lock();
        let device = list.cursor_lower_bound(&index)?.current().1.clone();
        Some(device)
    }

    /// Returns the device with the index `index`.
    pub(crate) fn by_index(&self, index: u32) -> Option<Arc<CmDevice>> {
        self.from(index)
            .filter(|found| found.device.index() == index)
    }

    /// Calls `visit` for each device, without the lock of the list, until it returns a value.
    pub(crate) fn find_map<T>(
        &self,
        mut visit: impl FnMut(&Arc<CmDevice>) -> Option<T>,
    ) -> Option<T> {
        let mut device = self.from(0)?;
        loop {
            if let Some(found) = visit(&device) {
                return Some(found);
            }
            device = self.from(device.device.index().checked_add(1)?)?;
        }
    }

    /// Calls `visit` for each endpoint that is attached to a device.
    pub(crate) fn for_each_member(&self, mut visit: impl FnMut(&EndpointRef)) {
        let _: Option<()> = self.find_map(|device| {
            device.members.for_each(&mut visit);
            None
        });
    }

    /// Finds the device of `devices` that has the local address `source`, with port and GID. Fails
    /// with `ENODEV` if there is none.
    pub(crate) fn by_source(
        &self,
        devices: DeviceFilter,
        source: &Source<'_>,
    ) -> Result<Attachment> {
        self.find_map(|device| Self::attachment(devices, device, source))
            .ok_or(ENODEV)
    }

    /// Finds a device like [`Devices::by_source`], but prefers the device with the index `index`.
    pub(crate) fn by_source_near(
        &self,
        devices: DeviceFilter,
        index: u32,
        source: &Source<'_>,
    ) -> Result<Attachment> {
        match self
            .by_index(index)
            .and_then(|near| Self::attachment(devices, &near, source))
        {
            Some(attachment) => Ok(attachment),
            None => self.by_source(devices, source),
        }
    }

    fn attachment(
        devices: DeviceFilter,
        device: &Arc<CmDevice>,
        source: &Source<'_>,
    ) -> Option<Attachment> {
        if !devices.admits(&device.traits) {
            return None;
        }
        let (port, gid) = device.find_gid(source)?;
        Some(Attachment {
            device: device.clone(),
            port_num: port.num,
            protocol: port.protocol,
            gid: Some(gid),
        })
    }

    /// Finds the device of `devices`, and its port, that lead to a native address, and the port's
    /// GID. Fails with `ENODEV` if there is none.
    pub(crate) fn by_native(
        &self,
        devices: DeviceFilter,
        net: &Net,
        gid: Gid,
        pkey: u16,
    ) -> Result<(Attachment, Gid)> {
        self.find_map(|device| {
            if !devices.admits(&device.traits) {
                return None;
            }
            let (port_num, own) = device.find_native(net, gid, pkey)?;
            let port = device.port(port_num)?;
            let gid_type = port.default_gid_type();
            let attachment = Attachment {
                device: device.clone(),
                port_num,
                protocol: port.protocol,
                gid: GidAttr::find_by_port(&device.device, port_num, &own, gid_type, None).ok(),
            };
            Some((attachment, own))
        })
        .ok_or(ENODEV)
    }

    /// Finds a port of `devices` that is up, or else any port of the first device. Fails with
    /// `ENODEV` if there is no device.
    pub(crate) fn any_active(&self, devices: DeviceFilter) -> Result<Attachment> {
        let attachment = |device: &Arc<CmDevice>, port: &Port| Attachment {
            device: device.clone(),
            port_num: port.num,
            protocol: port.protocol,
            gid: None,
        };
        self.find_map(|device| {
            let mut ports = device
                .ports
                .values()
                .filter(|_| devices.admits(&device.traits));
            let port = ports.find(|port| {
                device
                    .device
                    .port_state(port.num)
                    .is_ok_and(|state| state.is_active())
            })?;
            Some(attachment(device, port))
        })
        .or_else(|| {
            self.find_map(|device| {
                let port = device
                    .ports
                    .values()
                    .find(|_| devices.admits(&device.traits))?;
                Some(attachment(device, port))
            })
        })
        .ok_or(ENODEV)
    }
}

impl Endpoint {
    /// Attaches the endpoint to a device. Fails with `ENODEV` if the device is being removed.
    pub(crate) fn attach(self: &EndpointRef, inner: &mut Inner, attachment: Attachment) -> Result {
        let device = &attachment.device;
        let stay = match &inner.consumer {
            Some(_) if self.kind == IdKind::RdmaCm => Some(device.stay().ok_or(ENODEV)?),
            _ => None,
        };
        device.members.join(self.number, self)?;
        if self.kind != IdKind::IbCm {
            if let Err(error) = self.head.add(&device.device, attachment.port_num) {
                device.members.leave(self.number);
                return Err(error);
            }
        }
        inner.device = Some(attachment);
        inner.stay = stay;
        Ok(())
    }

    /// Undoes [`Endpoint::attach`]. Called without the endpoint's lock.
    pub(crate) fn detach(&self, attachment: Attachment) {
        // This waits for a netlink dump that is reading the endpoint.
        self.head.del();
        delay::point();
        attachment.device.members.leave(self.number);
    }
}

impl Core {
    /// Adds a device that ib_core has.
    ///
    /// Fails with `EOPNOTSUPP` if no port can carry connections.
    pub(crate) fn add_device(self: &Arc<Self>, device: &DeviceRef) -> Result<Arc<CmDevice>> {
        let mut ports = RBTree::new();
        for num in device.ports() {
            // The ports of Omni-Path, whose paths have longer LIDs, are neither.
            let is_known = device.protocol_roce(num) || device.has_ib_paths(num);
            if (device.cap_ib_cm(num) && is_known) || device.cap_iw_cm(num) {
                ports.try_create_and_insert(num, Port::new(self, device, num)?, GFP_KERNEL)?;
            }
        }
        if ports.is_empty() {
            return Err(Errno::EOPNOTSUPP.to_kernel());
        }
        let device = CmDevice::new(device, ports)?;
        let opened = device
            .ports
            .values()
            .try_for_each(|port| port.open(&device))
            .and_then(|()| self.devices.add(&device));
        if let Err(error) = opened {
            device.close();
            return Err(error);
        }
        delay::point();
        self.show_listeners_at(&device);
        trace::cma::cm_add_one(&device.device);
        Ok(device)
    }

    /// Removes a device that ib_core removes.
    pub(crate) fn remove_device(&self, device: &Arc<CmDevice>) {
        trace::cma::cm_remove_one(&device.device);
        self.devices.remove(device);
        delay::point();
        device.close();
        delay::point();
        // A per-device entry of a wildcard listener that is added after this finds the device
        // closed.
        self.stubs.hide_at(device);
    }
}
