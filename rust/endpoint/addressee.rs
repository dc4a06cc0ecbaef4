// SPDX-License-Identifier: GPL-2.0

//! Who is told what others answer.

use super::EndpointRef;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// Whom the other parts of the RDMA core tell of their answers: a reference to the endpoint, in a
/// form of which there can be trait objects.
pub(crate) struct Addressee(EndpointRef);

impl Addressee {
    /// Fails with `ENOMEM`.
    pub(crate) fn new(endpoint: &EndpointRef) -> Result<Arc<Self>> {
        Ok(Arc::new(Self(endpoint.clone()), GFP_KERNEL_ACCOUNT)?)
    }

    /// The endpoint that is told.
    pub(crate) fn endpoint(&self) -> &EndpointRef {
        &self.0
    }
}
