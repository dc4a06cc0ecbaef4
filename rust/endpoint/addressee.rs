// SPDX-License-Identifier: GPL-2.0

//! The receiver of asynchronous answers for an endpoint.

use super::EndpointRef;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// A reference to an endpoint, to which the RDMA core delivers the results of queries and the
/// events of the iWARP CM. It is behind an `Arc`, of which there can be trait objects, as there
/// cannot be of an [`EndpointRef`].
pub(crate) struct Addressee(EndpointRef);

impl Addressee {
    /// Creates a receiver for `endpoint`. Fails with `ENOMEM`.
    pub(crate) fn new(endpoint: &EndpointRef) -> Result<Arc<Self>> {
        Ok(Arc::new(Self(endpoint.clone()), GFP_KERNEL_ACCOUNT)?)
    }

    /// Returns the endpoint.
    pub(crate) fn endpoint(&self) -> &EndpointRef {
        &self.0
    }
}
