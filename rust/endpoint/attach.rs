// SPDX-License-Identifier: GPL-2.0

//! The attachment of an endpoint to a device.

use super::{Attachment, Endpoint, EndpointRef, IdKind, Inner};
use crate::kext::delay;
use kernel::prelude::*;

impl Endpoint {
    /// Attaches the endpoint to a device. Fails with `ENODEV` if the device is being removed.
    pub(crate) fn attach(self: &EndpointRef, inner: &mut Inner, attachment: Attachment) -> Result {
        let device = &attachment.device;
        let device_use = match &inner.consumer {
            Some(_) if self.kind == IdKind::RdmaCm => Some(device.kernel_use().ok_or(ENODEV)?),
            _ => None,
        };
        device.members.join(self.number, self)?;
        if self.kind != IdKind::IbCm {
            if let Err(error) = self.id_priv.add(&device.device, attachment.port_num) {
                device.members.leave(self.number, self);
                return Err(error);
            }
        }
        inner.device = Some(attachment);
        inner.device_use = device_use;
        Ok(())
    }

    /// Undoes [`Endpoint::attach`]. Called without the endpoint's lock.
    pub(crate) fn detach(&self, attachment: Attachment) {
        // This waits for a netlink dump that is reading the endpoint.
        self.id_priv.del();
        delay::point();
        attachment.device.members.leave(self.number, self);
        // Until this returns, the attachment keeps the device.
        delay::at("device-left");
    }
}
