// SPDX-License-Identifier: GPL-2.0

//! Tests of `<rdma/rdma_cm.h>`.

use crate::{
    harness::{is, Run},
    rdma::device::Device,
};
use kernel::prelude::*;

/// The module, loaded: nothing is left to do.
pub(crate) struct Cmid;

impl kernel::Module for Cmid {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let device = Device::find()?;
        let mut run = Run::new();
        run.test("the device is found", || {
            is!(device.node_guid() == 0, false);
        });
        run.outcome()?;
        Ok(Self)
    }
}
