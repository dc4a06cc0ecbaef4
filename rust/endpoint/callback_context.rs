// SPDX-License-Identifier: GPL-2.0

//! The context of callbacks for an endpoint.

use super::EndpointRef;
use cmproto::time::{Duration, Instant};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// The context of callbacks for an endpoint: a reference to it, to which the RDMA core delivers the
/// results of queries and the events of the iWARP CM. It is behind an `Arc`, of which there can be
/// trait objects, as there cannot be of an [`EndpointRef`].
pub(crate) struct CallbackContext {
    endpoint: EndpointRef,
    created: Instant,
}

impl CallbackContext {
    /// Creates the context of a callback for `endpoint`. Fails with `ENOMEM`.
    pub(crate) fn new(endpoint: &EndpointRef) -> Result<Arc<Self>> {
        let this = Self {
            endpoint: endpoint.clone(),
            created: endpoint.globals.now(),
        };
        Ok(Arc::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Returns the endpoint.
    pub(crate) fn endpoint(&self) -> &EndpointRef {
        &self.endpoint
    }

    /// Returns the time since the context was created, for a query.
    pub(crate) fn elapsed(&self) -> Duration {
        let now = self.endpoint.globals.now();
        now.saturating_duration_since(self.created)
    }
}
