// SPDX-License-Identifier: GPL-2.0

//! The memory of a thread that the kernel reads and writes.

use crate::value::Memory;
use std::{io, ptr};

const PAGE: usize = 4096;

/// Two pages, one that can be read only, and one that is not there.
pub struct Pages(*mut u8);

impl Pages {
    pub fn new() -> io::Result<Self> {
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: The mapping is new, so that nobody else uses its pages.
        unsafe {
            let pages = libc::mmap(ptr::null_mut(), 4 * PAGE, protection, kind, -1, 0);
            if pages == libc::MAP_FAILED
                || libc::mprotect(pages.add(2 * PAGE), PAGE, libc::PROT_NONE) != 0
                || libc::mprotect(pages.add(3 * PAGE), PAGE, libc::PROT_READ) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(pages.cast()))
        }
    }

    pub fn address(&self, memory: Memory) -> u64 {
        let start = self.0.expose_provenance() as u64;
        match memory {
            Memory::Good => start,
            Memory::Edge => start + 2 * PAGE as u64 - 2,
            Memory::ReadOnly => start + 3 * PAGE as u64,
            Memory::Null => 0,
            Memory::Kernel => 0xffff_8880_0000_0000,
        }
    }

    /// Puts the bytes, a page at most, before the page that is not there.
    pub fn content(&self, bytes: &[u8]) -> u64 {
        let len = bytes.len().min(PAGE);
        // SAFETY: The second page has room for `len` bytes at its end.
        unsafe {
            let to = self.0.add(2 * PAGE - len);
            ptr::copy_nonoverlapping(bytes.as_ptr(), to, len);
            to.expose_provenance() as u64
        }
    }

    /// Returns a word of the answer that is at [`Memory::Good`].
    pub fn word(&self, at: usize) -> u32 {
        assert!(at + 4 <= PAGE);
        // SAFETY: The word is in the first page.
        unsafe { ptr::read_volatile(self.0.add(at).cast()) }
    }
}
