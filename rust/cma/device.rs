// SPDX-License-Identifier: GPL-2.0

//! The devices that connections can be made over.
//!
//! A device is entered when ib_core shows it and taken out when ib_core wants it back. Whatever uses
//! the device holds a [`DeviceRef`] in some form (an attachment, an address handle, a query), and
//! ib_core's removal waits until all of them are gone. Removal first closes the set of attached
//! endpoints, then ends each of them, and last unregisters the MAD agents.

use super::device_filter::DeviceFilter;
use crate::{
    cm::port::Port,
    core::Core,
    endpoint::{Attachment, Endpoint, EndpointRef, Inner},
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
};
use cmproto::{
    addr::{Gid, SockAddr},
    errno::Errno,
    origin::IbPort,
    ucma::query::Protocol,
};
use kernel::{
    alloc::flags::{GFP_KERNEL, GFP_KERNEL_ACCOUNT},
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// Number of shards of the set of attached endpoints; a power of two.
const SHARDS: usize = 16;

/// A part of the set of attached endpoints.
struct Members {
    /// The endpoints by number.
    tree: RBTree<u64, EndpointRef>,
    /// Set when the device goes away: nobody comes in any more.
    closed: bool,
}

/// A device that connections can be made over.
#[pin_data]
pub(crate) struct CmDevice {
    /// The device itself.
    pub(crate) device: DeviceRef,
    /// What it is to who chooses among devices.
    pub(crate) traits: DeviceTraits,
    /// Its ports that can carry connections, by number.
    ports: RBTree<u32, Arc<Port>>,
    #[pin]
    members: [Mutex<Members>; SHARDS],
    /// Where those are inside who destroy their endpoints themselves, when the device goes.
    residents: Arc<Gate>,
}

impl CmDevice {
    /// Creates the device with its ports; nobody can find it yet.
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
                members <- pin_init::pin_init_array_from_fn(|_| new_mutex!(Members {
                    tree: RBTree::new(),
                    closed: false,
                }, "rdma_cm_members")),
            }),
            GFP_KERNEL,
        )
    }

    /// The port with this number.
    pub(crate) fn port(&self, num: u32) -> Option<&Arc<Port>> {
        self.ports.get(&num)
    }

    /// The port with this number, for whom its LIDs are to be told from those of others.
    pub(crate) fn ib_port(&self, num: u32) -> IbPort {
        IbPort {
            device: self.device.index(),
            port: u8::try_from(num).unwrap_or(0),
        }
    }

    fn shard(&self, number: u64) -> Option<&Mutex<Members>> {
        let shard = usize::try_from(number).unwrap_or(0) & (SHARDS - 1);
        self.members.get(shard)
    }

    /// Enters an endpoint into the set; `ENODEV` if the device is going away.
    fn join(&self, endpoint: &EndpointRef) -> Result {
        let node = RBTreeNodeReservation::new(GFP_KERNEL_ACCOUNT)?
            .into_node(endpoint.number, endpoint.clone());
        let before = {
            let mut members = self.shard(endpoint.number).ok_or(ENODEV)?.lock();
            if members.closed {
                return Err(ENODEV);
            }
            members.tree.insert(node)
        };
        drop(before);
        Ok(())
    }

    /// Takes an endpoint out of the set.
    fn leave(&self, endpoint: &Endpoint) {
        let node = self
            .shard(endpoint.number)
            .and_then(|shard| shard.lock().tree.remove_node(&endpoint.number));
        drop(node);
    }

    /// Keeps the device from being taken down until the guard is dropped; none if it is going away.
    pub(crate) fn stay(&self) -> Option<OwnedGuard> {
        Gate::enter_owned(&self.residents)
    }

    /// Whether the device is going away.
    pub(super) fn is_closed(&self) -> bool {
        self.members.iter().any(|shard| shard.lock().closed)
    }

    /// Calls `visit` for one attached endpoint after the other, without a lock; one that comes or
    /// goes meanwhile may be missed.
    pub(super) fn for_each_member(&self, mut visit: impl FnMut(&EndpointRef)) {
        for shard in self.members.iter() {
            let mut next = 0;
            loop {
                let member = shard
                    .lock()
                    .tree
                    .cursor_lower_bound(&next)
                    .map(|cursor| cursor.current().1.clone());
                let Some(member) = member else { break };
                delay::point();
                visit(&member);
                next = member.number.saturating_add(1);
            }
        }
    }

    /// Ends all that uses the device.
    fn close(&self) {
        for shard in self.members.iter() {
            shard.lock().closed = true;
        }
        delay::point();
        // All are told before any is taken down: what one says to its peer comes too late for a peer
        // at the same device.
        self.for_each_member(|member| member.announce_removal());
        for shard in self.members.iter() {
            loop {
                let member = shard
                    .lock()
                    .tree
                    .cursor_front()
                    .map(|cursor| cursor.current().1.clone());
                let Some(member) = member else { break };
                delay::point();
                member.bury_removed();
                // An endpoint that was ending already may still be in the set.
                self.leave(&member);
            }
        }
        // They say farewell, for which the ports are needed.
        self.residents.close_and_wait();
        for port in self.ports.values() {
            port.close();
        }
    }

    /// Finds a port that has the GID, or that is up and has one of its subnet, and the GID there.
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

    /// Whether a port has that GID.
    pub(crate) fn has_gid(&self, gid: &Gid) -> bool {
        self.ports.values().any(|port| {
            let gid_type = port.default_gid_type();
            GidAttr::find_by_port(&self.device, port.num, gid, gid_type, None).is_ok()
        })
    }

    /// Finds the GID of one of the ports that `source` speaks from: a port of InfiniBand speaks from GIDs,
    /// others from the addresses of interfaces.
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

    /// Finds the GID of a port of iWARP, which has but one, if `interface` is its interface in `net`, a
    /// VLAN of that, or what that is a VLAN of.
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

    /// The port over which the iWARP CM connects, if there is one.
    pub(super) fn iwarp_port(&self) -> Option<u32> {
        let mut ports = self.ports.values();
        let port = ports.find(|port| port.protocol == Protocol::Iwarp)?;
        Some(port.num)
    }

    /// Whether the interface of a port of iWARP is in `net`.
    pub(super) fn is_iwarp_in(&self, port: u32, net: &Net) -> bool {
        GidAttr::get(&self.device, port, 0)
            .and_then(|attr| attr.ndev())
            .is_ok_and(|own| own.net().is_some_and(|own| own.ptr_eq(net)))
    }
}

