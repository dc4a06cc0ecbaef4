// SPDX-License-Identifier: GPL-2.0

//! The per-port settings of an administrator, in configfs below `rdma_cm`.
//!
//! `default_roce_mode` and `default_roce_tos` hold for endpoints that are attached, or resolve
//! their route, from then on. The tunables ([`Tunable`]) hold from then on for all endpoints that
//! do not set them themselves.

use crate::{
    device::port::Port,
    endpoint::CmDevice,
    globals::Globals,
    ib::gid::GidType,
    kext::{
        configfs::{Settings, FILES},
        error::ResultExt,
    },
};
use cmproto::{
    cm::Tunable,
    errno::Errno,
    roce::{parse_number, parse_tos, RoceMode},
};
use kernel::{prelude::*, str::CString, sync::Arc};

/// The index of `default_roce_mode` among the files.
const MODE: usize = 0;
/// The index of the first tunable among the files.
const FIRST_TUNABLE: usize = 2;

/// Returns the tunable whose file has the index `file`, if it is the file of one.
fn tunable(file: usize) -> Option<Tunable> {
    let index = file.checked_sub(FIRST_TUNABLE)?;
    Tunable::ALL.get(index).copied()
}

impl Globals {
    /// Returns the device with the name `name`. Fails with `ENODEV` if there is none.
    fn device_named(&self, name: &[u8]) -> Result<Arc<CmDevice>> {
        self.devices
            .find_map(|device| (*device.device.name() == *name).then(|| device.clone()))
            .ok_or(ENODEV)
    }

    /// Returns a port of the device with the name `name`. Fails with `ENODEV` if there is no such
    /// device, or with `EINVAL` if the device has no such port that can carry connections.
    fn port_of(&self, name: &[u8], port: u32) -> Result<(Arc<CmDevice>, Arc<Port>)> {
        let device = self.device_named(name)?;
        let port = device.port(port).ok_or(EINVAL)?.clone();
        Ok((device, port))
    }
}

impl Settings for Globals {
    const NAME: &'static CStr = c"rdma_cm";
    const PARTS: &'static CStr = c"ports";
    const FILES: [&'static CStr; FILES] = [
        c"default_roce_mode",
        c"default_roce_tos",
        c"cm_response_timeout",
        c"cm_max_retries",
        c"cm_deadline_ms",
        c"cm_timewait",
        c"cm_early_retry_ms",
        c"cm_backlog_parking",
        c"cm_reuseport",
        c"cm_dead_link_ms",
        c"cm_keepalive_s",
    ];

    fn parts(&self, name: &[u8]) -> Result<u32> {
        let device = self.device_named(name)?;
        Ok(*device.device.ports().end())
    }

    fn show(&self, name: &[u8], part: u32, file: usize) -> Result<CString> {
        let (_device, port) = self.port_of(name, part)?;
        if let Some(tunable) = tunable(file) {
            return CString::try_from_fmt(fmt!("{}\n", port.tuned(tunable)));
        }
        if file == MODE {
            let mode = match port.default_gid_type() {
                GidType::Ib | GidType::RoceV1 => RoceMode::V1,
                GidType::RoceV2 => RoceMode::V2,
            };
            return CString::try_from_fmt(fmt!("{}\n", mode.name()));
        }
        CString::try_from_fmt(fmt!("{}\n", port.default_tos()))
    }

    fn store(&self, name: &[u8], part: u32, file: usize, text: &[u8]) -> Result {
        if let Some(tunable) = tunable(file) {
            let value = parse_number(text).map_err(|_| Errno::EINVAL).kernel()?;
            let (_device, port) = self.port_of(name, part)?;
            return port.tune(tunable, value);
        }
        if file != MODE {
            let tos = parse_tos(text).kernel()?;
            let (_device, port) = self.port_of(name, part)?;
            port.set_default_tos(tos);
            return Ok(());
        }
        let (device, port) = self.port_of(name, part)?;
        let gid_type = match RoceMode::parse(text).kernel()? {
            RoceMode::V1 if device.device.protocol_roce(part) => GidType::RoceV1,
            // A port without RoCE has this GID type only.
            RoceMode::V1 => GidType::Ib,
            RoceMode::V2 => GidType::RoceV2,
        };
        if !device.device.supports_gid_type(part, gid_type) {
            return Err(EINVAL);
        }
        port.set_default_gid_type(gid_type);
        Ok(())
    }
}
