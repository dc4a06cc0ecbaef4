// SPDX-License-Identifier: GPL-2.0

//! Functions that the kernel crate's [`SeqFile`] lacks.
//!
//! C header: [`include/linux/seq_file.h`](srctree/include/linux/seq_file.h)

use crate::bindings;
pub(crate) use kernel::seq_file::SeqFile;

/// Returns the number that a user of the initial user namespace has in that of the reader of `out`,
/// or `None` if the reader cannot see the user.
pub(crate) fn user_as_seen(out: &SeqFile, user: u32) -> Option<u32> {
    let out: *const SeqFile = out;
    // SAFETY: The reference proves that the file is valid; a `SeqFile` has the layout of the C
    // structure.
    let seen = unsafe { bindings::rust_rdma_seq_user(out.cast_mut().cast(), user) };
    (seen != u32::MAX).then_some(seen)
}
