// SPDX-License-Identifier: GPL-2.0

//! Path records and service records in their C form.

use crate::{
    bindings,
    ib::sa::{
        record::{found_to_raw, path_to_raw},
        ServiceRecord,
    },
};
use cmproto::ucma::path::PathRecord;
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, types::Opaque};

/// The path record of a connection, as the consumer sees it.
pub(crate) struct PathRec(Opaque<bindings::sa_path_rec>);

// SAFETY: The record is written by one task at a time, as `show_path` requires, and may be read by
// any task.
unsafe impl Send for PathRec {}

// SAFETY: The record is written by one task at a time, as `show_path` requires, and may be read by
// any task.
unsafe impl Sync for PathRec {}

impl PathRec {
    /// Creates an empty record.
    pub(crate) fn new() -> Self {
        Self(Opaque::new(pin_init::zeroed()))
    }

    pub(super) fn as_raw(&self) -> *mut bindings::sa_path_rec {
        self.0.get()
    }
}

/// The link type of a path.
#[derive(Clone, Copy)]
pub(crate) enum PathLink {
    /// RoCE v1, with the MAC address of the next hop.
    RoceV1([u8; 6]),
    /// RoCE v2, with the MAC address of the next hop.
    RoceV2([u8; 6]),
    /// InfiniBand or Omni-Path, as the record says.
    Ib,
}

/// Converts a path to its C form.
pub(super) fn to_raw(path: &PathRecord, link: PathLink) -> bindings::sa_path_rec {
    let record = path_to_raw(path);
    let (rec_type, dmac) = match link {
        PathLink::RoceV1(dmac) => (bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V1, dmac),
        PathLink::RoceV2(dmac) => (bindings::sa_path_rec_type_SA_PATH_REC_TYPE_ROCE_V2, dmac),
        PathLink::Ib => return record,
    };
    bindings::sa_path_rec {
        numb_path: 1,
        rec_type,
        __bindgen_anon_1: bindings::sa_path_rec__bindgen_ty_1 {
            roce: bindings::sa_path_rec_roce {
                route_resolved: true,
                dmac,
            },
        },
        ..record
    }
}

/// The services that were found, as the consumer sees them.
pub(crate) struct ServiceRecs(KVec<bindings::sa_service_rec>);

impl ServiceRecs {
    /// Converts the records of services. Fails with [`ENOMEM`].
    pub(crate) fn new(found: &[ServiceRecord]) -> Result<Self> {
        let mut records = KVec::with_capacity(found.len(), GFP_KERNEL)?;
        for record in found {
            // The vector has room. Unlike `push`, this has no panic that the compiler fails to
            // remove.
            let pushed = records.push_within_capacity(found_to_raw(record));
            pushed.map_err(|_| ENOMEM)?;
        }
        Ok(Self(records))
    }

    pub(super) fn records(&self) -> &[bindings::sa_service_rec] {
        &self.0
    }
}
