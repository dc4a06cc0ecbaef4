// SPDX-License-Identifier: GPL-2.0

//! The kernel's log, as the guest judges it.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    process::Command,
};

/// The log from now on.
pub struct Log(File);

impl Log {
    pub fn new() -> io::Result<Self> {
        let mut file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")?;
        file.seek(SeekFrom::End(0))?;
        Ok(Self(file))
    }

    /// Returns the lines that a guest may not have, if there are new ones.
    pub fn complaint(&mut self) -> Option<String> {
        let mut record = [0; 8192];
        let mut warned = false;
        loop {
            match self.0.read(&mut record) {
                Ok(len) => {
                    // Facility and level, in decimal digits.
                    let text = String::from_utf8_lossy(&record[..len]);
                    let level = text.split(',').next().and_then(|word| word.parse().ok());
                    warned |= level.is_none_or(|level: u32| level & 7 <= 4);
                }
                // Records were lost: there were many.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => warned = true,
                Err(_) => break,
            }
        }
        if !warned {
            return None;
        }
        let judge = Command::new("kernel-log-clean").output().ok()?;
        if judge.status.success() {
            return None;
        }
        let _ = Command::new("kernel-log-clean").arg("--mark").status();
        Some(String::from_utf8_lossy(&judge.stdout).into_owned())
    }
}
