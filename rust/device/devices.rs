// SPDX-License-Identifier: GPL-2.0

//! The devices that connections can be made over.

use super::{attachment::Attachment, cm_device::CmDevice, source::Source};
use crate::{
    ib::{device_filter::DeviceFilter, gid::GidAttr},
    kext::net::Net,
    table::members::Member,
};
use cmproto::addr::Gid;
use kernel::{
    alloc::flags::GFP_KERNEL,
    new_mutex,
    prelude::*,
    rbtree::{RBTree, RBTreeNodeReservation},
    sync::{Arc, Mutex},
};

/// The devices, by index.
#[pin_data]
pub(crate) struct Devices<M: Member> {
    #[pin]
    list: Mutex<RBTree<u32, Arc<CmDevice<M>>>>,
}

impl<M: Member> Devices<M> {
    /// Creates an empty list.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(RBTree::new(), "rdma_cm_devices"),
        })
    }

    /// Adds a device.
    pub(crate) fn add(&self, device: &Arc<CmDevice<M>>) -> Result {
        let node = RBTreeNodeReservation::new(GFP_KERNEL)?
            .into_node(device.device.index(), device.clone());
        let before = self.list.lock().insert(node);
        drop(before);
        Ok(())
    }

    /// Removes a device.
    pub(crate) fn remove(&self, device: &CmDevice<M>) {
        let node = self.list.lock().remove_node(&device.device.index());
        drop(node);
    }

    /// Returns the first device whose index is not below `index`.
    fn from(&self, index: u32) -> Option<Arc<CmDevice<M>>> {
        let list = self.list.lock();
        let device = list.cursor_lower_bound(&index)?.current().1.clone();
        Some(device)
    }

    /// Returns the device with the index `index`.
    pub(crate) fn by_index(&self, index: u32) -> Option<Arc<CmDevice<M>>> {
        self.from(index)
            .filter(|found| found.device.index() == index)
    }

    /// Calls `visit` for each device, without the lock of the list, until it returns a value.
    pub(crate) fn find_map<T>(
        &self,
        visit: impl FnMut(&Arc<CmDevice<M>>) -> Option<T>,
    ) -> Option<T> {
        self.find_map_from(0, visit)
    }

    /// Does the same for the devices whose index is not below `index`.
    pub(crate) fn find_map_from<T>(
        &self,
        index: u32,
        mut visit: impl FnMut(&Arc<CmDevice<M>>) -> Option<T>,
    ) -> Option<T> {
        let mut device = self.from(index)?;
        loop {
            if let Some(found) = visit(&device) {
                return Some(found);
            }
            device = self.from(device.device.index().checked_add(1)?)?;
        }
    }

    /// Calls `visit` for each member of a device.
    pub(crate) fn for_each_member(&self, mut visit: impl FnMut(&M)) {
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
    ) -> Result<Attachment<M>> {
        self.find_map(|device| Self::attachment(devices, device, source))
            .ok_or(ENODEV)
    }

    /// Finds a device like [`Devices::by_source`], but prefers the device with the index `index`.
    pub(crate) fn by_source_near(
        &self,
        devices: DeviceFilter,
        index: u32,
        source: &Source<'_>,
    ) -> Result<Attachment<M>> {
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
        device: &Arc<CmDevice<M>>,
        source: &Source<'_>,
    ) -> Option<Attachment<M>> {
        if !devices.admits(&device.traits) {
            return None;
        }
        let (port, gid) = device.find_gid(source)?;
        Some(Attachment::new(device, port, Some(gid)))
    }

    /// Finds the device of `devices`, and its port, that lead to a native address, and the port's
    /// GID. Fails with `ENODEV` if there is none.
    pub(crate) fn by_native(
        &self,
        devices: DeviceFilter,
        net: &Net,
        gid: Gid,
        pkey: u16,
    ) -> Result<(Attachment<M>, Gid)> {
        self.find_map(|device| {
            if !devices.admits(&device.traits) {
                return None;
            }
            let (port_num, own) = device.find_native(net, gid, pkey)?;
            let port = device.port(port_num)?;
            let gid_type = port.default_gid_type();
            let gid = GidAttr::find_by_port(&device.device, port_num, &own, gid_type, None).ok();
            Some((Attachment::new(device, port, gid), own))
        })
        .ok_or(ENODEV)
    }

    /// Finds a port of `devices` that is up, or else any port of the first device. Fails with
    /// `ENODEV` if there is no device.
    pub(crate) fn any_active(&self, devices: DeviceFilter) -> Result<Attachment<M>> {
        self.find_map(|device| {
            let mut ports = device.ports().filter(|_| devices.admits(&device.traits));
            let port = ports.find(|port| {
                device
                    .device
                    .port_state(port.num)
                    .is_ok_and(|state| state.is_active())
            })?;
            Some(Attachment::new(device, port, None))
        })
        .or_else(|| {
            self.find_map(|device| {
                let port = device.ports().find(|_| devices.admits(&device.traits))?;
                Some(Attachment::new(device, port, None))
            })
        })
        .ok_or(ENODEV)
    }
}
