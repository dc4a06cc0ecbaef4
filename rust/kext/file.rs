// SPDX-License-Identifier: GPL-2.0

//! Files that the kernel reads.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use super::error::from_code;
use crate::bindings;
use core::ptr::NonNull;
use kernel::{error::from_err_ptr, prelude::*};

/// An open file.
///
/// # Invariants
///
/// The file is open for reading, and this object owns a reference to it.
pub(crate) struct File(NonNull<bindings::file>);

impl File {
    /// Opens a file for reading, as the current task sees it. May sleep.
    pub(crate) fn open(path: &CStr) -> Result<Self> {
        // SAFETY: The path is a string. May sleep, as this function may.
        let file = unsafe { bindings::filp_open(path.as_char_ptr(), 0, 0) };
        // INVARIANT: The call has opened the file for reading and returned a reference.
        Ok(Self(NonNull::new(from_err_ptr(file)?).ok_or(EINVAL)?))
    }

    /// Fills `to` with what the file has at `offset`. Fails with [`EINVAL`] if it ends before.
    pub(crate) fn read(&self, offset: usize, mut to: &mut [u8]) -> Result {
        let mut position = bindings::loff_t::try_from(offset)?;
        while !to.is_empty() {
            // SAFETY: By the type invariant, the file is open for reading; the buffer is valid for
            // writes of its length, and the position is a local variable.
            let len = unsafe {
                bindings::kernel_read(
                    self.0.as_ptr(),
                    to.as_mut_ptr().cast(),
                    to.len(),
                    &mut position,
                )
            };
            let len = usize::try_from(len).map_err(|_| from_code(len as i32))?;
            if len == 0 {
                return Err(EINVAL);
            }
            to = to.get_mut(len..).ok_or(EINVAL)?;
        }
        Ok(())
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: By the type invariant, we own this reference. The file is of no owner of locks.
        unsafe { bindings::filp_close(self.0.as_ptr(), core::ptr::null_mut()) };
    }
}
