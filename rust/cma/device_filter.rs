// SPDX-License-Identifier: GPL-2.0

//! Which devices an endpoint may be at, and which of them it hears.
//!
//! Whatever chooses a device for an endpoint, or asks what a listener hears, asks here: binding and
//! resolution, the search for the listener of a request, that for who else has a service, and how a
//! listener on a wildcard shows and listens at each device.

use crate::{
    endpoint::Inner,
    ib::device::{DeviceTraits, NodeType},
};
use cmproto::addr::SockAddr;

/// The devices that an endpoint may be at, or that it hears if it listens.
#[derive(Clone, Copy)]
pub(crate) struct DeviceFilter {
    /// The index of the only one; none if there may be more.
    only: Option<u32>,
    /// Their kind; none if any will do.
    node_type: Option<NodeType>,
    /// Whether they must be of the IB CM, as for native addresses.
    is_native: bool,
}

impl DeviceFilter {
    /// Whether the device is one of them.
    pub(crate) fn admits(&self, device: &DeviceTraits) -> bool {
        self.only.is_none_or(|only| only == device.index)
            && self
                .node_type
                .is_none_or(|wanted| wanted == device.node_type)
            && !(self.is_native && device.is_iwarp)
    }

    /// Whether there may be more than one.
    pub(super) fn is_wildcard(&self) -> bool {
        self.only.is_none()
    }

    /// The same, wherever the endpoint is.
    pub(super) fn anywhere(self) -> Self {
        Self { only: None, ..self }
    }
}

impl Inner {
    /// The devices for the endpoint: once it is at one, that.
    pub(crate) fn device_filter(&self) -> DeviceFilter {
        let at = self.device.as_ref();
        DeviceFilter {
            only: at.map(|attachment| attachment.device.device.index()),
            node_type: self.options.node_type,
            is_native: matches!(self.src, SockAddr::Ib { .. }),
        }
    }
}
