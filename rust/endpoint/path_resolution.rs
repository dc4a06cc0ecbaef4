// SPDX-License-Identifier: GPL-2.0

//! The resolution of the path to the peer, and of services.

use crate::ib::sa::{SaQuery, ServiceRecord};
use cmproto::{
    path::Path,
    sa::{ChosenPath, DataLids},
    ucma::path::PathRecord,
};
use kernel::{alloc::flags::GFP_KERNEL_ACCOUNT, prelude::*, sync::Arc};

/// Service records that a subnet administrator has returned.
pub(crate) type Services = Arc<KVec<ServiceRecord>>;

/// The records that a path is made of. Over RoCE most endpoints have none.
#[derive(Default)]
pub(crate) struct PathRecords {
    path: Option<PathRecord>,
    /// The LIDs for the data along the path.
    data_lids: DataLids,
    services: Option<Services>,
}

impl PathRecords {
    /// Creates the records with that of a path.
    pub(crate) fn of_path(path: PathRecord) -> Result<KBox<Self>> {
        Self::of_chosen(ChosenPath {
            record: path,
            data_lids: DataLids::default(),
        })
    }

    /// Creates the records with that of a path, and with the LIDs for the data.
    pub(crate) fn of_chosen(chosen: ChosenPath) -> Result<KBox<Self>> {
        let this = Self {
            path: Some(chosen.record),
            data_lids: chosen.data_lids,
            ..Self::default()
        };
        Ok(KBox::new(this, GFP_KERNEL_ACCOUNT)?)
    }

    /// Creates the records with those of services.
    pub(crate) fn of_services(services: Services) -> Result<KBox<Self>> {
        let this = Self {
            services: Some(services),
            ..Self::default()
        };
        Ok(KBox::new(this, GFP_KERNEL_ACCOUNT)?)
    }
}

/// The resolution of the path to the peer, and its result.
pub(crate) struct PathResolution {
    pub(crate) path: Option<Path>,
    records: Option<KBox<PathRecords>>,
    /// The query to the subnet administrator that is under way.
    pub(crate) sa_query: Option<KBox<SaQuery>>,
}

impl PathResolution {
    /// The state before a path is resolved.
    pub(super) const NONE: Self = Self {
        path: None,
        records: None,
        sa_query: None,
    };

    /// Returns the path record that the consumer has set or the subnet administrator has found.
    /// `path` is made of it; some of its fields are only reported.
    pub(crate) fn path_record(&self) -> Option<&PathRecord> {
        self.records.as_ref()?.path.as_ref()
    }

    /// Returns the LIDs for the data along the path, where they differ.
    pub(crate) fn data_lids(&self) -> DataLids {
        let records = self.records.as_ref();
        records.map_or_else(DataLids::default, |records| records.data_lids)
    }

    /// Returns the service records that the subnet administrator has found.
    pub(crate) fn services(&self) -> Option<&Services> {
        self.records.as_ref()?.services.as_ref()
    }

    /// Sets the path without a record of it.
    pub(crate) fn set_path(&mut self, path: Path) {
        self.path = Some(path);
        if let Some(records) = &mut self.records {
            records.path = None;
            records.data_lids = DataLids::default();
        }
    }

    /// Adds the records in `found`, in place of earlier ones of their kind.
    pub(crate) fn add_records(&mut self, mut found: KBox<PathRecords>) {
        if let Some(before) = self.records.take().map(KBox::into_inner) {
            if found.path.is_none() {
                (found.path, found.data_lids) = (before.path, before.data_lids);
            }
            found.services = found.services.take().or(before.services);
        }
        self.records = Some(found);
    }
}
