// SPDX-License-Identifier: GPL-2.0

//! The blocks of the kernel that a thread runs, and those that tasks of the kernel run
//! (`/sys/kernel/debug/kcov`).

use std::{
    fs::{File, OpenOptions},
    io,
    os::fd::AsRawFd,
    ptr,
    sync::atomic::{AtomicU64, Ordering},
};

const INIT_TRACE: libc::c_ulong = 0x8008_6301;
const ENABLE: libc::c_ulong = 0x6364;
const REMOTE_ENABLE: libc::c_ulong = 0x4018_6366;
const TRACE_PC: libc::c_ulong = 0;
/// The most blocks of one step, or of a task of the kernel, which is enough for those of a command.
const WORDS: usize = 1 << 16;
/// The most blocks of all tasks of the kernel in a sequence.
const REMOTE_WORDS: usize = 1 << 20;

/// `struct kcov_remote_arg`, for the handle that `rust/kext/kcov.rs` has.
#[repr(C)]
struct Remote {
    mode: u32,
    words: u32,
    handles: u32,
    common_handle: u64,
}

/// The trace of the thread that has made this, or of the module's tasks of the kernel.
pub struct Trace {
    _file: File,
    /// The number of blocks, and the address of each.
    area: &'static [AtomicU64],
}

impl Trace {
    /// Begins to trace this thread.
    pub fn new() -> io::Result<Self> {
        Self::enable(WORDS, |file| {
            // SAFETY: The call takes no memory of ours.
            unsafe { libc::ioctl(file.as_raw_fd(), ENABLE, TRACE_PC) }
        })
    }

    /// Begins to trace the tasks of the kernel, until this thread ends.
    pub fn remote() -> io::Result<Self> {
        let remote = Remote {
            mode: TRACE_PC as u32,
            words: WORDS as u32,
            handles: 0,
            common_handle: u32::from_be_bytes(*b"rdma").into(),
        };
        Self::enable(REMOTE_WORDS, |file| {
            // SAFETY: The structure is as the call wants it.
            unsafe { libc::ioctl(file.as_raw_fd(), REMOTE_ENABLE, &raw const remote) }
        })
    }

    fn enable(words: usize, enable: impl FnOnce(&File) -> libc::c_int) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/sys/kernel/debug/kcov")?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: The file is one of kcov, and the mapping, which is never undone, has `words` words.
        // The kernel adds to them as another thread would.
        let area = unsafe {
            if libc::ioctl(file.as_raw_fd(), INIT_TRACE, words as libc::c_ulong) != 0 {
                return Err(io::Error::last_os_error());
            }
            let area = libc::mmap(
                ptr::null_mut(),
                words * 8,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            if area == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            std::slice::from_raw_parts(area.cast::<AtomicU64>(), words)
        };
        if enable(&file) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { _file: file, area })
    }

    /// Forgets what was run.
    pub fn begin(&self) {
        self.area[0].store(0, Ordering::Relaxed);
    }

    /// Returns the addresses of the blocks that were run.
    pub fn end(&self) -> impl Iterator<Item = u64> + '_ {
        let count = self.area[0].load(Ordering::Relaxed) as usize;
        let blocks = self.area.iter().skip(1).take(count);
        blocks.map(|block| block.load(Ordering::Relaxed))
    }
}
