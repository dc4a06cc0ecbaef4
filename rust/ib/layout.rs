// SPDX-License-Identifier: GPL-2.0

//! The layout of what this module and the running `ib_core` both look into.

use crate::{bindings as c, kext::file::File};
use cmproto::btf::{misfit, Header, Misfit, Structure, HEADER_LEN};
use core::mem::{offset_of, size_of};
use kernel::{
    alloc::{flags::GFP_KERNEL, KVVec},
    prelude::*,
};

/// A structure of a header of the kernel, which another stack may have changed.
macro_rules! whole {
    ($name:ident) => {
        Structure {
            name: stringify!($name),
            size: Some(size_of::<c::$name>() as u32),
            members: &[],
        }
    };
}

/// An offset in a structure.
macro_rules! at {
    ($structure:ident, $member:ident) => {
        (
            stringify!($member),
            offset_of!(c::$structure, $member) as u32,
        )
    };
}

/// The numbers that are compared when the module is built, too, and the sizes of structures that
/// are passed to `ib_core`.
const EXPECTED: &[Structure<'_>] = &[
    Structure {
        name: "rdma_id_private",
        size: None,
        members: &[
            at!(rdma_id_private_head, id),
            at!(rdma_id_private_head, state),
            at!(rdma_id_private_head, qp_num),
            at!(rdma_id_private_head, res),
        ],
    },
    Structure {
        name: "rdma_cm_id",
        size: Some(size_of::<c::rdma_cm_id>() as u32),
        members: &[
            at!(rdma_cm_id, device),
            at!(rdma_cm_id, route),
            at!(rdma_cm_id, ps),
            at!(rdma_cm_id, qp_type),
            at!(rdma_cm_id, port_num),
        ],
    },
    whole!(rdma_restrack_entry),
    whole!(ib_client),
    whole!(ib_device),
    whole!(ib_gid_attr),
    whole!(ib_mad_agent),
    whole!(ib_mad_send_buf),
    whole!(rdma_ah_attr),
    whole!(sa_path_rec),
];

/// Compares the layout that this module was built with to that of the running `ib_core`, and
/// returns a difference. May sleep.
///
/// Nothing is known of an `ib_core` that has no type information, or is built into the kernel; then
/// there is no difference. Fails if memory is missing.
pub(crate) fn difference() -> Result<Option<Misfit<'static>>> {
    let (Ok(core), Ok(kernel)) = (
        TypeInformation::open(c"/sys/kernel/btf/ib_core"),
        TypeInformation::open(c"/sys/kernel/btf/vmlinux"),
    ) else {
        return Ok(None);
    };
    let core = core.read(0, core.header.total_len().ok_or(EINVAL)?)?;
    let strings = kernel.read(kernel.header.strings_start(), kernel.header.strings_len())?;
    let first = misfit(&core, &[], &strings, EXPECTED);
    if first.is_none_or(|misfit| misfit.found.is_some()) {
        return Ok(first);
    }
    let types = kernel.read(kernel.header.types_start(), kernel.header.types_len())?;
    Ok(misfit(&core, &types, &strings, EXPECTED))
}

/// A file with the type information of the kernel or of a module.
struct TypeInformation {
    file: File,
    header: Header,
}

impl TypeInformation {
    fn open(path: &CStr) -> Result<Self> {
        let file = File::open(path)?;
        let mut header = [0; HEADER_LEN];
        file.read(0, &mut header)?;
        Ok(Self {
            file,
            header: Header::read(&header).ok_or(EINVAL)?,
        })
    }

    fn read(&self, offset: usize, len: usize) -> Result<KVVec<u8>> {
        let mut bytes = KVVec::from_elem(0, len, GFP_KERNEL)?;
        self.file.read(offset, &mut bytes)?;
        Ok(bytes)
    }
}
