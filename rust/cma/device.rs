// SPDX-License-Identifier: GPL-2.0

//! Devices that come and go.

use crate::{
    cm::receive::open_port,
    device::port::Port,
    endpoint::CmDevice,
    globals::Globals,
    ib::{device::DeviceRef, trace},
    kext::{delay, error::ToKernel, net::Net},
    table::events::At,
};
use cmproto::{cma::State, errno::Errno, event::Event};
use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::*,
    rbtree::RBTree,
    sync::{aref::ARef, Arc},
};

/// The most network namespaces that are told of a device that goes.
const NAMESPACES: usize = 64;

/// Ends everything that uses a device.
fn close(device: &CmDevice) {
    device.members.close();
    delay::point();
    // All consumers are told before any endpoint is taken down. Otherwise the last message of one
    // could arrive at another one of the same device before its consumer was told of the removal.
    device.members.for_each(|member| member.report_removal());
    // An endpoint that was ending already may still be in the set.
    device.members.drain(|member| member.tear_down_removed());
    // The other consumers disconnect now.
    device.close_ports();
}

impl Globals {
    /// Adds a device that ib_core has.
    ///
    /// Fails with `EOPNOTSUPP` if no port can carry connections.
    pub(crate) fn add_device(self: &Arc<Self>, device: &DeviceRef) -> Result<Arc<CmDevice>> {
        let mut ports = RBTree::new();
        for num in device.ports() {
            let is_known = device.protocol_roce(num) || device.has_ib_paths(num);
            if (device.cap_ib_cm(num) && is_known) || device.cap_iw_cm(num) {
                ports.try_create_and_insert(num, Port::new(device, num)?, GFP_KERNEL)?;
            }
        }
        if ports.is_empty() {
            return Err(Errno::EOPNOTSUPP.to_kernel());
        }
        let device = CmDevice::new(device, ports)?;
        let opened = device
            .ports()
            .try_for_each(|port| open_port(self, &device, port))
            .and_then(|()| self.devices.add(&device));
        if let Err(error) = opened {
            close(&device);
            return Err(error);
        }
        delay::point();
        self.add_wildcard_listeners_at(&device);
        trace::cma::cm_add_one(&device.device);
        Ok(device)
    }

    /// Returns the numbers of connections at a device, by network namespace, for those who listen
    /// there to events. The namespace of the device is among them.
    fn connections(&self, device: &CmDevice) -> KVec<(ARef<Net>, u32)> {
        if !self.events.has_listeners() {
            return KVec::new();
        }
        // Without memory, nobody is told.
        let mut counts: KVec<(ARef<Net>, u32)> =
            KVec::with_capacity(NAMESPACES, GFP_KERNEL).unwrap_or_default();
        let mut add = |net: ARef<Net>, more: u32| match counts
            .iter_mut()
            .find(|(other, _)| other.ptr_eq(&net))
        {
            Some((_, count)) => *count = count.saturating_add(more),
            None => drop(counts.push_within_capacity((net, more))),
        };
        add(device.device.net(), 0);
        device.members.for_each(|member| {
            let inner = member.inner.lock();
            let is_there = inner.state() == State::Connect;
            drop(inner);
            if is_there {
                add(member.net.clone(), 1);
            }
        });
        counts
    }

    /// Removes a device that ib_core removes.
    pub(crate) fn remove_device(&self, device: &Arc<CmDevice>) {
        trace::cma::cm_remove_one(&device.device);
        let connections = self.connections(device);
        self.devices.remove(device);
        delay::point();
        close(device);
        for (net, connections) in connections {
            let at = At {
                device: &device.device,
                port: None,
            };
            let event = Event::DeviceGone { connections };
            self.events.tell(&net, Some(at), &event);
        }
        delay::point();
        // A per-device entry of a wildcard listener that is added after this finds the device
        // closed.
        self.wildcard_listeners.remove_device(device.device.index());
    }
}
