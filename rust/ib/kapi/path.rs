// SPDX-License-Identifier: GPL-2.0

//! Records of paths and of services, as C has them.

use super::super::sa::{
    record::{found_to_raw, path_to_raw},
    ServiceRecord,
};
use crate::bindings;
use cmproto::ucma::path::PathRecord;
use kernel::{alloc::flags::GFP_KERNEL, prelude::*, types::Opaque};

/// The record of the path of a connection, for the consumer.
pub(crate) struct PathRec(Opaque<bindings::sa_path_rec>);

// SAFETY: Written by one task at a time, as `show_path` demands; read by any.
unsafe impl Send for PathRec {}

// SAFETY: As above.
unsafe impl Sync for PathRec {}

impl PathRec {
    /// A record that says nothing.
    pub(crate) fn new() -> Self {
        Self(Opaque::new(pin_init::zeroed()))
    }

    pub(super) fn as_raw(&self) -> *mut bindings::sa_path_rec {
        self.0.get()
    }
}

/// What a path leads over.
#[derive(Clone, Copy)]
pub(crate) enum PathLink {
    /// RoCE v1, to a peer that is at this address on the link.
    RoceV1([u8; 6]),
    /// RoCE v2, likewise.
    RoceV2([u8; 6]),
    /// InfiniBand.
    Ib,
}

/// The record of a path.
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

/// The services that were found, for the consumer.
pub(crate) struct ServiceRecs(KVec<bindings::sa_service_rec>);

impl ServiceRecs {
    /// Fails with [`ENOMEM`].
    pub(crate) fn new(found: &[ServiceRecord]) -> Result<Self> {
        let mut records = KVec::with_capacity(found.len(), GFP_KERNEL)?;
        for record in found {
            // There is room, and this cannot panic, of which the compiler is sure, too.
            let pushed = records.push_within_capacity(found_to_raw(record));
            pushed.map_err(|_| ENOMEM)?;
        }
        Ok(Self(records))
    }

    pub(super) fn records(&self) -> &[bindings::sa_service_rec] {
        &self.0
    }
}
