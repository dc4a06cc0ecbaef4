// SPDX-License-Identifier: GPL-2.0

//! The attachment of an endpoint to a port of a device.

use super::{cm_device::CmDevice, port::Port};
use crate::{ib::gid::GidAttr, table::members::Member};
use cmproto::ucma::query::Protocol;
use kernel::sync::Arc;

/// The attachment of an endpoint to a port of a device.
#[derive(Clone)]
pub(crate) struct Attachment<M: Member> {
    pub(crate) device: Arc<CmDevice<M>>,
    /// The number of the port, from 1 on.
    pub(crate) port_num: u32,
    /// The protocol of the port.
    pub(crate) protocol: Protocol,
    /// The source GID of the endpoint. `None` after the resolution of a loopback address on RoCE,
    /// which determines a port but no address.
    pub(crate) gid: Option<GidAttr>,
}

impl<M: Member> Attachment<M> {
    /// Creates the attachment of an endpoint with the source GID `gid` to `port` of `device`.
    #[inline]
    pub(crate) fn new(device: &Arc<CmDevice<M>>, port: &Port, gid: Option<GidAttr>) -> Self {
        Self {
            device: device.clone(),
            port_num: port.num,
            protocol: port.protocol,
            gid,
        }
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> Option<&Arc<Port>> {
        self.device.port(self.port_num)
    }

    /// Returns whether the iWARP CM makes the connections of the port.
    pub(crate) fn is_iwarp(&self) -> bool {
        self.protocol == Protocol::Iwarp
    }

    /// Returns whether the port uses RoCE.
    pub(crate) fn is_roce(&self) -> bool {
        self.protocol == Protocol::Roce
    }

    /// Returns whether the port has an InfiniBand link, or one of Omni-Path.
    pub(crate) fn is_ib(&self) -> bool {
        self.protocol == Protocol::Ib
    }

    /// Returns whether the port has the LIDs of Omni-Path.
    #[inline]
    pub(crate) fn is_opa(&self) -> bool {
        self.is_ib() && self.device.device.has_opa_lids(self.port_num)
    }
}
