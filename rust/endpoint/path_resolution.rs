// SPDX-License-Identifier: GPL-2.0

//! The resolution of the path to the peer, and of services.

use crate::ib::sa::{SaQuery, ServiceRecord};
use cmproto::{path::Path, ucma::path::PathRecord};
use kernel::{prelude::*, sync::Arc};

/// Service records that a subnet administrator has returned.
pub(crate) type Services = Arc<KVec<ServiceRecord>>;

/// The resolution of the path to the peer, and its result.
pub(crate) struct PathResolution {
    pub(crate) path: Option<Path>,
    /// The path record that the consumer has set or the subnet administrator has found. `path` is
    /// made of it; some of its fields are only reported.
    pub(crate) path_record: Option<KBox<PathRecord>>,
    /// The query to the subnet administrator that is under way.
    pub(crate) sa_query: Option<KBox<SaQuery>>,
    /// The service records that the subnet administrator has found.
    pub(crate) services: Option<Services>,
}

impl PathResolution {
    /// The state before a path is resolved.
    pub(super) const NONE: Self = Self {
        path: None,
        path_record: None,
        sa_query: None,
        services: None,
    };
}
