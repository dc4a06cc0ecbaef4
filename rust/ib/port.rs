// SPDX-License-Identifier: GPL-2.0

//! The capability mask of a port.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

use super::device::{Device, DeviceRef};
use crate::bindings;
use kernel::{error::to_result, prelude::*};

/// The capability bit of a port that its node has a CM; dropping it clears the bit.
///
/// That is `IsCommunicationManagementSupported` (IBTA 14.2.5.6).
pub(crate) struct CmCapability {
    device: DeviceRef,
    port: u32,
}

impl CmCapability {
    /// Sets the bit. May sleep.
    ///
    /// Fails with [`EINVAL`] if there is no such port, and with errors of the driver.
    pub(crate) fn set(device: &DeviceRef, port: u32) -> Result<Self> {
        modify(
            device,
            port,
            bindings::ib_port_capability_mask_bits_IB_PORT_CM_SUP,
            0,
        )?;
        Ok(Self {
            device: device.clone(),
            port,
        })
    }
}

impl Drop for CmCapability {
    fn drop(&mut self) {
        let mask = bindings::ib_port_capability_mask_bits_IB_PORT_CM_SUP;
        // An error cannot be reported to anyone, and there is no way to handle it.
        let _ = modify(&self.device, self.port, 0, mask);
    }
}

/// Sets and clears bits of the capability mask of a port.
fn modify(device: &Device, port: u32, set: u32, clear: u32) -> Result {
    if !device.is_port_valid(port) {
        return Err(EINVAL);
    }
    let mut change = bindings::ib_port_modify {
        set_port_cap_mask: set,
        clr_port_cap_mask: clear,
        init_type: 0,
    };
    // SAFETY: The device is registered and has the port; `change` is read during the call only.
    to_result(unsafe { bindings::ib_modify_port(device.as_raw(), port, 0, &raw mut change) })
}
