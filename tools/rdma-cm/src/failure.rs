// SPDX-License-Identifier: GPL-2.0

//! Failures, and the status that the tool then ends with.

use std::{fmt, io, path::PathBuf};

/// A reason for which the tool fails.
#[derive(Debug)]
pub enum Failure {
    /// The kernel refuses, with this error number.
    Kernel(i32),
    /// The kernel has no such family: the module is not loaded, or is another one.
    NoFamily,
    /// The module has no such command, because it is older than the tool.
    TooOld,
    /// An answer is none.
    Garbled,
    /// An argument is wrong.
    Wrong(String),
    /// No connection manager is loaded.
    NoManager,
    /// The kernel has no tracefs, or it is not mounted.
    NoTracefs,
    /// A trace has no such connection.
    NotSeen,
    /// The kernel, or one of its programs, refuses for this reason.
    Refused(String),
    /// Only root may do it.
    NotRoot,
    /// A program cannot be started.
    Program(&'static str, io::Error),
    /// A file cannot be read or written.
    File(PathBuf, io::Error),
    /// Lines of a file are wrong, each for a reason. The others count.
    Lines(Vec<String>),
}

impl Failure {
    /// Returns the status, which rdma-cm(8) lists.
    pub fn status(&self) -> u8 {
        match self {
            Self::Wrong(_) => 2,
            Self::NoFamily | Self::NoManager | Self::TooOld => 3,
            Self::Kernel(libc::EPERM | libc::EACCES) | Self::NotRoot => 4,
            Self::File(_, error) if error.kind() == io::ErrorKind::PermissionDenied => 4,
            Self::Lines(_) => 5,
            Self::Kernel(_)
            | Self::Garbled
            | Self::NoTracefs
            | Self::NotSeen
            | Self::Refused(_)
            | Self::Program(..)
            | Self::File(..) => 1,
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Kernel(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(libc::EPERM | libc::EACCES) => {
                write!(f, "not permitted: CAP_NET_ADMIN is needed")
            }
            Self::Kernel(code) => write!(f, "{}", io::Error::from_raw_os_error(*code)),
            Self::NoFamily => {
                write!(
                    f,
                    "the kernel does not answer: rust_rdma_cm is not loaded, or too old"
                )
            }
            Self::TooOld => write!(
                f,
                "the rust_rdma_cm that is loaded is older than this tool, and does not tell this"
            ),
            Self::Garbled => write!(f, "the kernel has sent something that is no message"),
            Self::NoManager => write!(f, "no connection manager is loaded"),
            Self::NoTracefs => {
                write!(f, "no tracefs: mount -t tracefs none /sys/kernel/tracing")
            }
            Self::NotSeen => write!(f, "no connection was seen, or none with this address"),
            Self::NotRoot => write!(f, "not permitted: only root may do it"),
            Self::Wrong(what) | Self::Refused(what) => write!(f, "{what}"),
            Self::Program(name, error) => write!(f, "{name}: {error}"),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Lines(lines) => write!(f, "{}", lines.join("\nrdma-cm: ")),
        }
    }
}
