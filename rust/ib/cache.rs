// SPDX-License-Identifier: GPL-2.0

//! Cached properties of a port: P_Keys, GIDs, LMC and link state.
//!
//! No function here queries the device, or sleeps.
//!
//! C header: [`include/rdma/ib_cache.h`](srctree/include/rdma/ib_cache.h)

use super::device::Device;
use crate::bindings;
use cmproto::addr::Gid;
use kernel::{error::to_result, prelude::*};

/// The logical state of the link of a port (IBTA 7.2.7, `enum ib_port_state`).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct PortState(u32);

impl PortState {
    /// Returns whether the port is active, so that it carries data.
    pub(crate) fn is_active(self) -> bool {
        self.0 == bindings::ib_port_state_IB_PORT_ACTIVE
    }
}

impl Device {
    /// Returns the index of `pkey` in the P_Key table of the port.
    ///
    /// An entry with full membership is preferred to one with limited membership. Fails with
    /// [`ENOENT`] if there is none, and [`EINVAL`] if there is no such port.
    pub(crate) fn find_pkey(&self, port: u32, pkey: u16) -> Result<u16> {
        let mut index = 0;
        // SAFETY: The device is registered; the function checks the port.
        to_result(unsafe {
            bindings::ib_find_cached_pkey(self.as_raw(), port, pkey, &raw mut index)
        })?;
        Ok(index)
    }

    /// Returns the P_Key at `index` of the P_Key table of the port, in host byte order.
    ///
    /// Fails with [`EINVAL`] if there is no such port or index.
    pub(crate) fn pkey(&self, port: u32, index: u16) -> Result<u16> {
        let mut pkey = 0;
        // SAFETY: The device is registered; the function checks the port and the index.
        to_result(unsafe {
            bindings::ib_get_cached_pkey(self.as_raw(), port, c_int::from(index), &raw mut pkey)
        })?;
        Ok(pkey)
    }

    /// Returns the first LID of the port, and the mask of the bits that choose one of its LIDs.
    /// Asks the driver, and may sleep.
    ///
    /// Fails with [`EINVAL`] if there is no such port, and with errors of the driver.
    pub(crate) fn lids(&self, port: u32) -> Result<(u32, u8)> {
        let mut attr = bindings::ib_port_attr::default();
        // SAFETY: The device is registered; the function checks the port.
        to_result(unsafe { bindings::ib_query_port(self.as_raw(), port, &raw mut attr) })?;
        Ok((attr.lid, self.path_bits_mask(port)?))
    }

    /// Returns the LMC of the port: the number of low bits of a LID that select a path (IBTA
    /// 4.1.3), 0 to 7.
    ///
    /// Fails with [`EINVAL`] if there is no such port.
    pub(crate) fn lmc(&self, port: u32) -> Result<u8> {
        let mut lmc = 0;
        // SAFETY: The device is registered; the function checks the port.
        to_result(unsafe { bindings::ib_get_cached_lmc(self.as_raw(), port, &raw mut lmc) })?;
        Ok(lmc)
    }

    /// Returns the mask of the path bits of a LID of the port: 0 to 0x7f.
    ///
    /// Fails like [`Device::lmc`].
    pub(crate) fn path_bits_mask(&self, port: u32) -> Result<u8> {
        let lmc = self.lmc(port)?.min(7);
        Ok(!(0xff << lmc))
    }

    /// Returns the state of the link of the port.
    ///
    /// Fails with [`EINVAL`] if there is no such port.
    pub(crate) fn port_state(&self, port: u32) -> Result<PortState> {
        let mut state = 0;
        // SAFETY: The device is registered; the function checks the port.
        to_result(unsafe {
            bindings::ib_get_cached_port_state(self.as_raw(), port, &raw mut state)
        })?;
        Ok(PortState(state))
    }

    /// Returns the GID at `index` of the GID table of the port.
    ///
    /// Fails with [`EINVAL`] if there is no such port or index, and with another error if the entry
    /// has no GID.
    pub(crate) fn query_gid(&self, port: u32, index: u16) -> Result<Gid> {
        let mut gid = bindings::ib_gid { raw: [0; 16] };
        // SAFETY: The device is registered; the function checks the port and the index.
        to_result(unsafe {
            bindings::rdma_query_gid(self.as_raw(), port, c_int::from(index), &raw mut gid)
        })?;
        // SAFETY: Any bytes are a GID.
        Ok(Gid(unsafe { gid.raw }))
    }

    /// Iterates over the GIDs of the port, in the order of its table.
    pub(crate) fn gids(&self, port: u32) -> impl Iterator<Item = Gid> + '_ {
        (0..=u16::MAX)
            .map(move |index| self.query_gid(port, index))
            .take_while(|found| !matches!(found, Err(error) if *error == EINVAL))
            .filter_map(Result::ok)
    }
}
