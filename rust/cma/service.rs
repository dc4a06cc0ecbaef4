// SPDX-License-Identifier: GPL-2.0

//! Resolving a service: which port has it.

use crate::{endpoint::Endpoint, kext::error::ToKernel};
use cmproto::{cma::State, errno::Errno};
use kernel::prelude::*;

impl Endpoint {
    /// Asks the subnet administrator for ports that have a service.
    ///
    /// Fails with `EINVAL` unless the endpoint is bound to a device and nothing more, and else with
    /// `EOPNOTSUPP`: a RoCE port has no subnet administrator.
    pub(crate) fn resolve_ib_service(&self) -> Result {
        let inner = self.inner.lock();
        if inner.device.is_none() || inner.state != State::AddrBound {
            return Err(EINVAL);
        }
        Err(Errno::EOPNOTSUPP.to_kernel())
    }
}