/// The kind of link that an address of this host is an address of.
#[derive(Clone, Copy)]
pub(crate) enum SourceLink {
    /// InfiniBand, where the port has this GID.
    InfiniBand(Gid),
    /// Any other.
    Other,
}

/// An address of this host, and where it lives.
pub(crate) struct Source<'a> {
    /// The address.
    pub(crate) addr: &'a SockAddr,
    /// The namespace.
    pub(crate) net: &'a Net,
    /// The interface that has the address; native addresses have none.
    pub(crate) interface: Option<&'a NetDevice>,
    /// The link.
    pub(crate) link: SourceLink,
}

/// All devices, by index.
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

    /// Makes a device known.
    fn add(&self, device: &Arc<CmDevice>) -> Result {
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?
            .into_node(device.device.index(), device.clone());
        let before = self.list.lock().insert(node);
        drop(before);
        Ok(())
    }

    /// Forgets a device.
    fn remove(&self, device: &CmDevice) {
        let node = self.list.lock().remove_node(&device.device.index());
        drop(node);
    }

    /// The first device whose index is not below `index`.
    fn from(&self, index: u32) -> Option<Arc<CmDevice>> {
        let list = self.list.lock();
        let device = list.cursor_lower_bound(&index)?.current().1.clone();
        Some(device)
    }

    /// The device with this index.
    pub(crate) fn by_index(&self, index: u32) -> Option<Arc<CmDevice>> {
        self.from(index)
            .filter(|found| found.device.index() == index)
    }

    /// Calls `visit` for one device after the other, without the lock of the list, until it
    /// returns something.
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

    /// Visits each endpoint at each of the devices.
    pub(crate) fn for_each_member(&self, mut visit: impl FnMut(&EndpointRef)) {
        let _: Option<()> = self.find_map(|device| {
            device.for_each_member(&mut visit);
            None
        });
    }

    /// Finds the one of `devices`, with port and GID, that an address of this host speaks from;
    /// `ENODEV` if there is none.
    pub(crate) fn by_source(
        &self,
        devices: DeviceFilter,
        source: &Source<'_>,
    ) -> Result<Attachment> {
        self.find_map(|device| Self::attachment(devices, device, source))
            .ok_or(ENODEV)
    }

    /// As [`Devices::by_source`], but the device with this index comes first.
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

    /// Finds the one of `devices` and the port that lead to a native address, and the GID there;
    /// `ENODEV` if there is none.
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

    /// Finds a port of one of `devices` that is up, or else any port of the first; `ENODEV` if there
    /// is none of them.
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
    /// Attaches the endpoint to a device; `ENODEV` if the device is going away.
    pub(crate) fn attach(self: &EndpointRef, inner: &mut Inner, attachment: Attachment) -> Result {
        let device = &attachment.device;
        let stay = match &inner.consumer {
            Some(consumer) if consumer.is_kernel() => Some(device.stay().ok_or(ENODEV)?),
            _ => None,
        };
        device.join(self)?;
        if !self.speaks_messages {
            if let Err(error) = self.head.add(&device.device, attachment.port_num) {
                device.leave(self);
                return Err(error);
            }
        }
        inner.device = Some(attachment);
        inner.stay = stay;
        Ok(())
    }

    /// Undoes [`Endpoint::attach`]. The endpoint's lock is not held.
    pub(crate) fn detach(&self, attachment: Attachment) {
        // Waits for whoever looks at the endpoint through netlink.
        self.head.del();
        delay::point();
        attachment.device.leave(self);
    }
}

impl Core {
    /// Takes a device that ib_core shows.
    pub(crate) fn add_device(self: &Arc<Self>, device: &DeviceRef) -> Result<Arc<CmDevice>> {
        let mut ports = RBTree::new();
        for num in device.ports() {
            // Omni-Path, whose paths have longer LIDs, is neither.
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

    /// Gives a device back to ib_core.
    pub(crate) fn remove_device(&self, device: &Arc<CmDevice>) {
        trace::cma::cm_remove_one(&device.device);
        self.devices.remove(device);
        delay::point();
        device.close();
        delay::point();
        // A stub that comes after this finds the device closed.
        self.stubs.hide_at(device);
    }
}
