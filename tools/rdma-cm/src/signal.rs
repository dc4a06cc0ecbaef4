// SPDX-License-Identifier: GPL-2.0

//! The signals that end what runs until it is interrupted.

use std::{
    io, mem,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    time::Duration,
};

/// A descriptor that is readable when SIGINT or SIGTERM has come, which do nothing else while it is
/// there.
pub struct Signals(OwnedFd);

impl Signals {
    /// Blocks the signals from now on.
    pub fn block() -> io::Result<Self> {
        // SAFETY: The set is initialised before it is used, and the descriptor is new.
        unsafe {
            let mut set = mem::zeroed();
            libc::sigemptyset(&mut set);
            libc::sigaddset(&mut set, libc::SIGINT);
            libc::sigaddset(&mut set, libc::SIGTERM);
            libc::sigprocmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
            match libc::signalfd(-1, &set, libc::SFD_CLOEXEC) {
                -1 => Err(io::Error::last_os_error()),
                fd => Ok(Signals(OwnedFd::from_raw_fd(fd))),
            }
        }
    }

    /// Waits until another descriptor is readable. Returns whether a signal has come.
    pub fn come_before(&self, other: RawFd) -> io::Result<bool> {
        self.poll(other, -1)
    }

    /// Waits for a signal, at most for so long.
    pub fn wait(&self, how_long: Option<Duration>) -> io::Result<()> {
        let ms = how_long.map_or(-1, |time| time.as_millis().try_into().unwrap_or(i32::MAX));
        self.poll(-1, ms).map(|_| ())
    }

    fn poll(&self, other: RawFd, ms: i32) -> io::Result<bool> {
        let poll = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut ready = [poll(self.0.as_raw_fd()), poll(other)];
        // SAFETY: The array is as long as said.
        match unsafe { libc::poll(ready.as_mut_ptr(), 2, ms) } {
            0.. => Ok(ready[0].revents != 0),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
