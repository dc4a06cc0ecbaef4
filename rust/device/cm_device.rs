// SPDX-License-Identifier: GPL-2.0

//! A device that connections can be made over.

use super::{
    port::Port,
    source::{Source, SourceLink},
};
use crate::{
    ib::{
        device::{DeviceRef, DeviceTraits},
        gid::GidAttr,
    },
    kext::{
        net::Net,
        netdev::NetDevice,
        use_count::{OwnedUse, UseCount},
    },
    table::members::{Member, Members},
};
use cmproto::{addr::Gid, origin::IbPort, ucma::query::Protocol};
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, rbtree::RBTree, sync::Arc};

/// A device that connections can be made over, and its members.
#[pin_data]
pub(crate) struct CmDevice<M: Member> {
    /// The RDMA device.
    pub(crate) device: DeviceRef,
    /// The properties by which a device is chosen.
    pub(crate) traits: DeviceTraits,
    /// The ports that can carry connections, by number.
    ports: RBTree<u32, Arc<Port>>,
    /// The objects that are attached to the device.
    #[pin]
    pub(crate) members: Members<M>,
    /// The users of the device that end themselves. The removal of the device
    /// waits until there are none.
    kernel_users: Arc<UseCount>,
}

impl<M: Member> CmDevice<M> {
    /// Creates a device with its ports. Nobody can find it yet.
    pub(crate) fn new(device: &DeviceRef, ports: RBTree<u32, Arc<Port>>) -> Result<Arc<Self>> {
        let device = device.clone();
        let traits = device.traits();
        let kernel_users = Arc::pin_init(UseCount::new(), GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(CmDevice {
                device,
                traits,
                ports,
                kernel_users,
                members <- Members::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the ports that can carry connections.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &Arc<Port>> {
        self.ports.values()
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
    pub(crate) fn kernel_use(&self) -> Option<OwnedUse> {
        UseCount::try_get_owned(&self.kernel_users)
    }

    /// Waits until no user stays, and closes the ports, through which the last users disconnect.
    pub(crate) fn close_ports(&self) {
        self.kernel_users.close_and_wait();
        for port in self.ports.values() {
            port.close();
        }
    }

    /// Finds a port that has the GID, or that is up and has a GID with the same subnet prefix.
    /// Returns the number of the port and its GID.
    pub(super) fn find_native(&self, net: &Net, gid: Gid, pkey: u16) -> Option<(u32, Gid)> {
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
    pub(super) fn find_gid(&self, source: &Source<'_>) -> Option<(&Arc<Port>, GidAttr)> {
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
    pub(crate) fn iwarp_port(&self) -> Option<u32> {
        let mut ports = self.ports.values();
        let port = ports.find(|port| port.protocol == Protocol::Iwarp)?;
        Some(port.num)
    }

    /// Returns whether the interface of an iWARP port is in the network namespace `net`.
    pub(crate) fn is_iwarp_in(&self, port: u32, net: &Net) -> bool {
        GidAttr::get(&self.device, port, 0)
            .and_then(|attr| attr.ndev())
            .is_ok_and(|own| own.net().is_some_and(|own| own.ptr_eq(net)))
    }
}
