// SPDX-License-Identifier: GPL-2.0

//! The context of callbacks for an endpoint.

use super::EndpointRef;
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// The context of callbacks for an endpoint: a reference to it, to which the RDMA core delivers the
/// results of queries and the events of the iWARP CM. It is behind an `Arc`, of which there can be
/// trait objects, as there cannot be of an [`EndpointRef`].
pub(crate) struct CallbackContext(EndpointRef);

impl CallbackContext {
    /// Creates the context of a callback for `endpoint`. Fails with `ENOMEM`.
    pub(crate) fn new(endpoint: &EndpointRef) -> Result<Arc<Self>> {
        Ok(Arc::new(Self(endpoint.clone()), GFP_KERNEL_ACCOUNT)?)
    }

    /// Returns the endpoint.
    pub(crate) fn endpoint(&self) -> &EndpointRef {
        &self.0
    }
}
