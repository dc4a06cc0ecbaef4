// SPDX-License-Identifier: GPL-2.0

//! The choice of devices for an endpoint: those that it may be attached to, and those that it takes
//! requests from.
//!
//! Everything that chooses a device for an endpoint, or asks which devices a listener takes
//! requests from, uses this: binding and address resolution, the lookup of a request's listener,
//! the check for conflicting service ids, and the per-device entries and iWARP listeners of a
//! wildcard listener.

use super::device::{DeviceTraits, NodeType};

/// The devices that an endpoint may be attached to, or takes requests from if it listens.
#[derive(Clone, Copy)]
pub(crate) struct DeviceFilter {
    /// The index of the only device; `None` for any.
    pub(crate) only: Option<u32>,
    /// The node type of the devices; `None` for any.
    pub(crate) node_type: Option<NodeType>,
    /// Set if the devices must use the IB CM, as native addresses demand.
    pub(crate) is_native: bool,
}

impl DeviceFilter {
    /// Returns whether the device is among them.
    pub(crate) fn admits(&self, device: &DeviceTraits) -> bool {
        self.only.is_none_or(|only| only == device.index)
            && self
                .node_type
                .is_none_or(|wanted| wanted == device.node_type)
            && !(self.is_native && device.is_iwarp)
    }

    /// Returns whether there may be more than one device.
    pub(crate) fn is_wildcard(&self) -> bool {
        self.only.is_none()
    }

    /// Returns the same filter, without the restriction to one device.
    pub(crate) fn anywhere(self) -> Self {
        Self { only: None, ..self }
    }
}
